//! For tests whose program starts itself as a helper process: libtest owns `main` and its threads, so such a test has a
//! `main` of its own, which hands its cases to [`run`].
//!
//! Invariants: I6 (a case has a deadline; one that is late fails and does not hang).

mod cases;
mod processes;

pub use cases::{Case, run, skipped};
pub use processes::{gone, is_gone};
