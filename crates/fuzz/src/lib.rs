//! For tests: everything that reads other people's bytes, each as a function of bytes ([`TARGETS`]) that panics when
//! something does not hold. `tests/replay.rs` runs them on the stable toolchain over `corpus/` and over mutations of it
//! from a seed; `just fuzz TARGET` runs the same functions under libFuzzer, which is led by coverage.
//!
//! Invariants: I6 (what comes out is not much more than what came in), I7 (what cannot be read is refused, not guessed).
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a property that does not hold is a panic, which is what a fuzzer looks for"
)]

mod corpus;
mod decoder;
mod fold;
mod import;
mod mutate;
mod patch;
mod settings;
mod shell;
mod terminal;
mod typed;
mod wire;

pub use corpus::corpus;
pub use mutate::Mutator;

/// A function of bytes that must hold for all of them.
pub type Target = fn(&[u8]);

/// Every target with its name.
pub const TARGETS: [(&str, Target); 9] = [
    ("wire", wire::holds),
    ("import", import::holds),
    ("settings", settings::holds),
    ("shell", shell::holds),
    ("patch", patch::holds),
    ("terminal", terminal::holds),
    ("fold", fold::holds),
    ("decoder", decoder::holds),
    ("typed", typed::holds),
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, target)| *target)
}
