//! The plan for bubblewrap: the namespaces and the view of the file system around an isolated warden.

use crate::confinement::Confinement;
use crate::environment::Environment;
use crate::network::INSIDE;
use crate::repository::kept;
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Where the program of the warden is inside.
pub(crate) const PROGRAM: &str = "/run/agentd/warden";
/// What that is: the descriptor of the program, which comes in as standard error. A path could lead to another version.
const DESCRIPTOR: &str = "/proc/self/fd/2";

/// Where bubblewrap is on the PATH of commands.
pub(crate) fn find(environment: &Environment) -> Option<PathBuf> {
    let path = environment.iter().find(|(name, _)| *name == "PATH")?.1;
    let mut candidates = path.split(':').map(|dir| Path::new(dir).join("bwrap"));
    candidates.find(|candidate| candidate.is_absolute() && candidate.is_file())
}

/// Its arguments, as a file that it reads: they are in nobody's sight.
pub(crate) fn arguments(workdir: &Path, walls: &Confinement, network: Option<&Path>) -> io::Result<OwnedFd> {
    let mut plan = Plan::default();
    plan.flags(&[
        "--unshare-user",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]);
    // First: programs, and the working directory, may lie below it.
    plan.pair("--bind", &walls.temp, walls.temp_inside());
    for path in &walls.read {
        plan.readable(path);
    }
    plan.pair("--symlink", Path::new(DESCRIPTOR), Path::new(PROGRAM));
    if let Some(network) = network {
        plan.pair("--ro-bind", network, Path::new(INSIDE));
    }
    plan.pair("--bind", workdir, workdir);
    plan.git(workdir, &walls.temp)?;
    plan.words([OsStr::new("--chdir"), workdir.as_os_str()]);
    plan.file()
}

#[derive(Debug, Default)]
struct Plan(Vec<OsString>);

impl Plan {
    fn flags(&mut self, flags: &[&str]) {
        self.0.extend(flags.iter().map(OsString::from));
    }

    fn words<'a>(&mut self, words: impl IntoIterator<Item = &'a OsStr>) {
        self.0.extend(words.into_iter().map(OsStr::to_owned));
    }

    fn pair(&mut self, flag: &str, from: &Path, to: &Path) {
        self.words([OsStr::new(flag), from.as_os_str(), to.as_os_str()]);
    }

    /// A link at the top (/bin -> usr/bin) stays one; anything else is bound.
    fn readable(&mut self, path: &Path) {
        let at_top = path.components().count() == 2;
        match fs::read_link(path) {
            Ok(target) if at_top => self.pair("--symlink", &target, path),
            Ok(_) | Err(_) => self.pair("--ro-bind-try", path, path),
        }
    }

    /// What a repository runs on its own stays as it is. `.git` is a mount of its own, so it cannot be moved away.
    fn git(&mut self, workdir: &Path, temp: &Path) -> io::Result<()> {
        let git = workdir.join(".git");
        let Ok(found) = fs::symlink_metadata(&git) else {
            return Ok(());
        };
        if found.is_file() {
            self.pair("--ro-bind", &git, &git);
        }
        if !found.is_dir() {
            return Ok(());
        }
        self.pair("--bind", &git, &git);
        let hooks = git.join("hooks");
        if fs::symlink_metadata(&hooks).is_err() {
            let empty = temp.with_extension("hooks");
            fs::create_dir_all(&empty)?;
            self.pair("--ro-bind", &empty, &hooks);
        }
        for path in kept(workdir) {
            self.pair("--ro-bind", &path, &path);
        }
        Ok(())
    }

    fn file(self) -> io::Result<OwnedFd> {
        let file = memfd_create("plan", MemfdFlags::CLOEXEC)?;
        let mut bytes = Vec::new();
        for word in self.0 {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        let mut writer = fs::File::from(file);
        writer.write_all(&bytes)?;
        let file = OwnedFd::from(writer);
        seek(&file, SeekFrom::Start(0))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::SandboxLevel;
    use std::io::Read as _;

    #[test]
    fn a_repository_keeps_its_hooks_and_its_settings() {
        let dir = tempfile::tempdir().unwrap();
        let (workdir, temp) = (dir.path().join("w"), dir.path().join("t"));
        fs::create_dir_all(workdir.join(".git/hooks")).unwrap();
        fs::write(workdir.join(".git/config"), "[core]").unwrap();
        let walls = Confinement {
            level: SandboxLevel::Isolated,
            temp,
            read: vec!["/usr".into()],
        };
        let file = arguments(&workdir, &walls, None).unwrap();
        let mut text = String::new();
        fs::File::from(file).read_to_string(&mut text).unwrap();
        let text = text.trim_end_matches('\0').replace('\0', " ");
        let w = workdir.display();
        let expected = format!(
            "--bind {w}/.git {w}/.git --ro-bind {w}/.git/hooks {w}/.git/hooks --ro-bind {w}/.git/config {w}/.git/config --chdir {w}"
        );
        assert!(text.ends_with(&expected), "{text}");
        // What lies below it comes after it.
        let temp = text.find(&format!("--bind {}/t /tmp ", dir.path().display()));
        let work = text.find(&format!("--bind {w} {w} "));
        assert!(
            temp.is_some() && temp < text.find("--ro-bind-try /usr") && temp < work,
            "{text}"
        );
    }
}
