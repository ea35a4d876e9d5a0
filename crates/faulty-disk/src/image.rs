//! The contents of the disk after a power loss.

use crate::record::{Inode, ROOT, Record};
use crate::tree::put;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// What happens to changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All survive: only the program died.
    Nothing,
    /// None survives.
    Everything,
    /// Some survive, in any order, and the last bytes of a write may be lost; this seed decides.
    Some(u64),
}

/// The files on the disk after a power loss.
#[derive(Debug)]
pub struct Image {
    files: BTreeMap<Inode, File>,
    names: BTreeMap<Inode, BTreeMap<OsString, Inode>>,
    /// Changes of names that were not synced, in order.
    waiting: Vec<Record>,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    waiting: Vec<Record>,
}

impl Image {
    /// The result of these changes after a loss.
    #[must_use]
    pub fn after_power_loss<'a>(records: impl IntoIterator<Item = &'a Record>, loss: Loss) -> Self {
        let mut image = Self {
            files: BTreeMap::new(),
            names: BTreeMap::from([(ROOT, BTreeMap::new())]),
            waiting: Vec::new(),
        };
        for record in records {
            image.follow(record);
        }
        image.lose(loss);
        image
    }

    fn follow(&mut self, record: &Record) {
        match record {
            Record::Write { inode, .. } | Record::Resize { inode, .. } => {
                self.file(*inode).waiting.push(record.clone());
            }
            Record::Sync { inode } => self.file(*inode).settle(),
            Record::LostSync { inode } => self.file(*inode).waiting.clear(),
            Record::Link { .. } | Record::Unlink { .. } | Record::Rename { .. } => {
                self.waiting.push(record.clone());
            }
            Record::SyncNames { parent } => {
                let (settled, waiting) = settled_by(std::mem::take(&mut self.waiting), *parent);
                self.waiting = waiting;
                settled.iter().for_each(|change| self.rename(change));
            }
            Record::Said(_) => {}
        }
    }

    fn file(&mut self, inode: Inode) -> &mut File {
        self.files.entry(inode).or_default()
    }

    fn rename(&mut self, change: &Record) {
        match change {
            Record::Link {
                parent,
                name,
                inode,
                directory,
            } => {
                self.names
                    .entry(*parent)
                    .or_default()
                    .insert(name.clone(), *inode);
                if *directory {
                    self.names.entry(*inode).or_default();
                } else {
                    self.files.entry(*inode).or_default();
                }
            }
            Record::Unlink { parent, name } => {
                self.names.entry(*parent).or_default().remove(name);
            }
            Record::Rename { from, to } => {
                let moved = self.names.entry(from.0).or_default().remove(&from.1);
                if let Some(inode) = moved {
                    self.names.entry(to.0).or_default().insert(to.1.clone(), inode);
                }
            }
            _ => {}
        }
    }

    fn lose(&mut self, loss: Loss) {
        let waiting = std::mem::take(&mut self.waiting);
        let kept = match loss {
            Loss::Nothing => waiting.len(),
            Loss::Everything => 0,
            // File systems write names in order.
            Loss::Some(seed) => below(&mut { seed }, waiting.len() + 1),
        };
        for change in waiting.iter().take(kept) {
            self.rename(change);
        }
        for (inode, file) in &mut self.files {
            match loss {
                Loss::Nothing => file.settle(),
                Loss::Everything => file.waiting.clear(),
                Loss::Some(seed) => file.lose(seed ^ inode.rotate_left(32)),
            }
        }
    }

    /// Writes the files below a directory.
    ///
    /// # Errors
    /// They cannot be written there.
    pub fn write_to(&self, directory: &Path) -> io::Result<()> {
        self.write_names(ROOT, directory)
    }

    fn write_names(&self, parent: Inode, directory: &Path) -> io::Result<()> {
        std::fs::create_dir_all(directory)?;
        for (name, inode) in self.names.get(&parent).into_iter().flatten() {
            let path = directory.join(name);
            if self.names.contains_key(inode) {
                self.write_names(*inode, &path)?;
            } else if let Some(file) = self.files.get(inode) {
                std::fs::write(path, &file.bytes)?;
            }
        }
        Ok(())
    }
}

impl File {
    fn apply(&mut self, change: &Record) {
        match change {
            Record::Write { offset, bytes, .. } => put(&mut self.bytes, *offset, bytes),
            Record::Resize { size, .. } => {
                self.bytes.resize(usize::try_from(*size).unwrap_or(usize::MAX), 0);
            }
            _ => {}
        }
    }

    fn settle(&mut self) {
        for change in std::mem::take(&mut self.waiting) {
            self.apply(&change);
        }
    }

    /// Each change survives, is lost, or survives up to some byte, independent of later changes.
    fn lose(&mut self, mut seed: u64) {
        for change in std::mem::take(&mut self.waiting) {
            match (below(&mut seed, 3), change) {
                (0, _) => {}
                (1, Record::Write { inode, offset, bytes }) => {
                    let length = below(&mut seed, bytes.len() + 1);
                    let bytes = bytes.slice(..length);
                    self.apply(&Record::Write { inode, offset, bytes });
                }
                (_, change) => self.apply(&change),
            }
        }
    }
}

/// The changes that a sync of a directory makes durable, and those that stay pending. A move between two directories is one
/// change, so it also makes the preceding changes in the other one durable.
fn settled_by(waiting: Vec<Record>, directory: Inode) -> (Vec<Record>, Vec<Record>) {
    let mut directories = BTreeSet::from([directory]);
    let (mut settled, mut rest) = (Vec::new(), Vec::new());
    for change in waiting.into_iter().rev() {
        let of = match &change {
            Record::Link { parent, .. } | Record::Unlink { parent, .. } => [*parent, *parent],
            Record::Rename { from, to } => [from.0, to.0],
            _ => continue,
        };
        if of.iter().any(|inode| directories.contains(inode)) {
            directories.extend(of);
            settled.push(change);
        } else {
            rest.push(change);
        }
    }
    settled.reverse();
    rest.reverse();
    (settled, rest)
}

/// A number below a bound (splitmix64).
fn below(seed: &mut u64, bound: usize) -> usize {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
    usize::try_from((mixed ^ (mixed >> 31)) % bound).unwrap_or(0)
}
