//! The state of a directory when it was recorded last: what is unchanged since then is not read again.

use crate::error::{Error, at};
use crate::trees::{Item, Kind, Tree};
use rustix::fs::Stat;
use std::fs;
use std::path::Path;

/// The first bytes of the file, with the version of its form.
const MAGIC: &[u8] = b"agentd files 1\n";
/// A file that changed this shortly before its recording may have changed again within the same tick of its clock.
pub(crate) const TICK_NS: i128 = 1_000_000_000;

/// What `stat` says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    pub(crate) size: u64,
    pub(crate) inode: u64,
    pub(crate) mode: u32,
    pub(crate) modified_ns: i128,
    pub(crate) changed_ns: i128,
}

impl Seen {
    pub(crate) fn of(stat: &Stat) -> Self {
        let ns = |seconds: i64, nanos: u64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Self {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            inode: stat.st_ino,
            mode: stat.st_mode,
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// One recorded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) seen: Seen,
    pub(crate) kind: Kind,
    pub(crate) content: [u8; 20],
}

impl Entry<'_> {
    /// The file as it was recorded.
    pub(crate) fn item(&self) -> Item {
        Item {
            kind: self.kind,
            content: crate::take::hex(&self.content),
        }
    }
}

/// The state of a directory when it was recorded last.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    bytes: Vec<u8>,
    /// Where each entry begins, in the order of the paths.
    starts: Vec<usize>,
    /// When the walk began.
    pub(crate) began_ns: i128,
    /// The last commit and its tree; none: nothing was recorded.
    pub(crate) last: Option<(String, Tree)>,
}

impl Stats {
    /// Reads a file; a missing or damaged one is the same as none, then every file is read again.
    pub(crate) fn load(path: &Path) -> Self {
        fs::read(path).ok().and_then(Self::parse).unwrap_or_default()
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(body) != u32::from_le_bytes(*sum) {
            return None;
        }
        let length = body.len();
        let mut cursor = Cursor { bytes: body, at: 0 };
        if cursor.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let began_ns = cursor.i128()?;
        let commit = String::from_utf8(cursor.take(40)?.to_vec()).ok()?;
        let tree = Tree::parse(std::str::from_utf8(cursor.take(40)?).ok()?).ok()?;
        let mut starts = Vec::new();
        while cursor.at < length {
            starts.push(cursor.at);
            cursor.entry()?;
        }
        Some(Self {
            bytes,
            starts,
            began_ns,
            last: Some((commit, tree)),
        })
    }

    /// Writes a file: whole, or not at all.
    pub(crate) fn store<'a>(
        path: &Path,
        (began_ns, commit, tree): (i128, &str, &Tree),
        entries: impl Iterator<Item = Entry<'a>>,
    ) -> Result<(), Error> {
        let mut out = MAGIC.to_vec();
        out.extend(began_ns.to_le_bytes());
        out.extend(commit.as_bytes());
        out.extend(tree.as_str().as_bytes());
        for entry in entries {
            let seen = &entry.seen;
            out.extend(u32::try_from(entry.path.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend(entry.path);
            out.extend(seen.size.to_le_bytes());
            out.extend(seen.inode.to_le_bytes());
            out.extend(seen.mode.to_le_bytes());
            out.extend(seen.modified_ns.to_le_bytes());
            out.extend(seen.changed_ns.to_le_bytes());
            out.push(match entry.kind {
                Kind::File => 0,
                Kind::Executable => 1,
                Kind::Link => 2,
            });
            out.extend(entry.content);
        }
        out.extend(crc32fast::hash(&out).to_le_bytes());
        let new = path.with_extension("new");
        fs::write(&new, out).map_err(at(&new))?;
        fs::rename(&new, path).map_err(at(path))
    }

    /// All entries, in the order of their paths.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.starts.iter().filter_map(|start| self.entry(*start))
    }

    fn entry(&self, at: usize) -> Option<Entry<'_>> {
        let mut cursor = Cursor {
            bytes: &self.bytes,
            at,
        };
        cursor.entry()
    }

    /// The entry of a path.
    pub(crate) fn find(&self, path: &[u8]) -> Option<Entry<'_>> {
        let at = self.first_from(path);
        self.starts
            .get(at)
            .and_then(|start| self.entry(*start))
            .filter(|entry| entry.path == path)
    }

    /// Whether a path, or one below it, is recorded.
    pub(crate) fn has_below(&self, path: &[u8]) -> bool {
        let below = [path, b"/"].concat();
        let next = self.starts.get(self.first_from(&below));
        let next = next.and_then(|start| self.entry(*start));
        next.is_some_and(|entry| entry.path.starts_with(&below)) || self.find(path).is_some()
    }

    fn first_from(&self, path: &[u8]) -> usize {
        self.starts
            .partition_point(|start| self.entry(*start).is_some_and(|entry| entry.path < path))
    }

    /// Whether a file with this entry is certainly unchanged.
    pub(crate) fn vouches(&self, entry: &Entry<'_>, now: &Seen) -> bool {
        let safe = self.began_ns.saturating_sub(TICK_NS);
        entry.seen == *now && now.modified_ns < safe && now.changed_ns < safe
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn i128(&mut self) -> Option<i128> {
        self.array().map(i128::from_le_bytes)
    }

    fn entry(&mut self) -> Option<Entry<'a>> {
        let length = usize::try_from(u32::from_le_bytes(self.array()?)).ok()?;
        let path = self.take(length)?;
        let seen = Seen {
            size: u64::from_le_bytes(self.array()?),
            inode: u64::from_le_bytes(self.array()?),
            mode: u32::from_le_bytes(self.array()?),
            modified_ns: self.i128()?,
            changed_ns: self.i128()?,
        };
        let kind = match self.array::<1>()? {
            [0] => Kind::File,
            [1] => Kind::Executable,
            [2] => Kind::Link,
            _ => return None,
        };
        let content = self.array()?;
        Some(Entry {
            path,
            seen,
            kind,
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Entry<'_> {
        Entry {
            path: path.as_bytes(),
            seen: Seen {
                size: 3,
                ..Seen::default()
            },
            kind: Kind::Link,
            content: [7; 20],
        }
    }

    #[test]
    fn a_damaged_file_is_the_same_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stats");
        let names = ["a", "a.b", "a/b", "a/c/d", "b"];
        let about = (5, "c".repeat(40), Tree::empty());
        Stats::store(
            &path,
            (about.0, &about.1, &about.2),
            names.iter().map(|name| entry(name)),
        )
        .unwrap();
        let stats = Stats::load(&path);
        assert_eq!(stats.last, Some((about.1, about.2)));
        let read: Vec<_> = stats.entries().collect();
        assert_eq!(read, names.map(entry));
        assert_eq!(stats.find(b"a/b"), Some(entry("a/b")));
        assert_eq!(stats.find(b"a/c"), None);
        assert!(stats.has_below(b"a/c") && stats.has_below(b"b") && !stats.has_below(b"a/c/e"));
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, whole.get(..length).unwrap()).unwrap();
            assert_eq!(Stats::load(&path).last, None);
        }
    }
}
