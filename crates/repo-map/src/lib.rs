//! Maps a source tree for a model that has not read it: what its files define, most used first, within a token budget.
//!
//! Pure: the caller walks the tree and reads the files, so it decides what may be seen. The files are untrusted, so
//! everything has a limit: bytes and time of a parse, tags of a file, files of a map (I6).
//!
//! Flow: file -> [`Language::of`] -> [`Tagger::tags`] -> [`Cache`] -> [`rank`] -> [`render`]. A language without a grammar:
//! [`is_foreign`] -> [`question`] to ctags, which the caller runs -> [`CtagsReply`] -> [`Cache`].

mod cache;
mod error;
mod foreign;
#[cfg_attr(not(feature = "grammars"), path = "no_grammars.rs")]
mod grammars;
mod language;
mod map;
mod rank;
mod render;
mod tagger;
mod tags;

pub use cache::{Cache, Stamp};
pub use error::MapError;
pub use foreign::{CTAGS, CtagsReply, is_foreign, is_universal, question};
pub use language::Language;
pub use map::{RankedDefinition, SourceMap};
pub use rank::{Focus, Ranked, rank};
pub use render::{Rendered, render, tokens};
pub use tagger::{MAX_FILE_BYTES, Tagger};
pub use tags::{Definition, Kind, Reference, Tags};
