//! Reads the JSON that models write. A mistake that has only one possible meaning is repaired, and the repair is named;
//! anything else is an error that says what is wrong and where. No value is ever guessed: a string that does not end is
//! an error, because its call would run with half of its content.
//!
//! Pure, linear in the length of the text, and bounded in depth.
//!
//! Flow: text -> [`decode`] (a whole text that should be one object) or [`value_at`] (a value within a text) -> the value
//! and its [`Repair`]s, or a [`Fault`].

mod decode;
mod fault;
mod parse;
mod repair;
mod string;
mod surrogate;

pub use decode::{Decoded, decode};
pub use fault::{Fault, Mistake};
pub use parse::{DEEPEST, Ending, Found, value_at};
pub use repair::{Repair, Repairs};
pub use surrogate::{Joiner, keep_halves, mend};

#[cfg(test)]
mod tests;
