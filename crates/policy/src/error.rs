//! Errors in a rule's text.

/// A rule that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {rule:?}, character {position}: {problem}; write it like {example}")]
pub struct PolicyError {
    /// The rule as given.
    pub rule: String,
    /// The position of the error, in characters from 1.
    pub position: usize,
    /// A description of the error.
    pub problem: String,
    /// An example of a valid rule.
    pub example: &'static str,
}
