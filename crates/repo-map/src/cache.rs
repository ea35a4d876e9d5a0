//! Caches the tags of files from earlier maps: an unchanged file is neither read nor parsed again.

use crate::error::MapError;
use crate::tags::Tags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Incremented when grammars, queries or the format change, so that old tags are discarded.
const VERSION: u32 = 1;
/// The largest cache to read or write.
const MAX_BYTES: usize = 256 << 20;

/// Identifies the state of a file without reading it: derived from its device, inode, size and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp(pub u64);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    stamp: Stamp,
    /// The first half of the SHA-256 of the content.
    content: [u8; 16],
    tags: Tags,
}

/// Tags by path; writing the cache of a whole map drops entries that the map did not use.
#[derive(Debug, Default)]
pub struct Cache {
    old: BTreeMap<String, Entry>,
    new: BTreeMap<String, Entry>,
    parsed: usize,
}

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    entries: BTreeMap<&'a String, &'a Entry>,
}

#[derive(Deserialize)]
struct Read {
    version: u32,
    entries: BTreeMap<String, Entry>,
}

impl Cache {
    /// Reads the result of [`Cache::bytes`].
    ///
    /// # Errors
    /// The cache has another version, is too large, or is damaged: start with an empty one.
    pub fn read(bytes: &[u8]) -> Result<Self, MapError> {
        if bytes.len() > MAX_BYTES {
            return Err(MapError::Cache("it is too large".to_owned()));
        }
        let read: Read = rmp_serde::from_slice(bytes).map_err(|error| MapError::Cache(error.to_string()))?;
        if read.version != VERSION {
            return Err(MapError::Cache(format!("its version is {}", read.version)));
        }
        Ok(Self {
            old: read.entries,
            ..Self::default()
        })
    }

    /// Serializes the cache for the next map; `None` if it is too large. If this map is not `whole`, it keeps the entries
    /// of files that the map did not reach.
    ///
    /// # Errors
    /// The cache cannot be serialized.
    pub fn bytes(&self, whole: bool) -> Result<Option<Vec<u8>>, MapError> {
        let rest = self.old.iter().filter(|_| !whole);
        let written = Written {
            version: VERSION,
            entries: rest.chain(&self.new).collect(),
        };
        let bytes = rmp_serde::to_vec(&written).map_err(|error| MapError::Cache(error.to_string()))?;
        Ok((bytes.len() <= MAX_BYTES).then_some(bytes))
    }

    /// Whether it differs from what was read.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.parsed > 0 || !self.old.is_empty()
    }

    /// The number of files that had to be parsed.
    #[must_use]
    pub const fn parsed(&self) -> usize {
        self.parsed
    }

    /// The files and their tags, by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Tags)> {
        self.new.iter().map(|(path, entry)| (path.as_str(), &entry.tags))
    }

    /// Removes a file that was not parsed after all, so that the next map tries it again.
    pub(crate) fn forget(&mut self, path: &str) {
        if self.new.remove(path).is_some() {
            self.parsed = self.parsed.saturating_sub(1);
        }
    }

    /// Reuses the tags of a file with an unchanged stamp. Returns whether it had them.
    pub fn known(&mut self, path: &str, stamp: Stamp) -> bool {
        if self.old.get(path).is_none_or(|entry| entry.stamp != stamp) {
            return false;
        }
        if let Some((path, entry)) = self.old.remove_entry(path) {
            self.new.insert(path, entry);
        }
        true
    }

    /// Reuses the tags of a file that was read, if its content is unchanged. Returns whether it had them.
    pub fn known_content(&mut self, path: &str, stamp: Stamp, source: &[u8]) -> bool {
        let content = hash(source);
        if self.old.get(path).is_none_or(|entry| entry.content != content) {
            return false;
        }
        if let Some((path, entry)) = self.old.remove_entry(path) {
            self.new.insert(path, Entry { stamp, ..entry });
        }
        true
    }

    /// Adds a file that was read, with the tags of equal content or else those from `parse`.
    ///
    /// # Errors
    /// Those of `parse`; then the file is in no map until it changes and is parsed again.
    pub fn add(
        &mut self,
        path: &str,
        stamp: Stamp,
        source: &[u8],
        parse: impl FnOnce(&[u8]) -> Result<Tags, MapError>,
    ) -> Result<(), MapError> {
        let content = hash(source);
        let (tags, result) = match self.old.remove(path).filter(|entry| entry.content == content) {
            Some(entry) => (entry.tags, Ok(())),
            None => {
                self.parsed += 1;
                match parse(source) {
                    Ok(tags) => (tags, Ok(())),
                    Err(error) => (Tags::default(), Err(error)),
                }
            }
        };
        self.new.insert(path.to_owned(), Entry { stamp, content, tags });
        result
    }
}

fn hash(source: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    for (to, from) in half.iter_mut().zip(Sha256::digest(source)) {
        *to = from;
    }
    half
}

#[cfg(test)]
mod tests;
