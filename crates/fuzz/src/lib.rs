//! Fuzz targets for tests: everything that parses untrusted bytes, each as a function of bytes ([`TARGETS`]) that
//! panics if a property fails. `tests/replay.rs` runs them on the stable toolchain over `corpus/` and seeded mutations
//! of it; `just fuzz TARGET` runs the same functions under libFuzzer, which is guided by coverage.
//!
//! Invariants: I6 (output is not much larger than input), I7 (what cannot be parsed is refused, not guessed).
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
