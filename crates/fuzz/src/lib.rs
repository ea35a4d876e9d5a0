//! For tests: everything that reads other people's bytes, each as a function of bytes ([`TARGETS`]) that panics when
//! something does not hold. `tests/replay.rs` runs them on the stable toolchain over `corpus/` and over mutations of it
//! from a seed; `just fuzz TARGET` runs the same functions under libFuzzer, which is led by coverage.
//!
//! Invariants: I6 (what comes out is not much more than what came in), I7 (what cannot be read is refused, not guessed).
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "panics are the finds"
)]

mod corpus;
mod decoder;
mod fold;
mod import;
mod mutate;
mod patch;
mod settings;
mod shell;
mod target;
mod terminal;
mod typed;
mod wire;

pub use corpus::corpus;
pub use mutate::Mutator;
pub use target::{TARGETS, Target, target};
