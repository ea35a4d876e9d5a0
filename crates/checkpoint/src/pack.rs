//! Writes a small recording in this process, as one pack: to start `git` takes longer than everything else about it.
//!
//! The forms are those of gitformat-pack(5): a pack of version 2 without deltas, and its index of version 2.

use crate::error::{Error, at};
use crate::take::hex;
use crate::trees::Kind;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rustix::fs::{Mode, OFlags, fsync, open};
use sha1::{Digest as _, Sha1};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The id of an object.
pub(crate) type Id = [u8; 20];

/// What an object is, with its number in a pack.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum What {
    Commit = 1,
    Tree = 2,
    Blob = 3,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }
}

/// The id that git gives to an object.
pub(crate) fn id_of(what: What, body: &[u8]) -> Id {
    let mut hash = Sha1::new();
    hash.update(format!("{} {}\0", what.name(), body.len()));
    hash.update(body);
    hash.finalize().into()
}

/// An object in a pack: the sum of its bytes there, and where they begin.
#[derive(Debug, Clone, Copy)]
struct Place {
    sum: u32,
    start: u32,
}

/// A pack in the making.
#[derive(Debug)]
pub(crate) struct Pack {
    bytes: Vec<u8>,
    places: BTreeMap<Id, Place>,
}

/// The bytes before the first object; the number of objects follows at the end.
const HEAD: [u8; 12] = *b"PACK\0\0\0\x02\0\0\0\0";

impl Pack {
    pub(crate) fn new() -> Self {
        Self {
            bytes: HEAD.to_vec(),
            places: BTreeMap::new(),
        }
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, what: What, body: &[u8]) -> io::Result<Id> {
        let id = id_of(what, body);
        if self.places.contains_key(&id) {
            return Ok(id);
        }
        let start = self.bytes.len();
        self.bytes.extend(head(what, body.len()));
        let mut out = ZlibEncoder::new(&mut self.bytes, Compression::fast());
        out.write_all(body)?;
        out.finish()?;
        let sum = crc32fast::hash(self.bytes.get(start..).unwrap_or_default());
        let start = u32::try_from(start).map_err(io::Error::other)?;
        self.places.insert(id, Place { sum, start });
        Ok(id)
    }

    /// Writes it into a directory of packs: whole, or not at all, and on disk when this returns.
    pub(crate) fn write(mut self, packs: &Path) -> Result<(), Error> {
        let count = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        if let Some(field) = self.bytes.get_mut(8..12) {
            field.copy_from_slice(&count.to_be_bytes());
        }
        let sum: Id = Sha1::digest(&self.bytes).into();
        self.bytes.extend(sum);
        fs::create_dir_all(packs).map_err(at(packs))?;
        let name = format!("pack-{}", hex(&sum));
        // A pack counts from when its index is there.
        durable(packs, &format!("{name}.pack"), &self.bytes)?;
        durable(packs, &format!("{name}.idx"), &index(&self.places, sum))?;
        let dir = open(
            packs,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        dir.and_then(fsync).map_err(at(packs))
    }
}

/// Writes a file under a name that is forgotten if it is not whole.
fn durable(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let new = dir.join(format!("tmp_{name}"));
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o444)
        .open(&new);
    let written = file.and_then(|mut file: File| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(at(&new))?;
    fs::rename(&new, dir.join(name)).map_err(at(&new))
}

/// The kind and the length of an object: four bits of the length, then seven in each byte that follows.
fn head(what: What, length: usize) -> Vec<u8> {
    let more = |rest: usize| if rest > 0 { 0x80 } else { 0 };
    let low = |value: usize, bits: usize| u8::try_from(value & bits).unwrap_or_default();
    let mut rest = length >> 4;
    let mut bytes = vec![more(rest) | (what as u8) << 4 | low(length, 0xf)];
    while rest > 0 {
        let next = rest >> 7;
        bytes.push(more(next) | low(rest, 0x7f));
        rest = next;
    }
    bytes
}

fn index(places: &BTreeMap<Id, Place>, pack: Id) -> Vec<u8> {
    let mut bytes = b"\xfftOc\0\0\0\x02".to_vec();
    let mut count: u32 = 0;
    let mut ids = places.keys().peekable();
    for first in 0..=u8::MAX {
        while ids
            .next_if(|id| id.first().is_some_and(|byte| *byte <= first))
            .is_some()
        {
            count += 1;
        }
        bytes.extend(count.to_be_bytes());
    }
    bytes.extend(places.keys().flatten());
    bytes.extend(places.values().flat_map(|place| place.sum.to_be_bytes()));
    bytes.extend(places.values().flat_map(|place| place.start.to_be_bytes()));
    bytes.extend(pack);
    let sum: Id = Sha1::digest(&bytes).into();
    bytes.extend(sum);
    bytes
}

/// One file of a tree: its path, its kind, the id of its content.
pub(crate) type Leaf<'a> = (&'a [u8], Kind, Id);

