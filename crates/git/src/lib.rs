//! Runs git for the daemon. Git runs programs that configurations name, and agents can write files that git reads. So each
//! run gets an empty environment and a configuration of agentd's own: no hook, no file system monitor, no background work,
//! no server but the one that the caller names.
//!
//! Flow: a [`Run`] says what to do; [`git`], [`ask`] and [`lines`] wait for its end within a time limit, [`blocking`] and [`start`] are
//! for threads that may block.
//!
//! Invariants: nothing that a repository names runs (I7); output, messages and time have bounds (I6).

mod children;
mod environment;
mod error;
mod run;
mod text;
mod waiting;

pub use children::with_children;
pub use environment::GitEnvironment;
pub use error::{GitError, words};
pub use run::{Run, blocking, start};
pub use text::text;
pub use waiting::{Answer, MAX_OUTPUT, ask, git, lines};

#[cfg(test)]
mod tests;
