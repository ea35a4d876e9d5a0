//! The targets by name.

use crate::{decoder, fold, import, patch, settings, shell, terminal, typed, wire};

/// A function of bytes whose assertions must hold for any input.
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
