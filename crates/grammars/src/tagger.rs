//! Finds the tags of a file by the grammar of its language.

use crate::grammars;
use agentd_repo_map::{
    Definition, Kind, Language, MAX_FILE_BYTES, MAX_NAME, MAX_TAGS, MapError, Reference, Tags,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tree_sitter::{
    ParseOptions, ParseState, Parser, Query, QueryCursor, QueryCursorOptions, QueryCursorState,
    StreamingIterator as _, Tree,
};

/// The parser, and then the search, may report progress once per this many bytes before they are stopped. Ordinary code
/// causes a report about every 35 bytes; the constant below it gives small files some more.
const BYTES_PER_REPORT: usize = 12;
const MORE_REPORTS: usize = 4_000;
/// The most brackets open at the same time; the cost of error recovery grows with their square.
const MAX_OPEN: i32 = 1_000;
/// The most partial matches that a search keeps; beyond that it drops the oldest.
const MAX_MATCHES: u32 = 4_096;

/// The meaning of a capture in a query.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Name,
    Definition(Kind),
    Reference,
    Other,
}

/// Finds tags; uses much memory, so it is shared by many files of a language.
pub struct Tagger {
    parser: Parser,
    query: Query,
    meanings: Vec<Meaning>,
}

impl std::fmt::Debug for Tagger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tagger").finish_non_exhaustive()
    }
}

impl Tagger {
    /// Creates a tagger for one language.
    ///
    /// # Errors
    /// The query does not match the grammar.
    pub fn new(language: Language) -> Result<Self, MapError> {
        let failed = |why: String| MapError::Query {
            language: language.name(),
            why,
        };
        let grammar = grammars::grammar(language);
        let mut parser = Parser::new();
        parser
            .set_language(&grammar)
            .map_err(|error| failed(error.to_string()))?;
        let query =
            Query::new(&grammar, &grammars::query(language)).map_err(|error| failed(error.to_string()))?;
        let meanings = query.capture_names().iter().map(|name| meaning(name)).collect();
        Ok(Self {
            parser,
            query,
            meanings,
        })
    }

    /// Finds the tags of a file. Polls `stop` from time to time.
    ///
    /// # Errors
    /// The file is too large or takes too long, or `stop` returned true.
    pub fn tags(&mut self, source: &[u8], stop: &dyn Fn() -> bool) -> Result<Tags, MapError> {
        if source.len() > MAX_FILE_BYTES {
            return Err(MapError::TooLarge {
                bytes: source.len(),
                most: MAX_FILE_BYTES,
            });
        }
        if deep(source) {
            return Err(MapError::TooHard);
        }
        let plain = ascii(source);
        let tree = self.parse(&plain, stop).ok_or(MapError::TooHard)?;
        self.search(&tree, &plain, source, stop).ok_or(MapError::TooHard)
    }

    fn parse(&mut self, plain: &[u8], stop: &dyn Fn() -> bool) -> Option<Tree> {
        let mut budget = Budget::new(plain.len(), stop);
        let mut progress = |_: &ParseState| budget.spend();
        let options = ParseOptions::new().progress_callback(&mut progress);
        let mut input = |at: usize, _| plain.get(at..).unwrap_or_default();
        let tree = self.parser.parse_with_options(&mut input, None, Some(options));
        // Otherwise a stopped parse would continue with the next file.
        self.parser.reset();
        tree
    }

    fn search(&self, tree: &Tree, plain: &[u8], source: &[u8], stop: &dyn Fn() -> bool) -> Option<Tags> {
        let mut definitions: BTreeMap<(u32, String), Kind> = BTreeMap::new();
        let mut references: BTreeMap<String, u32> = BTreeMap::new();
        let mut budget = Budget::new(plain.len(), stop);
        let mut cut = false;
        {
            let mut progress = |_: &QueryCursorState| {
                let flow = budget.spend();
                cut |= flow.is_break();
                flow
            };
            let mut cursor = QueryCursor::new();
            cursor.set_match_limit(MAX_MATCHES);
            let options = QueryCursorOptions::new().progress_callback(&mut progress);
            let mut matches = cursor.matches_with_options(&self.query, tree.root_node(), plain, options);
            while let Some(found) = matches.next() {
                let Some((name, line, what)) = self.read(found, source) else {
                    continue;
                };
                match what {
                    Meaning::Definition(kind) if definitions.len() < MAX_TAGS => {
                        definitions.entry((line, name)).or_insert(kind);
                    }
                    Meaning::Reference if references.len() < MAX_TAGS || references.contains_key(&name) => {
                        let count = references.entry(name).or_default();
                        *count = count.saturating_add(1);
                    }
                    _ => {}
                }
            }
        }
        if cut {
            return None;
        }
        Some(Tags {
            definitions: definitions
                .into_iter()
                .map(|((line, name), kind)| Definition { name, kind, line })
                .collect(),
            references: references
                .into_iter()
                .map(|(name, count)| Reference { name, count })
                .collect(),
        })
    }

    /// The name, line and meaning of one match.
    fn read(&self, found: &tree_sitter::QueryMatch<'_, '_>, source: &[u8]) -> Option<(String, u32, Meaning)> {
        let (mut name, mut what) = (None, None);
        for capture in found.captures() {
            let at = usize::try_from(capture.index).ok()?;
            match self.meanings.get(at).copied().unwrap_or(Meaning::Other) {
                Meaning::Name => name = Some(capture.node),
                Meaning::Other => {}
                meaning => what = Some(meaning),
            }
        }
        let (name, what) = (name?, what?);
        let text = std::str::from_utf8(source.get(name.byte_range())?).ok()?;
        if text.is_empty() || text.len() > MAX_NAME || text.contains(char::is_control) {
            return None;
        }
        let line = u32::try_from(name.start_position().row).ok()?.saturating_add(1);
        Some((text.to_owned(), line, what))
    }
}

fn meaning(capture: &str) -> Meaning {
    match capture.split_once('.') {
        None if capture == "name" => Meaning::Name,
        Some(("definition", kind)) => Meaning::Definition(Kind::of(kind)),
        Some(("reference", _)) => Meaning::Reference,
        _ => Meaning::Other,
    }
}

/// The remaining effort for an operation.
struct Budget<'a> {
    left: usize,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> Budget<'a> {
    const fn new(bytes: usize, stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            left: bytes / BYTES_PER_REPORT + MORE_REPORTS,
            stop,
        }
    }

    fn spend(&mut self) -> ControlFlow<()> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || (self.stop)() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Whether too many brackets are open at once. Brackets in strings count, too; those are usually balanced.
fn deep(source: &[u8]) -> bool {
    let (mut open, mut most) = ([0_i32; 3], 0);
    for byte in source {
        let (kind, step) = match byte {
            b'(' => (0, 1),
            b')' => (0, -1),
            b'[' => (1, 1),
            b']' => (1, -1),
            b'{' => (2, 1),
            b'}' => (2, -1),
            _ => continue,
        };
        if let Some(open) = open.get_mut(kind) {
            *open = (*open + step).max(0);
            most = most.max(*open);
        }
    }
    most > MAX_OPEN
}

/// The text for the grammars, with the same byte offsets: some of their scanners look up other characters in tables
/// that cover only ASCII. Replaces each such byte with a letter, which is what these are to a programming language.
fn ascii(source: &[u8]) -> Vec<u8> {
    source
        .iter()
        .map(|byte| if byte.is_ascii() { *byte } else { b'x' })
        .collect()
}

#[cfg(test)]
mod tests;
