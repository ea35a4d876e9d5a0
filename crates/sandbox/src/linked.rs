//! The git directory of a working directory that has only a `.git` file: a linked worktree, or a submodule.

use crate::annex::Annex;
use crate::workdir::real;
use agentd_git::text;
use agentd_protected::work_tree;
use std::path::{Path, PathBuf};

/// Bytes of a file in which git notes a path.
const MAX_TEXT: u64 = 1 << 16;
/// Bytes of a configuration.
const MAX_CONFIG: u64 = 1 << 20;

/// A git directory elsewhere.
#[derive(Debug, PartialEq, Eq)]
struct Linked {
    git_dir: PathBuf,
    /// Git's common directory: objects and references.
    common: PathBuf,
}

/// What commands need of it, if there is one outside of the working directory, a real path. With `keeps` they only read it.
///
/// Any program can write a `.git` file that leads to any repository, so the repository must say that the directory is its own.
/// Commands then read what they would read in a `.git` directory.
pub(crate) fn annex(workdir: &Path, keeps: bool) -> Option<Annex> {
    let file = workdir.join(".git");
    let said = text(&file, MAX_TEXT)?;
    let git_dir = real(&workdir.join(said.trim().strip_prefix("gitdir:")?.trim())).ok()?;
    let found = worktree(&file, &git_dir).or_else(|| submodule(workdir, git_dir))?;
    if found.common.starts_with(workdir) {
        return None;
    }
    Some(Annex {
        write: if keeps { Vec::new() } else { found.written() },
        read: vec![found.common.clone()],
        repository: Some(found.common),
    })
}

impl Linked {
    /// The directories in which git writes. That of a submodule has its settings among its data, so commands only read it.
    fn written(&self) -> Vec<PathBuf> {
        if self.git_dir == self.common {
            return Vec::new();
        }
        let data = ["objects", "refs", "logs"].map(|name| self.common.join(name));
        data.into_iter().chain([self.git_dir.clone()]).collect()
    }
}

/// The repository that lists the directory of this `.git` file as one of its worktrees.
fn worktree(file: &Path, git_dir: &Path) -> Option<Linked> {
    let common = text(&git_dir.join("commondir"), MAX_TEXT).filter(|common| !common.is_empty())?;
    let common = real(&git_dir.join(common.trim())).ok()?;
    let listed = text(&git_dir.join("gitdir"), MAX_TEXT)?;
    let listed = real(&git_dir.join(listed.trim())).ok()?;
    let is_one = git_dir.parent() == Some(&common.join("worktrees")) && listed == real(file).ok()?;
    is_one.then(|| Linked {
        git_dir: git_dir.to_owned(),
        common,
    })
}

/// The git directory whose configuration names this directory as its work tree.
fn submodule(workdir: &Path, git_dir: PathBuf) -> Option<Linked> {
    let config = text(&git_dir.join("config"), MAX_CONFIG)?;
    let tree = real(&git_dir.join(work_tree(&config)?)).ok()?;
    (tree == workdir).then(|| Linked {
        common: git_dir.clone(),
        git_dir,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A repository with a worktree and a submodule, as git writes them.
    fn repository(top: &Path) -> PathBuf {
        let git = top.join("app/.git");
        for made in ["worktrees/side", "modules/lib", "objects"] {
            fs::create_dir_all(git.join(made)).unwrap();
        }
        for tree in ["side", "app/lib"] {
            fs::create_dir(top.join(tree)).unwrap();
        }
        for (file, said) in [
            ("app/.git/worktrees/side/commondir", "../..\n".to_owned()),
            (
                "app/.git/worktrees/side/gitdir",
                format!("{}\n", top.join("side/.git").display()),
            ),
            (
                "app/.git/modules/lib/config",
                "[core]\n\tworktree = ../../../lib\n".to_owned(),
            ),
            (
                "side/.git",
                format!("gitdir: {}\n", git.join("worktrees/side").display()),
            ),
            ("app/lib/.git", "gitdir: ../.git/modules/lib\n".to_owned()),
        ] {
            fs::write(top.join(file), said).unwrap();
        }
        git
    }

    #[test]
    fn a_worktree_and_a_submodule_find_their_repository() {
        let dir = tempfile::tempdir().unwrap();
        let top = real(dir.path()).unwrap();
        let git = repository(&top);
        let side = annex(&top.join("side"), true).unwrap();
        assert_eq!((&side.read, side.write.len()), (&vec![git.clone()], 0));
        assert_eq!(side.repository, Some(git.clone()));
        let written = annex(&top.join("side"), false).unwrap().write;
        let names = ["objects", "refs", "logs", "worktrees/side"];
        assert_eq!(written, names.map(|name| git.join(name)));
        for keeps in [false, true] {
            let lib = annex(&top.join("app/lib"), keeps).unwrap();
            assert_eq!((lib.read, lib.write), (vec![git.join("modules/lib")], vec![]));
        }
        assert_eq!(annex(&top.join("app"), false), None);
    }

    #[test]
    fn redteam_a_git_file_opens_no_repository_that_does_not_name_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let top = real(dir.path()).unwrap();
        let git = repository(&top);
        let bait = top.join("bait");
        fs::create_dir(&bait).unwrap();
        let entry = top.join("entry");
        fs::create_dir(&entry).unwrap();
        // A directory that claims to be a worktree of the repository.
        fs::write(entry.join("commondir"), git.to_str().unwrap()).unwrap();
        fs::write(entry.join("gitdir"), bait.join(".git").to_str().unwrap()).unwrap();
        for target in [
            &git,
            &git.join("worktrees/side"),
            &git.join("modules/lib"),
            &git.join("objects"),
            &entry,
        ] {
            fs::write(bait.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
            assert_eq!(annex(&bait, true), None, "{}", target.display());
        }
        fs::remove_file(bait.join(".git")).unwrap();
        std::os::unix::fs::symlink(top.join("side/.git"), bait.join(".git")).unwrap();
        assert_eq!(annex(&bait, true), None, "a link");
    }

    #[test]
    fn a_git_directory_within_reach_needs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let top = real(dir.path()).unwrap();
        let bare = top.join(".bare");
        fs::create_dir(&bare).unwrap();
        fs::write(bare.join("config"), "[core]\n\tworktree = ..\n").unwrap();
        fs::write(top.join(".git"), "gitdir: .bare\n").unwrap();
        assert_eq!(annex(&top, true), None);
    }
}
