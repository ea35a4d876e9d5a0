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
    /// The parser was stopped, because the file is too complex or the caller asked for it.
    #[error("the parser stopped before the end of the file")]
    TooHard,
    /// The cache is damaged, or is not from this version.
    #[error("cannot read the cache of the map: {0}")]
    Cache(String),
}
