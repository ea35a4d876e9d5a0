//! Translates a session's view of the file system into arguments for bubblewrap, which creates the namespaces where only
//! programs with a profile may (AppArmor on Ubuntu), or where it is set-user-id and user namespaces are disabled.

use crate::environment::Environment;
use crate::mounts::{Access, Mount, View};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The path of the warden's program inside the sandbox.
pub(crate) const PROGRAM: &str = "/run/agentd/warden";
/// The source of that program: its descriptor, passed in as standard error. A path could lead to another version.
const DESCRIPTOR: &str = "/proc/self/fd/2";

/// The location of bubblewrap on the commands' PATH.
pub(crate) fn find(environment: &Environment) -> Option<PathBuf> {
    let path = environment.iter().find(|(name, _)| *name == "PATH")?.1;
    let mut candidates = path.split(':').map(|dir| Path::new(dir).join("bwrap"));
    candidates.find(|candidate| candidate.is_absolute() && candidate.is_file())
}

/// Passes the arguments in a file, so that the process list does not show them. Only the daemon writes `covers`.
pub(crate) fn arguments(view: &View, covers: &Path) -> io::Result<OwnedFd> {
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
    plan.pair("--symlink", Path::new(DESCRIPTOR), Path::new(PROGRAM));
    for mount in &view.mounts {
        match mount {
            Mount::Bind { from, at, access } => plan.pair(
                match access {
                    Access::Read => "--ro-bind",
                    Access::Write => "--bind",
                },
                from,
                at,
            ),
            Mount::Link { to, at } => plan.pair("--symlink", to, at),
            Mount::Hide { at, directory } => plan.pair("--ro-bind", &cover(covers, *directory)?, at),
        }
    }
    plan.words([OsStr::new("--chdir"), view.workdir.as_os_str()]);
    plan.file()
}

/// An empty file or directory without any permissions.
fn cover(covers: &Path, directory: bool) -> io::Result<PathBuf> {
    fs::create_dir_all(covers)?;
    let path = covers.join(if directory { "dir" } else { "file" });
    if directory {
        fs::create_dir_all(&path)?;
    } else if !path.exists() {
        fs::write(&path, "")?;
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0))?;
    Ok(path)
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
    use std::io::Read as _;

    #[test]
    fn a_view_becomes_arguments_in_its_order() {
        let dir = tempfile::tempdir().unwrap();
        let covers = dir.path().join("covers");
        let bind = |path: &str, access| Mount::Bind {
            from: path.into(),
            at: path.into(),
            access,
        };
        let view = View {
            base: dir.path().to_owned(),
            workdir: "/w".into(),
            mounts: vec![
                Mount::Link {
                    to: "usr/bin".into(),
                    at: "/bin".into(),
                },
                bind("/w", Access::Write),
                bind("/w/.git/config", Access::Read),
                Mount::Hide {
                    at: "/w/secret".into(),
                    directory: false,
                },
            ],
        };
        let file = arguments(&view, &covers).unwrap();
        let mut text = String::new();
        fs::File::from(file).read_to_string(&mut text).unwrap();
        let text = text.trim_end_matches('\0').replace('\0', " ");
        let expected = format!(
            "--symlink usr/bin /bin --bind /w /w --ro-bind /w/.git/config /w/.git/config --ro-bind {}/file /w/secret --chdir /w",
            covers.display()
        );
        assert!(text.ends_with(&expected), "{text}");
    }
}
