//! Maps a source tree for a model that has not read it: what its files define, most used first, within a token budget.
//!
//! Pure: the caller walks the tree, reads the files and has them parsed, so it decides what may be seen. The files are
//! untrusted, and so are the programs that parse them: bytes, names and tags of a file and files of a map are bounded (I6).
//!
//! Flow: file -> [`Language::of`] -> [`TagFinder::tags`] -> [`Cache`] -> [`rank`] -> [`render`]. A language without a
//! grammar: [`is_foreign`] -> [`question`] to ctags, which the caller runs -> [`CtagsReply`] -> [`Cache`].

mod cache;
mod error;
mod finder;
mod foreign;
mod language;
mod map;
mod messages;
mod rank;
mod render;
mod tags;

pub use cache::{Cache, Stamp};
pub use error::MapError;
pub use finder::{Priority, TagFinder, TagFinders};
pub use foreign::{CTAGS, CtagsReply, is_foreign, is_universal, question};
pub use language::Language;
pub use map::{RankedDefinition, SourceMap};
pub use messages::{
    BACKGROUND, MAX_ANSWER, MAX_REQUEST, Reply, Request, TAGS_PROGRAM, greeting, is_greeting,
};
pub use rank::{Focus, Ranked, rank};
pub use render::{Rendered, render, tokens};
pub use tags::{Definition, Kind, MAX_FILE_BYTES, MAX_NAME, MAX_TAGS, Reference, Tags};
