//! Repositories without a `.git`: git recognizes such a directory by its contents, and then reads its configuration.

use agentd_protected::{completes_repository, holds_git_directories, is_repository};
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

/// The repository without a `.git` in which a path takes effect, if there is one: also the git directory of a submodule, which
/// only its contents tell from a directory above it, because the name of a submodule may have slashes.
pub(super) fn around(top: &Path, path: &Path) -> Option<PathBuf> {
    let mut at = path;
    while let (Some(dir), Some(name)) = (at.parent(), at.file_name()) {
        if !dir.starts_with(top) {
            return None;
        }
        let is_there = |part: &str| statat(CWD, dir.join(part), AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let decides = DECIDES.iter().any(|decides| name == *decides) || holds_git_directories(dir);
        if decides && is_repository(is_there) {
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

    #[test]
    fn the_git_directory_of_a_submodule_is_known_by_its_contents() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join(".git/modules/libs/m");
        std::fs::create_dir_all(&module).unwrap();
        let index = module.join("index");
        assert_eq!(around(dir.path(), &index), None);
        write(module.join("HEAD"), "").unwrap();
        create_dir(module.join("refs")).unwrap();
        create_dir(module.join("objects")).unwrap();
        assert_eq!(around(dir.path(), &index), Some(module.clone()));
        // A directory above it is none, and neither is one of another place.
        assert_eq!(around(dir.path(), &dir.path().join(".git/modules/libs/x")), None);
        assert_eq!(around(dir.path(), &dir.path().join(".git/modules/index")), None);
        let nested = module.join("modules/inner");
        std::fs::create_dir_all(&nested).unwrap();
        assert_eq!(around(dir.path(), &nested.join("index")), Some(module));
    }
}
