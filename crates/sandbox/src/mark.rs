//! The mark in the environment of all that a daemon starts. It says to whom a process belongs when everything above it was
//! killed at once: to one warden, and to the data directory, whose next daemon ends what it finds (I5).

use crate::processes::{any_marked, beside, kill_marked};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;

/// The variable.
pub(crate) const NAME: &str = "AGENTD_UNDER";

/// Whose processes this process starts. It starts no wardens for two data directories.
static HOME: OnceLock<String> = OnceLock::new();

/// A data directory as marks name it. It stays the same when the directory is moved, and is free again only with it.
fn home(data_dir: &Path) -> io::Result<String> {
    let found = std::fs::metadata(data_dir)?;
    Ok(format!("{:x}-{:x}", found.dev(), found.ino()))
}

/// A value of the variable for one warden, as no other has it.
pub(crate) fn of_a_warden() -> String {
    let number = RandomState::new().hash_one(std::process::id());
    format!("{}.{number:016x}", HOME.get().map_or("", String::as_str))
}

/// The value for the nursery, and with it for wardens that were just forked.
pub(crate) fn of_the_nursery() -> String {
    format!("{}.nursery", HOME.get().map_or("", String::as_str))
}

/// Ends what earlier daemons of a data directory left behind, and lets this process mark what it starts with the same
/// directory. Call it when no other daemon can have the directory, and before any session goes on. Returns how many
/// processes it ended; it waits until they are dead, a few seconds at most. A process that outlives that can run nothing any
/// more: it waits in the kernel with the signal pending.
///
/// It does not find a process that emptied its environment and left its process group.
///
/// # Errors
/// The directory cannot be looked at.
pub async fn end_orphans(data_dir: &Path) -> io::Result<usize> {
    let home = home(data_dir)?;
    let prefix = format!("{NAME}={home}.");
    let _ = HOME.set(home);
    let end = move || {
        let is_ours = |variable: &[u8]| variable.starts_with(prefix.as_bytes());
        if any_marked(is_ours) {
            kill_marked(is_ours)
        } else {
            0
        }
    };
    beside(end).await.map_err(io::Error::other)
}
