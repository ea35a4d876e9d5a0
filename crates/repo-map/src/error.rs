//! The errors of maps and tags.

/// Why a map, or the tags of a file, could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The query of a language does not match its grammar; a test verifies that it does.
    #[error("the tags of {language} cannot be looked for: {why}")]
    Query {
        /// The language.
        language: &'static str,
        /// The error of the parser library.
        why: String,
    },
    /// The file exceeds the parse limit.
    #[error("the file has {bytes} bytes; at most {most} are parsed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The parser was stopped, because the file is too complex or the caller asked for it.
    #[error("the file cannot be parsed in bounded time")]
    TooHard,
    /// The cache is damaged, or is not from this version.
    #[error("the cache of the map cannot be read: {0}")]
    Cache(String),
}
