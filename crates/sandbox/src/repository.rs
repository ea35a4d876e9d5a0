//! Finds what exists in a working directory and must not change: git metadata and files that other programs execute or obey
//! without being asked. A person's next `git status` must not run what an agent wrote.

use crate::mounts::Access;
use agentd_protected::{Class, ProtectedPaths, holds_git_directories, is_repository};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// The walk reads at most this many entries. It goes level by level, so it always covers the upper levels.
const MAX_ENTRIES: usize = 10_000;
/// The maximum number of mounts. Each costs a few microseconds at the start of a session.
const MAX_MOUNTS: usize = 256;

/// Finds the protected paths that exist, relative to the working directory, in mount order. A git directory stays writable,
/// because git writes objects and references there; as a mount point it cannot be moved away.
///
/// Mounts do not protect paths beyond the bound of the walk, nor missing paths. With a broker they omit what git replaces
/// or creates: the broker checks every change, and a mount point could not be replaced.
pub(crate) fn protected(workdir: &Path, paths: &ProtectedPaths, broker: bool) -> Vec<(PathBuf, Access)> {
    let mut found = Vec::new();
    let mut entries = 0;
    // Git writes in the directories of submodules and worktrees, too, if it may write at all.
    let opens = broker && !paths.keeps_git();
    // With the path by which the names in a directory are classified.
    let mut queue = VecDeque::from([(PathBuf::new(), PathBuf::new())]);
    while let Some((dir, known)) = queue.pop_front() {
        let known = git_directory(workdir, &dir, known);
        for entry in fs::read_dir(workdir.join(&dir)).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MAX_ENTRIES || found.len() >= MAX_MOUNTS {
                return sorted(found);
            }
            // A mount cannot cover a link. The walk finds the target at its own path.
            let Ok(kind) = entry.file_type() else { continue };
            let (path, known) = (dir.join(entry.file_name()), known.join(entry.file_name()));
            let git = kind.is_dir() && entry.file_name().eq_ignore_ascii_case(".git");
            match paths.classify(&known) {
                // The broker tells the repositories of others from those that the session makes.
                _ if git && paths.keeps_git() && !broker => found.push((path, Access::Read)),
                _ if git => {
                    found.push((path.clone(), Access::Write));
                    queue.push_back((path.join("objects/info"), known.join("objects/info")));
                    queue.push_back((path, known));
                }
                _ if opens && kind.is_dir() && holds_git_directories(&known) => {
                    queue.push_back((path.join("objects/info"), known.join(".git/objects/info")));
                    queue.push_back((path, known));
                }
                // Objects and references: git writes below these.
                Class::GitDirectory if paths.classify(&known.join("x")) == Class::GitData => {}
                Class::GitConfig | Class::GitOperation if broker => {}
                Class::Protected(_)
                | Class::GitDirectory
                | Class::GitConfig
                | Class::GitOperation
                | Class::GitOfMaker
                    if kind.is_dir() || kind.is_file() =>
                {
                    found.push((path, Access::Read));
                }
                Class::Free if kind.is_dir() && !paths.is_excepted(&known) => queue.push_back((path, known)),
                _ => {}
            }
        }
    }
    sorted(found)
}

/// The path by which the names in a directory are classified: the git directory of a submodule is known by its contents.
fn git_directory(workdir: &Path, dir: &Path, known: PathBuf) -> PathBuf {
    let has = |part: &str| fs::symlink_metadata(workdir.join(dir).join(part)).is_ok();
    if holds_git_directories(&known) && is_repository(has) {
        known.join(".git")
    } else {
        known
    }
}

