//! Backups: what `node.backup` answers, and what a backup says of itself.

use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// The format of backups that this build writes and reads.
pub const BACKUP_FORMAT: u32 = 1;
/// The entry of a backup that lists the others. It is the last one, so a file that was cut has none.
pub const BACKUP_LIST: &str = "backup.json";

/// `node.backup_part`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackupPartParams {
    /// The backup, as `node.backup` named it.
    pub backup: String,
    /// Which of its files.
    pub path: String,
    /// Where the part begins.
    pub offset: u64,
}

/// `node.backup_end`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackupEndParams {
    /// The backup that is not needed any more.
    pub backup: String,
}

/// Answer of `node.backup`: a consistent copy that waits to be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// Its name, for fetching it.
    pub backup: String,
    /// What it holds.
    #[serde(flatten)]
    pub of: BackupOf,
    /// Its files.
    pub files: Vec<BackupFile>,
}

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupOf {
    /// When it was made.
    pub at: Timestamp,
    /// The version of the daemon.
    pub version: String,
    /// The last event that is in it.
    pub cursor: u64,
    /// How many sessions.
    pub sessions: u64,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BackupFile {
    /// Its path below the data directory.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Answer of `node.backup_part`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPart {
    /// The bytes in Base64; empty at the end of the file.
    pub data: String,
}

/// The last entry of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupList {
    /// The format of the whole.
    pub format: u32,
    /// What it holds.
    #[serde(flatten)]
    pub of: BackupOf,
    /// The entries before it, each with its SHA-256.
    pub files: Vec<SummedFile>,
}

/// A file of a backup with its sum.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SummedFile {
    /// Its path below the data directory.
    pub path: String,
    /// The SHA-256 of its content in lower-case hex.
    pub sha256: String,
}
