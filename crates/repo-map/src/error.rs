//! What can go wrong.

/// Why a map, or the tags of a file, could not be had.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The query of a language does not fit its grammar; a test holds that it does.
    #[error("the tags of {language} cannot be looked for: {why}")]
    Query {
        /// The language.
        language: &'static str,
        /// What the grammar says.
        why: String,
    },
    /// The file is larger than what is parsed.
    #[error("the file has {bytes} bytes; at most {most} are parsed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The parser was stopped.
    #[error("the file cannot be parsed in bounded time")]
    TooHard,
    /// A cache that was not written by this version, or was cut off.
    #[error("the cache of the map cannot be read: {0}")]
    Cache(String),
}
