//! Support for the end-to-end tests: the binaries, built once; a daemon in a directory of its own; a viewer that waits for
//! events; the processes of a session.
//!
//! Nothing here waits for time: every wait is for an event and has a deadline.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "support for tests fails by panicking, as tests do"
)]

mod aimock;
mod binaries;
mod checker;
mod clock;
mod daemon;
pub mod fault_server;
mod follow;
mod git;
mod heavy;
mod link;
mod processes;
mod skip;
mod sse;
mod tap;
mod tool_servers;
mod way;
pub mod window_server;

pub use aimock::Aimock;
pub use binaries::{Binaries, binaries};
pub use checker::{Logs, check_audit, check_effects, check_events};
pub use clock::clock_of;
pub use daemon::{CANARY, Daemon, DaemonOptions, Finished};
pub use follow::{Follower, check_log, keep_log, try_log, within};
pub use git::git;
pub use heavy::Heavy;
pub use link::{Line, Link, Server};
pub use processes::{children_of, eventually, found, marked, signal, state_of, status_of, working_in};
pub use skip::skipped;
pub use sse::{Access, Sse};
pub use tap::Tap;
pub use tool_servers::{tool_server, tool_servers};
pub use way::{Source, Way};
