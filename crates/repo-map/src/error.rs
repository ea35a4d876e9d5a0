//! The errors of maps and tags.

/// Why a map, or the tags of a file, could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The query of a language does not match its grammar; a test verifies that it does.
    #[error("cannot find tags of {language}: {why}")]
    Query {
        /// The language.
        language: &'static str,
        /// The error of the parser library.
        why: String,
    },
    /// The file exceeds the parse limit.
    #[error("the file has {bytes} bytes, and the limit is {most}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The parser gave up, because the file is too complex.
    #[error("the parser stopped before the end of the file")]
    TooHard,
    /// The program that parses failed on the file: it ended, did not answer in time, or answered nonsense.
    #[error("the parser failed on the file")]
    Failed,
    /// The caller stopped the parser, or the parser failed on too many other files.
    #[error("the file was not parsed")]
    Stopped,
    /// Nothing can be parsed here.
    #[error("{0}")]
    Unavailable(String),
    /// The cache is damaged, or is not from this version.
    #[error("cannot read the cache of the map: {0}")]
    Cache(String),
}

impl MapError {
    /// Whether the file is not the reason, so that the next map tries it again.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Stopped | Self::Unavailable(_))
    }
}
