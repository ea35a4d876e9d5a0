//! Backups: the answers of `node.backup` and its companions, and the list inside a backup.

use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// The backup format that this build writes and reads.
pub const BACKUP_FORMAT: u32 = 1;
/// The entry of a backup that lists the others. It comes last, so a truncated file has none.
pub const BACKUP_LIST: &str = "backup.json";

/// `node.backup_part`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BackupPartParams {
    /// The backup: its name from `node.backup`.
    pub backup: String,
    /// The file of the backup to read from.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub path: String,
    /// The byte offset of the part.
    pub offset: u64,
}

/// `node.backup_end`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BackupEndParams {
    /// The backup that is no longer needed.
    pub backup: String,
}

/// Answer of `node.backup`: a consistent copy that is ready to be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Backup {
    /// Its name; the client needs it to fetch the parts.
    pub backup: String,
    /// Its contents.
    #[serde(flatten)]
    pub of: BackupOf,
    /// Its files.
    pub files: Vec<BackupFile>,
}

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BackupOf {
    /// When it was made.
    pub at: Timestamp,
    /// The version of the daemon.
    pub version: String,
    /// The last event that it contains.
    pub cursor: u64,
    /// The number of sessions.
    pub sessions: u64,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BackupFile {
    /// Its path below the data directory.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Answer of `node.backup_part`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BackupPart {
    /// The bytes in Base64; empty at the end of the file.
    pub data: String,
}

/// The last entry of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BackupList {
    /// The format of the backup.
    pub format: u32,
    /// The contents of the backup.
    #[serde(flatten)]
    pub of: BackupOf,
    /// The entries before this one, each with its SHA-256.
    pub files: Vec<SummedFile>,
}

/// A file of a backup with its checksum.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SummedFile {
    /// Its path below the data directory.
    pub path: String,
    /// The SHA-256 of its content in lower-case hex.
    pub sha256: String,
}
