//! What stops a run before it has a result.

use std::path::PathBuf;

/// A run that could not take place; findings of a run are not errors.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// A file or a directory cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A suite was asked for by name and is not there.
    #[error("there is no suite {name} in {dir}")]
    NoSuite {
        /// Its name.
        name: String,
        /// Where it was looked for.
        dir: PathBuf,
    },
}
