//! The search index of source trees: words, places and vectors, built in the background.
//!
//! Each working directory has an index file of its own, separate from the log. It can be deleted at any time, because
//! everything in it can be derived again. It holds no text; a search reads its hits from the current files.
//!
//! Invariants: I6 (one pass at a time, on one low-priority thread that rests in proportion to its work; files, bytes,
//! the index, queries and waits are bounded), I7 (agentd indexes and sends to an embedding model only what the rules
//! let it read without a question, follows no links, and judges each hit again for the asking session), I8 (text that
//! looks like a key is never sent).
//!
//! Flow: walk -> [`ReadRule`] -> chunks along definitions -> words and places, then vectors -> query -> candidates ->
//! signals in their text -> hits.

mod actor;
mod answer;
mod chunk;
mod database;
mod embedder;
mod embedding;
mod error;
mod find;
mod handle;
mod index_files;
mod limits;
mod pace;
mod pass;
mod rank;
mod remote;
mod schedule;
mod vector;
mod words;
mod work;

#[cfg(test)]
mod tests;

pub use actor::{IndexMsg, IndexStatus, Indexer, IndexerArgs};
pub use embedder::{Embedder, Unembedded};
pub use error::IndexError;
pub use handle::IndexHandle;
pub use index_files::file_of as index_file;
pub use limits::Limits;
pub use pace::{Leash, Pace};
pub use pass::{Job, Progress, ReadRule};
pub use remote::RemoteEmbedder;
pub use work::{QueryVector, ask, bring_up_to_date};
