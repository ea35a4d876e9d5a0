//! Seccomp's user notification: a filter hands chosen system calls to a supervisor, which answers them.
//!
//! The only crate of the workspace with unsafe code, because no published crate installs such a filter through a safe
//! function without the C library libseccomp. It holds the kernel calls and nothing else: what is notified and how a call
//! is answered is decided elsewhere, in safe code.

mod listener;

pub use listener::{Instruction, Listener, Notification};
