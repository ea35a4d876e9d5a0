//! What is wrong with a rule's text.

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {rule:?}, character {position}: {problem}; write it like {example}")]
pub struct PolicyError {
    /// The rule as given.
    pub rule: String,
    /// Where, in characters from 1.
    pub position: usize,
    /// What is wrong.
    pub problem: String,
    /// What a good one looks like.
    pub example: &'static str,
}
