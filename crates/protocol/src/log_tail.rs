//! The end of the daemon's log file.

use serde::{Deserialize, Serialize};

/// Parameters of `node.log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LogParams {
    /// The maximum number of lines, from 1 to 2,000; absent: 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 2000))]
    pub lines: Option<u32>,
}

/// Answer of `node.log`. Secrets were removed when the lines were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogTail {
    /// The last lines, oldest first; fewer than requested if the file is short or they are larger than 1 MiB.
    pub lines: Vec<String>,
}
