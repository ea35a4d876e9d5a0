//! The search index of source trees: words, places and vectors, made in the background.
//!
//! An index is a file of its own for each working directory, never the log's, and it can be thrown away at any time: all
//! that it says can be found out again. It holds no text; hits are read from the files as they are.
//!
//! Invariants: I6 (one pass at a time, on one thread of low priority that rests in proportion to its work; files, bytes,
//! the index, queries and waits have bounds), I7 (only what the rules let be read without a question is indexed or sent to
//! an embedding model, no link is followed, and each hit is judged again for the session that asks), I8 (what looks like a
//! key is taken out of what is sent).
//!
//! Flow: walk -> [`ReadRule`] -> pieces along definitions -> words and places, then vectors -> question -> candidates ->
//! signs in their text -> hits.

mod actor;
mod answer;
mod chunk;
mod database;
mod embedder;
mod embedding;
mod error;
mod find;
mod handle;
mod limits;
mod pace;
mod pass;
mod places;
mod rank;
mod remote;
mod schedule;
mod vector;
mod words;
mod work;

#[cfg(test)]
mod tests;

pub use actor::{IndexMsg, Indexer, IndexerArgs};
pub use embedder::{Embedder, Unembedded};
pub use error::IndexError;
pub use handle::IndexHandle;
pub use limits::Limits;
pub use pace::{Leash, Pace};
pub use pass::{Job, Progress, ReadRule};
pub use places::file_of as index_file;
pub use remote::RemoteEmbedder;
pub use work::{QueryVector, ask, bring_up_to_date};
