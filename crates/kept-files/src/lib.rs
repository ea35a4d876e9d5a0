//! Recorded files in the store (`workspace.keep = "store"`): a session with a workspace of its own can go on where that
//! workspace never was, or after it was lost.
//!
//! Flow: after each checkpoint, [`FileStore::keep`] packs what is new since the files that were kept before, and puts the pack
//! into blobs; the event of the checkpoint names them. When a session is loaded and its workspace is not on this machine,
//! [`FileStore::bring`] makes it again: [`Logged`] collects the packs from the log, and the newest kept files are put in place.
//!
//! Invariants: I4 (what is kept is named by the log before the next effect), I6 (bytes and time have bounds).

mod bring;
mod keep;
mod logged;
mod store;

pub use bring::Rules;
pub use keep::NewFiles;
pub use logged::Logged;
pub use store::FileStore;
