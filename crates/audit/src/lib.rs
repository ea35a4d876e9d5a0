//! The hash chain of audit lines: changing, removing, adding or moving a line breaks it. Also the names of its files.
//!
//! A writer of the files can also write a new chain. So the last hash should be stored elsewhere from time to time, and
//! a chain can be checked for it. Invariant I7 for a reader: an unsealed line counts as broken.
//!
//! Flow: a JSON line -> [`seal`] -> file -> [`Chain::read`] -> intact, or the first [`Broken`] line. [`newest`] reads pages
//! of lines backwards, without checking them.
//!
//! ```
//! use agentd_audit::{Chain, Link, seal};
//!
//! let (first, head) = seal(r#"{"what":"login"}"#, Link::START).unwrap();
//! let (second, head) = seal(r#"{"what":"logout"}"#, head).unwrap();
//!
//! let file = format!("{first}\n{second}\n");
//! let mut chain = Chain::with_head(Some(head));
//! assert!(chain.read(file.as_bytes()).is_ok());
//!
//! let edited = file.replace("login", "guess");
//! assert!(Chain::default().read(edited.as_bytes()).is_err());
//! ```

mod chain;
mod check;
mod files;
mod link;
mod newest;

pub use chain::{Broken, Chain, FILE_DELETED, LOSS_ACCEPTED, Stop};
pub use check::check;
pub use files::{CURRENT, Sealed, files, open, sealed};
pub use link::{BadLink, Link, links_of, seal};
pub use newest::{LinePosition, Newest, newest};

#[cfg(test)]
mod tests;
