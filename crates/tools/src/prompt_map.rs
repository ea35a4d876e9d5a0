//! A source map for a prompt, in two steps: the files that it would show, which the caller judges, and its text.

use crate::run::Abandoned;
use crate::source_tree::{Parsers, Tree};
use crate::walk::Patience;
use agentd_repo_map::{Focus, RankedDefinition, TagFinders};
use agentd_sandbox::{Beneath, SandboxError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most files in a prompt's map; each of them is judged.
const MAX_FILES: usize = 100;
/// The most definitions in them.
const MAX_PLACES: usize = 2_000;

/// The directory in which maps are stored.
#[must_use]
pub fn map_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("maps")
}

/// The highest-ranked definitions of a source tree. Does not start ctags: uses only its earlier answers.
#[derive(Debug)]
pub struct PromptMap {
    workdir: Beneath,
    map_dir: PathBuf,
    places: Vec<RankedDefinition>,
    complete: bool,
    unavailable: Option<String>,
}

impl PromptMap {
    /// Maps as much of the directory as it can within the time. Blocks: it reads files.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn of(
        workdir: &Path,
        map_dir: PathBuf,
        within: Duration,
        finders: Option<&dyn TagFinders>,
    ) -> Result<Self, SandboxError> {
        let workdir = Beneath::open(workdir)?;
        let patience = Patience::within(within, &Abandoned::default());
        let parsers = Parsers {
            finders,
            warden: None,
        };
        let (map, complete) = tree(&workdir, &map_dir).map(&patience, parsers);
        let mut files = BTreeSet::new();
        let mut places = map.places(&Focus::default(), MAX_PLACES);
        places.retain(|place| {
            let room = files.len() < MAX_FILES;
            files.contains(&place.path) || (room && files.insert(place.path.clone()))
        });
        Ok(Self {
            workdir,
            map_dir,
            places,
            complete,
            unavailable: map.unavailable().map(str::to_owned),
        })
    }

    /// The files that the map would show.
    #[must_use]
    pub fn files(&self) -> BTreeSet<String> {
        self.places.iter().map(|place| place.path.clone()).collect()
    }

    /// Leaves files out.
    pub fn without(&mut self, files: &BTreeSet<String>) {
        self.places.retain(|place| !files.contains(&place.path));
    }

    /// Whether the map covers every file of the tree.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// Why files with a grammar were left out, if nothing can parse them.
    #[must_use]
    pub fn unavailable(&self) -> Option<&str> {
        self.unavailable.as_deref()
    }

    /// The text, within a budget of tokens. Blocks: it reads files.
    #[must_use]
    pub fn text(&self, tokens: u32) -> String {
        let budget = usize::try_from(tokens).unwrap_or(usize::MAX);
        tree(&self.workdir, &self.map_dir).show(&self.places, budget).text
    }
}

fn tree<'a>(workdir: &'a Beneath, map_dir: &'a Path) -> Tree<'a> {
    Tree {
        workdir,
        base: Path::new(""),
        map_dir,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_grammars::InProcess;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_map_for_a_prompt_stays_within_its_tokens() {
        let (dir, maps) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(dir.path().join("a.rs"), "fn first_thing() {}\n").unwrap();
        std::fs::write(dir.path().join("b.rs"), "fn secret_thing() {}\n".repeat(200)).unwrap();
        let mut map = PromptMap::of(dir.path(), maps.path().to_owned(), LONG, Some(&InProcess)).unwrap();
        assert_eq!(map.files(), ["a.rs".to_owned(), "b.rs".to_owned()].into());
        let small = map.text(100);
        assert!(agentd_repo_map::tokens(&small) <= 100, "{small}");
        map.without(&["b.rs".to_owned()].into());
        assert_eq!(map.text(1_000), "a.rs:\n    1| fn first_thing() {}\n");
        assert!(map.is_complete());
    }

    #[test]
    fn i6_a_map_for_a_prompt_is_bounded_in_time_and_files() {
        let (dir, maps) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for n in 0..=MAX_FILES {
            std::fs::write(dir.path().join(format!("f{n}.rs")), format!("fn f{n}() {{}}\n")).unwrap();
        }
        let map = PromptMap::of(dir.path(), maps.path().to_owned(), LONG, Some(&InProcess)).unwrap();
        assert_eq!((map.files().len(), map.is_complete()), (MAX_FILES, true));
        let late = PromptMap::of(
            dir.path(),
            maps.path().join("other"),
            Duration::ZERO,
            Some(&InProcess),
        )
        .unwrap();
        assert_eq!((late.files().len(), late.is_complete()), (0, false));
    }

    #[test]
    fn without_a_parser_a_map_shows_what_is_known_and_says_why() {
        let (dir, maps) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(dir.path().join("a.rs"), "fn first_thing() {}\n").unwrap();
        let none = |maps: &Path| PromptMap::of(dir.path(), maps.to_owned(), LONG, None).unwrap();
        let map = none(maps.path());
        assert!(map.files().is_empty() && map.unavailable().unwrap().contains("agentd-tags"));
        let made = PromptMap::of(dir.path(), maps.path().to_owned(), LONG, Some(&InProcess)).unwrap();
        assert_eq!(made.unavailable(), None);
        std::fs::write(dir.path().join("b.rs"), "fn second_thing() {}\n").unwrap();
        let map = none(maps.path());
        assert!(map.unavailable().is_some());
        assert_eq!(map.text(1_000), "a.rs:\n    1| fn first_thing() {}\n");
        // That map did not forget what it left out.
        let map = PromptMap::of(dir.path(), maps.path().to_owned(), LONG, Some(&InProcess)).unwrap();
        assert_eq!(map.files().len(), 2);
    }
}