/// The trees of files that are sorted by their paths, each with its id. The last one is the root.
pub(crate) fn trees(leaves: &[Leaf<'_>]) -> Vec<(Id, Vec<u8>)> {
    let mut all = Vec::new();
    tree(leaves, 0, &mut all);
    all
}

/// The tree of files whose paths share their first bytes, up to a slash. Paths and the entries of trees have the same order.
fn tree(mut leaves: &[Leaf<'_>], shared: usize, all: &mut Vec<(Id, Vec<u8>)>) -> Id {
    let mut body = Vec::new();
    while let Some((path, kind, content)) = leaves.first() {
        let rest = path.get(shared..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == b'/') else {
            entry(&mut body, kind.mode(), rest, content);
            leaves = leaves.get(1..).unwrap_or_default();
            continue;
        };
        let prefix = path.get(..=shared + length).unwrap_or_default();
        let inside = leaves.partition_point(|(path, ..)| path.starts_with(prefix));
        let (within, after) = leaves.split_at(inside.max(1));
        let id = tree(within, prefix.len(), all);
        entry(&mut body, "40000", rest.get(..length).unwrap_or_default(), &id);
        leaves = after;
    }
    let id = id_of(What::Tree, &body);
    all.push((id, body));
    id
}

fn entry(body: &mut Vec<u8>, mode: &str, name: &[u8], id: &Id) {
    body.extend(mode.as_bytes());
    body.push(b' ');
    body.extend(name);
    body.push(0);
    body.extend(id);
}

/// Adds the trees of the files of now that the files of then did not have. Returns the id of the root.
pub(crate) fn add_trees(pack: &mut Pack, then: &[Leaf<'_>], now: &[Leaf<'_>]) -> io::Result<Id> {
    // Nothing was recorded before: not even the empty tree.
    let then = if then.is_empty() { Vec::new() } else { trees(then) };
    let known: BTreeSet<Id> = then.into_iter().map(|(id, _)| id).collect();
    let mut root = id_of(What::Tree, b"");
    for (id, body) in trees(now) {
        root = id;
        if !known.contains(&id) {
            pack.add(What::Tree, &body)?;
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_four_and_then_seven_bits() {
        assert_eq!(head(What::Blob, 15), [0x3f]);
        assert_eq!(head(What::Blob, 16), [0xb0, 0x01]);
        assert_eq!(head(What::Tree, 0x7ff), [0xaf, 0x7f]);
        assert_eq!(head(What::Commit, 0x800), [0x90, 0x80, 0x01]);
    }

    #[test]
    fn known_trees_are_not_written_again() {
        let leaf = |path: &'static str, n: u8| (path.as_bytes(), Kind::File, [n; 20]);
        let then = [leaf("a-b", 1), leaf("a.b/x", 2), leaf("a/b/c", 3), leaf("a0", 4)];
        let mut now = then;
        now[1].2 = [9; 20];
        let mut pack = Pack::new();
        let root = add_trees(&mut pack, &then, &now).unwrap();
        // The root and `a.b`, but neither `a` nor `a/b`.
        assert_eq!(pack.places.len(), 2);
        assert!(pack.places.contains_key(&root));
        assert_eq!(trees(&now).len(), 4);
        let mut none = Pack::new();
        assert_eq!(
            hex(&add_trees(&mut none, &then, &[]).unwrap()),
            crate::Tree::empty().as_str()
        );
    }
}
