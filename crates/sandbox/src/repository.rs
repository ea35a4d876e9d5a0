//! Finds what exists in a working directory and must not change: git metadata and files that other programs execute or obey
//! without being asked. A person's next `git status` must not run what an agent wrote.

use crate::mounts::Access;
use agentd_protected::{Class, ProtectedPaths};
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
/// Mounts do not protect paths beyond the bound of the walk, nor missing paths. With a broker they omit the configuration
/// of repositories: the broker checks every change, and a mount point could not be replaced.
pub(crate) fn protected(workdir: &Path, paths: &ProtectedPaths, broker: bool) -> Vec<(PathBuf, Access)> {
    let mut found = Vec::new();
    let mut entries = 0;
    let mut queue = VecDeque::from([PathBuf::new()]);
    while let Some(dir) = queue.pop_front() {
        for entry in fs::read_dir(workdir.join(&dir)).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MAX_ENTRIES || found.len() >= MAX_MOUNTS {
                return sorted(found);
            }
            // A mount cannot cover a link. The walk finds the target at its own path.
            let Ok(kind) = entry.file_type() else { continue };
            let path = dir.join(entry.file_name());
            let git = kind.is_dir() && entry.file_name().eq_ignore_ascii_case(".git");
            match paths.classify(&path) {
                // The broker tells the repositories of others from those that the session makes.
                _ if git && paths.keeps_git() && !broker => found.push((path, Access::Read)),
                _ if git => {
                    found.push((path.clone(), Access::Write));
                    queue.extend([path.join("objects/info"), path]);
                }
                // Objects and references: git writes below these.
                Class::GitDirectory if paths.classify(&path.join("x")) == Class::GitData => {}
                Class::GitConfig if broker => {}
                Class::Protected(_) | Class::GitDirectory | Class::GitConfig | Class::GitOfMaker
                    if kind.is_dir() || kind.is_file() =>
                {
                    found.push((path, Access::Read));
                }
                Class::Free if kind.is_dir() && !paths.is_excepted(&path) => queue.push_back(path),
                _ => {}
            }
        }
    }
    sorted(found)
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
        let beside_a_broker: Vec<_> = found
            .into_iter()
            .filter(|(path, _)| !path.ends_with(".git/config"))
            .collect();
        assert_eq!(protected(w, &paths, true), beside_a_broker);
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
