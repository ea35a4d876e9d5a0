//! Seccomp's user notification: a filter passes chosen system calls to a supervisor, which answers them.
//!
//! The only crate of the workspace with unsafe code, because no published crate installs such a filter through a safe
//! function without the C library libseccomp. It contains only the kernel calls: safe code elsewhere decides which calls
//! are notified and how to answer them.

mod listener;

pub use listener::{Instruction, Listener, Notification};
