//! Making a map: files in, the places to show out.

use crate::cache::{Cache, Stamp};
use crate::error::MapError;
use crate::foreign::Answer;
use crate::language::Language;
use crate::rank::{Focus, rank};
use crate::tagger::Tagger;
use crate::tags::Tags;
use std::collections::BTreeMap;

/// A definition to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The name.
    pub name: String,
}

/// A map while it is made.
#[derive(Debug, Default)]
pub struct SourceMap {
    cache: Cache,
    taggers: BTreeMap<Language, Tagger>,
    failed: usize,
}

impl SourceMap {
    /// Begins with what an earlier one knew.
    #[must_use]
    pub fn new(cache: Cache) -> Self {
        Self {
            cache,
            ..Self::default()
        }
    }

    /// Takes a file whose language has a grammar. `read` is called when it is not known yet; `None` leaves it out.
    /// `stop` is asked during the parse; a file that was stopped is tried again next time.
    pub fn add(
        &mut self,
        path: &str,
        stamp: Stamp,
        read: impl FnOnce() -> Option<Vec<u8>>,
        stop: &dyn Fn() -> bool,
    ) {
        let Some(language) = Language::of(path) else {
            return;
        };
        if self.cache.known(path, stamp) {
            return;
        }
        let Some(source) = read() else {
            self.failed += 1;
            return;
        };
        if !self.taggers.contains_key(&language)
            && let Ok(tagger) = Tagger::new(language)
        {
            self.taggers.insert(language, tagger);
        }
        let Some(tagger) = self.taggers.get_mut(&language) else {
            self.failed += 1;
            return;
        };
        let parse = |source: &[u8]| tagger.tags(source, stop);
        match self.cache.add(path, stamp, &source, parse) {
            Ok(()) => {}
            Err(MapError::TooHard) if stop() => self.cache.forget(path),
            Err(_) => self.failed += 1,
        }
    }

    /// Whether a file without a grammar is as it was when ctags was asked about it.
    pub fn knows(&mut self, path: &str, stamp: Stamp) -> bool {
        self.cache.known(path, stamp)
    }

    /// The same for one that was read: its times may have changed and its content not.
    pub fn knows_content(&mut self, path: &str, stamp: Stamp, source: &[u8]) -> bool {
        self.cache.known_content(path, stamp, source)
    }

    /// Takes a file without a grammar and what ctags said of it; `None` when it had no answer.
    pub fn add_foreign(&mut self, path: &str, stamp: Stamp, source: &[u8], answer: Option<Answer>) {
        self.failed += usize::from(answer.is_none());
        let tags = answer.map(|answer| answer.tags(source)).unwrap_or_default();
        // Without the fault: what ctags cannot read it cannot read the next time either.
        let _ = self.cache.add(path, stamp, source, |_| Ok(tags));
    }

    /// How many files could not be read or parsed.
    #[must_use]
    pub const fn failed(&self) -> usize {
        self.failed
    }

    /// How many files are in it.
    #[must_use]
    pub fn files(&self) -> usize {
        self.cache.files().count()
    }

    /// What is known, to be kept for the next map.
    #[must_use]
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The weightiest definitions, at most `most`.
    #[must_use]
    pub fn places(&self, focus: &Focus, most: usize) -> Vec<Place> {
        let files: Vec<(&str, &Tags)> = self.cache.files().collect();
        let place = |file: usize, definition: usize| {
            let (path, tags) = files.get(file)?;
            let definition = tags.definitions.get(definition)?;
            Some(Place {
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
