//! Work that may block on a session's files. A file system can stop answering (a frozen disk, a dead NFS server, a slow FUSE
//! daemon), and a thread that waits for it cannot be ended. So this work never shares a bound with anything else: it has slots
//! per requester and per file system, each call has a deadline, and a call that is late is abandoned and counted. Calls to a
//! file system that does not answer fail at once, until it answers again.
//!
//! Invariants: I6 (a file system that hangs costs the sessions that work on it, and nobody else).
//!
//! Flow: [`FileWork::run`] -> slots of the requester and the file system -> a blocking thread -> the result, or [`Failed`].

mod mounts;
mod pool;
mod system;
mod work;

pub use mounts::mount_points;
pub use pool::{Hanging, HangingCall, Limits, hanging, set_limits};
pub use work::{Failed, FileWork};
