//! Runs work that may block on a session's files. A file system can stop responding (a frozen disk, a dead NFS server, a
//! slow FUSE daemon), and a thread that waits for it cannot be killed. So this work shares no bound with other work: it has
//! slots per requester and per file system, each call has a deadline, and a late call is abandoned and counted. Calls to a
//! file system that does not respond fail at once, until it responds again.
//!
//! Invariants: I6 (a file system that hangs affects only the sessions that work on it).
//!
//! Flow: [`FileWork::run`] -> slots of the requester and the file system -> a blocking thread -> the result, or [`Failed`].

mod mounts;
mod pool;
mod system;
mod threads;
mod turns;
mod work;

pub use mounts::mount_points;
pub use pool::{Hanging, HangingCall, Limits, file_system, hanging, set_limits};
pub use turns::Turns;
pub use work::{Failed, FileWork};
