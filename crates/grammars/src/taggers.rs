//! The taggers of all languages, each created when it is first needed.

use crate::tagger::Tagger;
use agentd_repo_map::{Language, MapError, Priority, TagFinder, TagFinders, Tags};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Finds the tags of files in any language.
#[derive(Debug, Default)]
pub struct Taggers(BTreeMap<Language, Tagger>);

impl TagFinder for Taggers {
    fn tags(&mut self, language: Language, source: &[u8], stop: &dyn Fn() -> bool) -> Result<Tags, MapError> {
        let tagger = match self.0.entry(language) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(place) => place.insert(Tagger::new(language)?),
        };
        match tagger.tags(source, stop) {
            Err(MapError::TooHard) if stop() => Err(MapError::Stopped),
            found => found,
        }
    }
}

/// Parses in the own process: for tests and benchmarks.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl TagFinders for InProcess {
    fn finder(&self, _: Priority) -> Box<dyn TagFinder> {
        Box::new(Taggers::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_no_fault_of_the_file() {
        let mut finder = InProcess.finder(Priority::Call);
        let source = "fn f() { g(); }\n".repeat(50_000);
        let stopped = finder.tags(Language::Rust, source.as_bytes(), &|| true);
        assert!(matches!(stopped, Err(MapError::Stopped)));
        let refused = finder.tags(Language::Rust, "(".repeat(2_000).as_bytes(), &|| false);
        assert!(matches!(refused, Err(MapError::TooHard)));
        let found = finder.tags(Language::Go, b"package a\nfunc F() {}\n", &|| false);
        assert_eq!(found.unwrap().definitions.len(), 1);
    }
}
