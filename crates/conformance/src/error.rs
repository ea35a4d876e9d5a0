//! Errors that prevent a run from producing a result.

use std::path::PathBuf;

/// Why a run could not take place; findings of a run are not errors.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// A file or a directory cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A suite that was requested by name does not exist.
    #[error("there is no suite {name} in {dir}")]
    NoSuite {
        /// Its name.
        name: String,
        /// The directory that was searched.
        dir: PathBuf,
    },
}
