//! Repositories without a `.git`: git recognizes such a directory by its contents, and then reads its configuration.

use agentd_protected::{completes_repository, is_repository};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, CWD, statat};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Names for which to check whether their directory is a repository.
const DECIDES: [&str; 14] = [
    "HEAD",
    "commondir",
    "config",
    "config.lock",
    "config.worktree",
    "hooks",
    "info",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "shallow",
    "shallow.lock",
    "worktrees",
];

/// Whether adding this name turns a directory into a repository.
pub(super) fn completes(dir: impl AsFd, name: &OsStr) -> bool {
    let dir: BorrowedFd<'_> = dir.as_fd();
    let is_there = |part: &str| statat(dir, part, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    completes_repository(is_there, &name.to_string_lossy())
}

/// The repository without a `.git` in which a path takes effect, if there is one.
pub(super) fn around(top: &Path, path: &Path) -> Option<PathBuf> {
    let mut at = path;
    while let (Some(dir), Some(name)) = (at.parent(), at.file_name()) {
        if !dir.starts_with(top) {
            return None;
        }
        let is_there = |part: &str| statat(CWD, dir.join(part), AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if DECIDES.iter().any(|decides| name == *decides) && is_repository(is_there) {
            return Some(dir.to_owned());
        }
        at = dir;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, create_dir, write};

    #[test]
    fn the_last_part_of_a_repository_completes_it() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let completes = |name: &str| completes(open(), OsStr::new(name));
        assert!(!completes("HEAD"));
        write(dir.path().join("HEAD"), "").unwrap();
        assert!(completes("commondir"));
        create_dir(dir.path().join("refs")).unwrap();
        assert!(completes("objects"));
        assert!(!completes("config"));
        create_dir(dir.path().join("objects")).unwrap();
        // It is one already, so its own programs may continue to use it.
        assert!(!completes("HEAD"));
        let config = dir.path().join("config");
        assert_eq!(around(dir.path(), &config), Some(dir.path().to_owned()));
        assert_eq!(
            around(dir.path(), &dir.path().join("hooks/x")),
            Some(dir.path().to_owned())
        );
        assert_eq!(around(dir.path(), &dir.path().join("x")), None);
    }
}
