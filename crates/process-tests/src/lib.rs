//! For tests whose program starts itself as a helper process: libtest owns `main` and its threads, so such a test has its
//! own `main`, which passes its cases to [`run`].
//!
//! Invariants: I6 (a case has a deadline; a late case fails instead of hanging).

mod cases;
mod postgres;
mod processes;

pub use cases::{Case, run, skipped};
pub use postgres::{Database, Postgres};
pub use processes::{gone, is_gone};
