//! The state of a workspace's files and commits, to tell whether there is work that nobody fetched.

use crate::commits;
use crate::error::{WorkspaceError, at};
use crate::record::Record;
use agentd_file_work::FileWork;
use agentd_git::{GitEnvironment, Run, git};
use agentd_protocol::WorkspaceKind;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// agentd's own repository for a workspace: its configuration names nothing, and its index is agentd's own.
pub(crate) const OWN_GIT: &str = "git";
/// The option for agentd's own look at a workspace: only the repository's own files say what is ignored.
const NO_EXCLUDES: &str = "core.excludesFile=/dev/null";
/// The most entries of a copy that are compared.
const MAX_ENTRIES: usize = 2_000_000;

/// Numbers the looks of this process.
static LOOKS: AtomicU64 = AtomicU64::new(0);

/// What a workspace holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The commits that its own references name.
    pub heads: BTreeMap<String, String>,
    /// The tree of its files without ignored ones, or for a copy a digest of its directory.
    pub tree: String,
}

impl State {
    /// What of this state is in none of the others, in words; `None` if nothing is.
    pub(crate) fn beyond(&self, initial: &Self, fetched: &[Self]) -> Option<String> {
        let known = || std::iter::once(initial).chain(fetched);
        let mut what = Vec::new();
        let new = |head: &&String| !known().any(|state| state.heads.values().any(|known| known == *head));
        let commits = self.heads.values().filter(new).count();
        if commits > 0 {
            what.push("commits");
        }
        if !known().any(|state| state.tree == self.tree) {
            what.push("changed files");
        }
        (!what.is_empty()).then(|| what.join(" and "))
    }
}

/// What of a workspace can be fetched at once: its files, and the commits that led to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    pub(crate) state: State,
    /// The paths that differ from the beginning; `None`: nobody knows, as in a copy.
    pub changed: Option<Vec<Vec<u8>>>,
}

/// The present files of a workspace, with the commit that is checked out. Commits of other branches and of the stash are not
/// part of the files.
pub(crate) async fn present(
    environment: &GitEnvironment,
    dir: &Path,
    record: &Record,
    within: Duration,
) -> Result<Present, WorkspaceError> {
    let mut state = state(environment, dir, record, within).await?;
    let (Some(initial), true) = (&record.initial, record.workspace.kind != WorkspaceKind::Copy) else {
        return Ok(Present { state, changed: None });
    };
    if record.workspace.kind == WorkspaceKind::Clone {
        let git_dir = PathBuf::from(&record.workspace.path).join(".git");
        let files = FileWork::of_session(&record.session.to_string());
        let head = files
            .run(dir, within, move || commits::checked_out(&git_dir))
            .await?;
        state.heads.retain(|name, _| Some(name) == head.as_ref());
    }
    let words = [
        "diff-tree",
        "-r",
        "-z",
        "--name-only",
        "--no-renames",
        &initial.tree,
        &state.tree,
    ];
    let run = Run::new(dir, within, words).repository(&dir.join(OWN_GIT), None);
    let listed = git(environment, run).await?.output;
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(Present {
        changed: Some(paths.map(<[u8]>::to_vec).collect()),
        state,
    })
}

/// The state of a whole workspace.
pub(crate) async fn state(
    environment: &GitEnvironment,
    dir: &Path,
    record: &Record,
    within: Duration,
) -> Result<State, WorkspaceError> {
    let tree = PathBuf::from(&record.workspace.path);
    let files = FileWork::of_session(&record.session.to_string());
    if record.workspace.kind == WorkspaceKind::Copy {
        let digest = files
            .run(dir, within, move || manifest(&tree).map_err(at(&tree)))
            .await??;
        return Ok(State {
            heads: BTreeMap::new(),
            tree: digest,
        });
    }
    // Several callers may look at the same time.
    let number = LOOKS.fetch_add(1, Ordering::Relaxed);
    let (own, index) = (dir.join(OWN_GIT), dir.join(format!("state-{number}.index")));
    let (kind, place) = (record.workspace.kind, record.worktree_dir());
    let (git_dir, from, to) = (tree.join(".git"), own.join("index"), index.clone());
    let heads = files
        .run(dir, within, move || {
            fs::copy(&from, &to).map_err(at(&from))?;
            let heads = match (kind, place) {
                // Its branches are in the person's repository already.
                (WorkspaceKind::Worktree, Some(place)) => {
                    commits::detached(&place).map(|head| head.into_iter().collect())
                }
                _ => commits::heads(&git_dir),
            };
            heads.ok_or_else(|| at(&git_dir)(io::Error::other("its references cannot be read")))
        })
        .await??;
    let written = write_tree(environment, &own, (&tree, &index), NO_EXCLUDES.to_owned(), within).await;
    let _ = files.run(dir, within, move || fs::remove_file(index)).await;
    Ok(State {
        heads,
        tree: written?,
    })
}

