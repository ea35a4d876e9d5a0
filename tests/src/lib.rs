//! Support for the end-to-end tests: the binaries, built once; a daemon in a directory of its own; a viewer that waits for
//! events; the processes of a session.
//!
//! Nothing here waits for time: every wait is for an event and has a deadline.

mod binaries;
mod daemon;
mod follow;
mod processes;
mod skip;

pub use binaries::{Binaries, binaries};
pub use daemon::{Daemon, DaemonOptions, Finished};
pub use follow::{Follower, check_log, within};
pub use processes::{descendants, eventually, marked};
pub use skip::skipped;
