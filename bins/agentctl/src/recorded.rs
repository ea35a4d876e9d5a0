//! Reads the records of a daemon about the sandbox, from its data directory.

use agentd_protocol::sandbox::{CHOICE_FILE, Choice, Findings, RECORD_FILE, Record};
use serde::de::DeserializeOwned;
use std::path::Path;

/// The findings at the start of this data directory's daemon.
pub(crate) fn findings(data_dir: &Path) -> Option<Findings> {
    read::<Record>(&data_dir.join(RECORD_FILE)).map(|record| record.findings)
}

/// The choice of this data directory's daemon at its last start.
pub(crate) fn choice(data_dir: &Path) -> Option<Choice> {
    read(&data_dir.join(CHOICE_FILE))
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}
