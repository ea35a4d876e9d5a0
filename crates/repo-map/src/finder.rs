//! The port to what parses source files: a process of its own, so that a hostile file reaches no key.

use crate::error::MapError;
use crate::language::Language;
use crate::tags::Tags;
use std::fmt::Debug;

/// How urgent the work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// A session waits for the result.
    Call,
    /// No session waits.
    Background,
}

/// Lends finders.
pub trait TagFinders: Debug + Send + Sync {
    /// A finder for one piece of work, such as a map. It starts what it needs at its first file.
    fn finder(&self, priority: Priority) -> Box<dyn TagFinder>;
}

/// Finds the tags of files, one after another.
pub trait TagFinder: Send {
    /// Finds the tags of a file. Blocks for a bounded time, so it must not run on the runtime's threads; it polls
    /// `stop` from time to time.
    ///
    /// # Errors
    /// The file cannot be parsed, nothing can, or `stop` returned true.
    fn tags(&mut self, language: Language, source: &[u8], stop: &dyn Fn() -> bool) -> Result<Tags, MapError>;
}