/// Records the files of a directory as a tree in agentd's own repository. The index must name no submodule: git would look
/// into it, and so read the configuration there.
pub(crate) async fn write_tree(
    environment: &GitEnvironment,
    own: &Path,
    (tree, index): (&Path, &Path),
    excludes: String,
    within: Duration,
) -> Result<String, WorkspaceError> {
    let run = |words: &[&str]| {
        Run::new(tree, within, words)
            .repository(own, Some(tree))
            .variable("GIT_INDEX_FILE", index)
            .option(excludes.clone())
            .option("core.looseCompression=0")
    };
    git(environment, run(&["add", "--all", "--ignore-errors", "--", "."])).await?;
    Ok(git(environment, run(&["write-tree"])).await?.text())
}

/// A digest of the names, kinds, sizes and times in a directory.
fn manifest(top: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    let mut queue = VecDeque::from([PathBuf::new()]);
    while let Some(dir) = queue.pop_front() {
        for entry in fs::read_dir(top.join(&dir))? {
            let entry = entry?;
            let (path, found) = (dir.join(entry.file_name()), entry.metadata()?);
            if lines.len() >= MAX_ENTRIES {
                return Err(io::Error::other("too many files to compare"));
            }
            let mut line = path.as_os_str().as_bytes().to_vec();
            line.push(0);
            // The times of a directory change with the names in it, which are lines of their own.
            let (size, seconds, nanos) = match found.is_dir() {
                true => (0, 0, 0),
                false => (found.size(), found.mtime(), found.mtime_nsec()),
            };
            line.extend_from_slice(format!("{:o} {size} {seconds}.{nanos}", found.mode()).as_bytes());
            lines.push(line);
            if found.is_dir() {
                queue.push_back(path);
            }
        }
    }
    lines.sort();
    let mut digest = Sha256::new();
    for line in lines {
        digest.update(u64::try_from(line.len()).unwrap_or(u64::MAX).to_le_bytes());
        digest.update(line);
    }
    let mut text = String::new();
    for byte in digest.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(heads: &[(&str, &str)], tree: &str) -> State {
        State {
            heads: heads
                .iter()
                .map(|(name, head)| ((*name).to_owned(), (*head).to_owned()))
                .collect(),
            tree: tree.to_owned(),
        }
    }

    #[test]
    fn only_what_nobody_fetched_counts_as_work() {
        let initial = state(&[("refs/heads/x", "1")], "t");
        let worked = state(&[("refs/heads/x", "2")], "u");
        assert_eq!(initial.beyond(&initial, &[]), None);
        assert_eq!(
            worked.beyond(&initial, &[]).as_deref(),
            Some("commits and changed files")
        );
        assert_eq!(worked.beyond(&initial, std::slice::from_ref(&worked)), None);
        let more = state(&[("refs/heads/x", "2"), ("refs/heads/y", "3")], "u");
        assert_eq!(more.beyond(&initial, &[worked]).as_deref(), Some("commits"));
        // A branch that was deleted, or moved to a known commit, is no work.
        assert_eq!(state(&[], "t").beyond(&initial, &[]), None);
        assert_eq!(state(&[("refs/heads/z", "1")], "t").beyond(&initial, &[]), None);
    }

    #[test]
    fn a_manifest_changes_with_contents_modes_and_names() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, "1").unwrap();
        let first = manifest(dir.path()).unwrap();
        assert_eq!(manifest(dir.path()).unwrap(), first);
        fs::write(&file, "12").unwrap();
        let second = manifest(dir.path()).unwrap();
        assert_ne!(second, first);
        fs::create_dir(dir.path().join("b")).unwrap();
        assert_ne!(manifest(dir.path()).unwrap(), second);
    }
}
