//! For tests whose program starts itself as a helper process: libtest owns `main` and its threads, so such a program has its
//! own `main`, which passes its cases to [`main`] in [`Group`]s. Its arguments and its output are those of libtest.
//!
//! Invariants: I6 (a case has a deadline; a late case fails instead of hanging).

mod cases;
mod git;
mod options;
mod postgres;
mod processes;
mod run;

pub use cases::{Case, Group, skipped};
pub use git::git;
pub use postgres::{Database, Postgres};
pub use processes::{gone, is_gone};
pub use run::main;