/// Directories before their contents.
fn sorted(mut found: Vec<(PathBuf, Access)>) -> Vec<(PathBuf, Access)> {
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_run_by_themselves_are_found_without_following_links() {
        let dir = tempfile::tempdir().unwrap();
        let w = dir.path();
        for made in [
            ".git/hooks",
            ".git/info",
            ".git/objects/info",
            ".git/modules/m/hooks",
            ".husky",
            ".vscode",
            "conf",
            "named",
            "sub/.git/hooks",
            "target/.git/hooks",
        ] {
            fs::create_dir_all(w.join(made)).unwrap();
        }
        let config = "[core]\n\thooksPath = named\n[include]\n\tpath = ../conf/shared\n[includeIf \"onbranch:x\"]\n\tpath = \"../gone\"\n\
                      [Include]\npath = ../../outside\n";
        for (file, text) in [
            (".git/config", config),
            (".git/HEAD", ""),
            (".git/objects/info/alternates", ""),
            (".git/objects/info/packs", ""),
            ("conf/shared", ""),
            ("sub/.git/config", ""),
            ("sub/AGENTS.md", ""),
            ("sub/main.rs", ""),
            (".gitignore", ""),
        ] {
            fs::write(w.join(file), text).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", w.join(".envrc")).unwrap();
        let named = agentd_protected::named_by_git(w, None, &[]);
        let paths = ProtectedPaths::default().with_named(named);
        let found = protected(w, &paths, false);
        let expected = [
            (".git", Access::Write),
            (".git/config", Access::Read),
            (".git/hooks", Access::Read),
            (".git/info", Access::Read),
            (".git/modules", Access::Read),
            (".git/objects/info/alternates", Access::Read),
            (".husky", Access::Read),
            (".vscode", Access::Read),
            ("conf/shared", Access::Read),
            ("named", Access::Read),
            ("sub/.git", Access::Write),
            ("sub/.git/config", Access::Read),
            ("sub/.git/hooks", Access::Read),
            ("sub/AGENTS.md", Access::Read),
        ];
        assert_eq!(
            found,
            expected.map(|(path, access)| (PathBuf::from(path), access))
        );
        // It looks into the directories of submodules, of which this one is not a repository.
        let brokered =
            |(path, _): &(PathBuf, Access)| !path.ends_with(".git/config") && !path.ends_with("modules");
        let beside_a_broker: Vec<_> = found.into_iter().filter(brokered).collect();
        assert_eq!(protected(w, &paths, true), beside_a_broker);
    }

    #[test]
    fn what_git_runs_in_submodules_and_worktrees_is_found_and_their_data_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let w = dir.path();
        for made in [
            ".git/modules/libs/m/hooks",
            ".git/modules/libs/m/objects/info",
            ".git/modules/libs/m/refs",
            ".git/rebase-merge",
            ".git/worktrees/t/logs",
        ] {
            fs::create_dir_all(w.join(made)).unwrap();
        }
        for file in [
            "modules/libs/m/HEAD",
            "modules/libs/m/index",
            "modules/libs/m/config",
            "modules/libs/m/packed-refs",
            "modules/libs/m/objects/info/alternates",
            "modules/libs/m/config.worktree",
            "worktrees/t/HEAD",
            "worktrees/t/index",
            "worktrees/t/commondir",
            "worktrees/t/gitdir",
        ] {
            fs::write(w.join(".git").join(file), "").unwrap();
        }
        let read = [
            "modules/libs/m/config.worktree",
            "modules/libs/m/hooks",
            "modules/libs/m/objects/info/alternates",
            "worktrees/t/commondir",
            "worktrees/t/gitdir",
        ];
        let read = read.map(|path| (Path::new(".git").join(path), Access::Read));
        let mut expected = vec![(PathBuf::from(".git"), Access::Write)];
        expected.extend(read);
        assert_eq!(protected(w, &ProtectedPaths::default(), true), expected);
        // Without a broker, or where nothing may be written, all of them are covered.
        let covered = ["modules", "rebase-merge", "worktrees"];
        let covered = covered.map(|name| (Path::new(".git").join(name), Access::Read));
        let mut expected = vec![(PathBuf::from(".git"), Access::Write)];
        expected.extend(covered);
        assert_eq!(protected(w, &ProtectedPaths::default(), false), expected);
    }

    #[test]
    fn the_walk_ends_at_its_bounds_with_the_upper_levels_covered() {
        let dir = tempfile::tempdir().unwrap();
        let w = dir.path();
        fs::create_dir_all(w.join("a/deep")).unwrap();
        for number in 0..=MAX_MOUNTS {
            fs::write(w.join(format!("a/deep/.rc{number}")), "").unwrap();
        }
        fs::write(w.join(".envrc"), "").unwrap();
        let found = protected(w, &ProtectedPaths::default(), false);
        assert_eq!(found.len(), MAX_MOUNTS);
        assert!(found.contains(&(PathBuf::from(".envrc"), Access::Read)));
    }
}
