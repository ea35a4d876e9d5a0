//! Makes a map: takes files and returns the places to show.

use crate::cache::{Cache, Stamp};
use crate::error::MapError;
use crate::foreign::CtagsReply;
use crate::language::Language;
use crate::rank::{Focus, rank};
use crate::tags::Tags;

/// A definition to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedDefinition {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The name.
    pub name: String,
}

/// A map under construction.
#[derive(Debug, Default)]
pub struct SourceMap {
    cache: Cache,
    failed: usize,
    postponed: usize,
    unavailable: Option<String>,
}

impl SourceMap {
    /// Starts with the cache of an earlier map.
    #[must_use]
    pub fn new(cache: Cache) -> Self {
        Self {
            cache,
            ..Self::default()
        }
    }

    /// Adds a file whose language has a grammar. Calls `read` if the file is not cached, and `find` if its content is
    /// new; `None` leaves it out. A file that could not be parsed for a reason of its own is not tried until it changes.
    pub fn add(
        &mut self,
        path: &str,
        stamp: Stamp,
        read: impl FnOnce() -> Option<Vec<u8>>,
        find: impl FnOnce(Language, &[u8]) -> Result<Tags, MapError>,
    ) {
        let Some(language) = Language::of(path) else {
            return;
        };
        if self.cache.known(path, stamp) || self.unavailable.is_some() {
            return;
        }
        let Some(source) = read() else {
            self.failed += 1;
            return;
        };
        match self
            .cache
            .add(path, stamp, &source, |source| find(language, source))
        {
            Ok(()) => {}
            Err(error) if error.may_pass() => {
                self.cache.forget(path);
                match error {
                    MapError::Unavailable(why) => self.unavailable = Some(why),
                    _ => self.postponed += 1,
                }
            }
            Err(_) => self.failed += 1,
        }
    }

    /// Why files with a grammar were left out, if nothing can parse them.
    #[must_use]
    pub fn unavailable(&self) -> Option<&str> {
        self.unavailable.as_deref()
    }

    /// Whether a file without a grammar is unchanged since ctags read it.
    pub fn knows(&mut self, path: &str, stamp: Stamp) -> bool {
        self.cache.known(path, stamp)
    }

    /// The same for a file that was read: its times may have changed while its content did not.
    pub fn knows_content(&mut self, path: &str, stamp: Stamp, source: &[u8]) -> bool {
        self.cache.known_content(path, stamp, source)
    }

    /// Adds a file without a grammar and the answer of ctags, if there was one.
    pub fn add_foreign(&mut self, path: &str, stamp: Stamp, source: &[u8], answer: Option<CtagsReply>) {
        self.failed += usize::from(answer.is_none());
        let tags = answer.map(|answer| answer.tags(source)).unwrap_or_default();
        // Cached even without an answer: ctags would fail on the same content again.
        let _ = self.cache.add(path, stamp, source, |_| Ok(tags));
    }

    /// The number of files that were left for the next map.
    #[must_use]
    pub const fn postponed(&self) -> usize {
        self.postponed
    }

    /// The number of files that could not be read or parsed.
    #[must_use]
    pub const fn failed(&self) -> usize {
        self.failed
    }

    /// The number of files in the map.
    #[must_use]
    pub fn files(&self) -> usize {
        self.cache.files().count()
    }

    /// The cache, to be stored for the next map.
    #[must_use]
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The definitions with the highest weight, at most `most`.
    #[must_use]
    pub fn places(&self, focus: &Focus, most: usize) -> Vec<RankedDefinition> {
        let files: Vec<(&str, &Tags)> = self.cache.files().collect();
        let place = |file: usize, definition: usize| {
            let (path, tags) = files.get(file)?;
            let definition = tags.definitions.get(definition)?;
            Some(RankedDefinition {
                path: (*path).to_owned(),
                line: definition.line,
                name: definition.name.clone(),
            })
        };
        rank(&files, focus)
            .into_iter()
            .take(most)
            .filter_map(|ranked| place(ranked.file, ranked.definition))
            .collect()
    }
}

#[cfg(test)]
mod tests;
