//! Recorded trees, and the differences between them.

use crate::archive::Archive;
use crate::error::Error;
use crate::git::Git;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The name of recorded files: the id of a git tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tree(String);

impl Tree {
    /// No files at all.
    #[must_use]
    pub fn empty() -> Self {
        Self("4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned())
    }

    /// Reads a name.
    ///
    /// # Errors
    /// It is not the id of an object.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 40 && text.bytes().all(hex) {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::BadTree(text.chars().take(64).collect()))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a recorded path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A file that can be executed.
    Executable,
    /// A symbolic link.
    Link,
}

impl Kind {
    /// As git writes it.
    #[must_use]
    pub const fn mode(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }

    pub(crate) fn of_mode(mode: &str) -> Option<Self> {
        match mode {
            "100644" | "100664" => Some(Self::File),
            "100755" => Some(Self::Executable),
            "120000" => Some(Self::Link),
            _ => None,
        }
    }
}

/// One recorded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// The id of its content.
    pub content: String,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file before; absent: it did not exist.
    pub before: Option<Item>,
    /// The file after; absent: it was deleted.
    pub after: Option<Item>,
}

/// A change from one tree to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The files before.
    pub before: Tree,
    /// The files after.
    pub after: Tree,
}

/// Several changes as one, in their order; paths that end as they began are left out.
#[must_use]
pub fn compose(parts: impl IntoIterator<Item = BTreeMap<Vec<u8>, Change>>) -> BTreeMap<Vec<u8>, Change> {
    let mut all: BTreeMap<Vec<u8>, Change> = BTreeMap::new();
    for (path, change) in parts.into_iter().flatten() {
        match all.get_mut(&path) {
            Some(earlier) => earlier.after = change.after,
            None => drop(all.insert(path, change)),
        }
    }
    all.retain(|_, change| change.before != change.after);
    all
}

impl Archive {
    /// The paths that differ between two trees.
    ///
    /// # Errors
    /// A tree is not known, or `git` failed.
    pub fn changes(&self, change: &TreeChange) -> Result<BTreeMap<Vec<u8>, Change>, Error> {
        changed(&self.git(), change)
    }

    /// All files of a tree.
    ///
    /// # Errors
    /// The tree is not known, or `git` failed.
    pub fn files(&self, tree: &Tree) -> Result<BTreeMap<Vec<u8>, Item>, Error> {
        files_of(&self.git(), tree)
    }
}

/// The paths that differ between two trees.
fn changed(git: &Git, change: &TreeChange) -> Result<BTreeMap<Vec<u8>, Change>, Error> {
    if change.before == change.after {
        return Ok(BTreeMap::new());
    }
    let args = [
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--full-index",
        "--no-abbrev",
        change.before.as_str(),
        change.after.as_str(),
    ];
    Ok(read_raw(&git.run(&args)?))
}

impl Archive {
    /// All files of a tree, by path.
    ///
    /// # Errors
    /// The tree is not known, or `git` failed.
    pub fn files_of(&self, tree: &Tree) -> Result<BTreeMap<Vec<u8>, Item>, Error> {
        files_of(&self.git(), tree)
    }
}

/// All files of a tree.
pub(crate) fn files_of(git: &Git, tree: &Tree) -> Result<BTreeMap<Vec<u8>, Item>, Error> {
    let all = TreeChange {
        before: Tree::empty(),
        after: tree.clone(),
    };
    let changes = changed(git, &all)?.into_iter();
    let files = changes.filter_map(|(path, change)| Some((path, change.after?)));
    Ok(files.collect())
}

/// Reads `:100644 100755 ID ID M\0path\0...`.
fn read_raw(output: &[u8]) -> BTreeMap<Vec<u8>, Change> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut changes = BTreeMap::new();
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let about = String::from_utf8_lossy(about);
        let mut words = about.trim_start_matches(':').split(' ');
        let (Some(mode), Some(new_mode)) = (words.next(), words.next()) else {
            continue;
        };
        let (Some(id), Some(new_id)) = (words.next(), words.next()) else {
            continue;
        };
        let item = |mode: &str, id: &str| {
            Kind::of_mode(mode).map(|kind| Item {
                kind,
                content: id.to_owned(),
            })
        };
        let change = Change {
            before: item(mode, id),
            after: item(new_mode, new_id),
        };
        changes.insert(path.to_owned(), change);
    }
    changes
}

/// A recorded path as a path.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(content: &str) -> Option<Item> {
        Some(Item {
            kind: Kind::File,
            content: content.to_owned(),
        })
    }

    fn part(path: &str, before: Option<Item>, after: Option<Item>) -> BTreeMap<Vec<u8>, Change> {
        BTreeMap::from([(path.as_bytes().to_vec(), Change { before, after })])
    }

    #[test]
    fn changes_compose_to_their_first_and_last_state() {
        let parts = [
            part("a", item("1"), item("2")),
            part("b", None, item("1")),
            part("a", item("2"), item("3")),
            part("b", item("1"), None),
        ];
        assert_eq!(compose(parts), part("a", item("1"), item("3")));
    }

    #[test]
    fn a_tree_is_named_by_forty_hex_digits() {
        assert!(Tree::parse(Tree::empty().as_str()).is_ok());
        for bad in ["", "HEAD", "--help", &"A".repeat(40), &"a".repeat(41)] {
            assert!(Tree::parse(bad).is_err(), "{bad}");
        }
    }
}
