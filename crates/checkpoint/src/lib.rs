//! Checkpoints: the files of a directory, recorded as git objects in a bare repository apart from the person's, and put
//! back from there.
//!
//! The person's repository is only ever read: its objects are borrowed (alternates), its index, refs, stash, hooks,
//! attributes and configuration are not used. `git` itself sees only the bare repository and bytes on its standard input;
//! this crate walks and reads the directory, by descriptors that no symbolic link can lead out of it.
//!
//! Invariants: I4 (an interrupted restoration can be repeated, and then is whole), I6 (every recording has bounds).
//!
//! Flow: [`Keeper::archive`] -> [`Archive::take`] -> a [`Tree`]; [`Archive::changes`] between two trees;
//! [`Archive::restore`].
//!
//! All calls block their thread on the directory's file system: run them with `agentd_file_work`.

mod apply;
mod archive;
mod branch;
mod carry;
mod contents;
mod error;
mod files;
mod git;
mod ignored;
mod import;
mod journal;
mod pack;
mod quoted;
mod restore;
mod stats;
mod take;
mod trees;
mod walk;

pub use apply::Applied;
pub use archive::{Archive, Keeper, Limits, Secret};
pub use branch::{Committed, NewCommit};
pub use contents::Contents;
pub use error::Error;
pub use restore::{Back, Restored};
pub use take::Taken;
pub use trees::{Change, Item, Kind, Tree, TreeChange, compose};

#[cfg(test)]
mod tests;
