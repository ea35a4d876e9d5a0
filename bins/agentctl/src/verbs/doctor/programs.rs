//! Checks the programs that tools need.

use crate::environment::Environment;
use crate::verbs::doctor::Check;
use std::path::{Path, PathBuf};

/// The helper that parses source files.
const TAGS: &str = "agentd-tags";

pub(super) fn checks(environment: &Environment) -> [Check; 3] {
    [
        bash(environment),
        tags(environment.find_program("agentd").as_deref()),
        ctags(environment.find_on_path("ctags")),
    ]
}

fn bash(environment: &Environment) -> Check {
    match environment.find_on_path("bash") {
        Some(path) => Check::ok("bash", format!("found: {}", path.display())),
        None => Check::fail(
            "bash",
            "`bash` is not on PATH; the Bash tool cannot run",
            "install bash",
        ),
    }
}

/// The daemon looks for the helper in the directory of its own program, by its real path.
fn tags(agentd: Option<&Path>) -> Check {
    let real = agentd.and_then(|path| path.canonicalize().ok());
    let program = real.as_deref().and_then(Path::parent).map(|dir| dir.join(TAGS));
    match program.filter(|path| path.is_file()) {
        Some(path) => Check::ok(TAGS, format!("found: {}", path.display())),
        None => Check::warn(
            TAGS,
            "not found next to `agentd`: RepoMap shows no new files, and SemanticSearch finds no definitions",
            "put `agentd-tags` next to `agentd`; in the source tree, run `cargo build -p agentd-tags`",
        ),
    }
}

/// RepoMap also works without ctags, so its absence is no fault.
fn ctags(found: Option<PathBuf>) -> Check {
    let message = found.map_or_else(
        || {
            "not installed: RepoMap omits languages without a grammar (Lua, Kotlin, PHP, ...); universal-ctags adds them"
                .to_owned()
        },
        |path| format!("found: {}", path.display()),
    );
    Check::ok("ctags", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::doctor::Level;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_helper_is_in_the_directory_of_the_real_daemon() {
        let (real, linked) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = linked.path().join("agentd");
        fs::write(real.path().join("agentd"), "").unwrap();
        symlink(real.path().join("agentd"), &link).unwrap();
        let missing = tags(Some(&link));
        assert_eq!(missing.level, Level::Warn);
        assert!(missing.fix.unwrap().contains("cargo build -p agentd-tags"));
        fs::write(real.path().join(TAGS), "").unwrap();
        assert_eq!(tags(Some(&link)).level, Level::Ok);
        assert_eq!(tags(None).level, Level::Warn);
    }

    #[test]
    fn a_missing_ctags_is_no_fault() {
        assert_eq!(ctags(None).level, Level::Ok);
        assert!(
            ctags(Some("/usr/bin/ctags".into()))
                .message
                .contains("/usr/bin/ctags")
        );
    }
}
