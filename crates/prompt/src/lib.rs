//! The system prompt of a session: base, environment, instruction files, and the words given at its creation.
//!
//! The same session with the same instruction files gives the same bytes, so that a provider's prompt cache holds: the
//! date in it is the day on which the session was created, and there is no clock here.
//!
//! Invariants held here: instruction files are read beneath the project's root only, so a link in a repository cannot pull
//! a foreign file (a key, say) into a prompt (I8); a file that cannot be read is left out and named (I7).
//!
//! Flow: `SessionCreated` -> [`instruction_files`] -> [`build`] -> [`SystemPrompt`]; [`session_prompt`] does all of it.

mod base;
mod instructions;
mod prompt;

pub use instructions::{InstructionFile, MAX_INSTRUCTION_BYTES, instruction_files};
pub use prompt::{Layers, Source, SystemPrompt, build, session_prompt};
