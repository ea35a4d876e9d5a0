//! Which files decide what a command does: the scripts that it runs, and what programs are told to read or change.

use crate::danger::danger;
use crate::nested::base;
use crate::shell::{Analysis, analyse};

/// Programs that run what a file says which nobody names.
const IMPLIED: &[(&[&str], &[&str])] = &[
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["ninja"], &["build.ninja"]),
    (&["npm", "pnpm", "yarn", "bun"], &["package.json"]),
];
/// Why a text is not plain, when that alone makes nothing run.
const REDIRECTED: &str = "a redirection";
/// The most directories that are followed through one command.
const MAX_DIRS: usize = 8;

/// Paths that may name files which decide what this command does, as it writes them; many of them name nothing. Empty
/// for a command that only looks at files.
#[must_use]
pub fn scripts(command: &str) -> Vec<String> {
    let found = analyse(command);
    let mut names: Vec<String> = implied(&found).map(str::to_owned).collect();
    if runs_files(&found) {
        let words = found.words.iter().chain(&found.reads);
        names.extend(words.flat_map(|word| named(word)));
    }
    let dirs = directories(&found);
    let mut paths = Vec::new();
    for name in names {
        paths.extend(
            dirs.iter()
                .filter(|_| !name.starts_with('/'))
                .map(|dir| format!("{dir}/{name}")),
        );
        paths.push(name);
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Whether it may run a file: some part needs a rule that names it, or it cannot be read part by part.
fn runs_files(found: &Analysis) -> bool {
    let hidden = found.segments.as_ref().is_err_and(|why| *why != REDIRECTED);
    found.unread || hidden || found.commands.iter().any(|argv| danger(argv).is_some())
}

fn implied(found: &Analysis) -> impl Iterator<Item = &'static str> {
    let programs = found.commands.iter().filter_map(|argv| argv.first());
    programs
        .flat_map(|program| {
            IMPLIED
                .iter()
                .filter(move |(names, _)| names.contains(&base(program)))
        })
        .flat_map(|(_, files)| *files)
        .copied()
}

/// The word itself, and what stands behind its `=`.
fn named(word: &str) -> impl Iterator<Item = String> {
    let value = word.split_once('=').map(|(_, value)| value);
    let plain = (!word.starts_with('-')).then(|| word.trim_start_matches(['@', '<']));
    [plain, value]
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

/// Where the command goes before it runs something.
fn directories(found: &Analysis) -> Vec<String> {
    let mut dirs: Vec<String> = Vec::new();
    for argv in &found.commands {
        if let [program, dir, ..] = argv.as_slice()
            && matches!(program.as_str(), "cd" | "pushd")
            && dirs.len() < MAX_DIRS
        {
            match dirs.last() {
                Some(last) if !dir.starts_with('/') => dirs.push(format!("{last}/{dir}")),
                _ => dirs.push(dir.clone()),
            }
        }
    }
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(command: &str, expected: &[&str]) {
        let found = scripts(command);
        for path in expected {
            assert!(
                found.iter().any(|name| name == path),
                "{command}: {path} is not in {found:?}"
            );
        }
        assert_eq!(found.is_empty(), expected.is_empty(), "{command}: {found:?}");
    }

    #[test]
    fn i7_what_decides_what_a_command_does_is_named() {
        names("./run --fast", &["./run"]);
        names("bash x.sh", &["x.sh"]);
        names("python3 -u tools/x.py a", &["tools/x.py"]);
        names("env A=b sh -c 'node x.js'", &["x.js"]);
        names("cat x.sh | sh", &["x.sh"]);
        names("sh < x.sh", &["x.sh"]);
        names("cd sub && ./run", &["./run", "sub/./run"]);
        names("cd a; cd b; sh x", &["a/b/x"]);
        names("$RUN x.sh", &["x.sh"]);
        names("make test", &["Makefile"]);
        names("npm test", &["package.json"]);
        names("sed -i s/a/b/ f", &["f"]);
        names("xargs --arg-file=list ./x", &["list", "./x"]);
    }

    #[test]
    fn a_command_that_only_looks_names_nothing() {
        for command in [
            "ls",
            "grep -n x app.log",
            "tail -5 app.log > last",
            "git status",
            "echo hi",
        ] {
            names(command, &[]);
        }
    }
}
