//! The mark in the environment of every process that a daemon starts. It identifies the owner after all ancestors were
//! killed at once: the warden, and the data directory, whose next daemon kills the leftovers (I5).

use crate::processes::{any_marked, beside, kill_marked};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;

/// The name of the environment variable.
pub(crate) const NAME: &str = "AGENTD_UNDER";

/// The data directory whose mark this process sets. One process starts no wardens for two data directories.
static HOME: OnceLock<String> = OnceLock::new();

/// A data directory's id in marks. It survives a move of the directory and is free again only when that is deleted.
fn home(data_dir: &Path) -> io::Result<String> {
    let found = std::fs::metadata(data_dir)?;
    Ok(format!("{:x}-{:x}", found.dev(), found.ino()))
}

/// Returns a unique value of the variable for one warden.
pub(crate) fn of_a_warden() -> String {
    let number = RandomState::new().hash_one(std::process::id());
    format!("{}.{number:016x}", HOME.get().map_or("", String::as_str))
}

/// The value for the fork server, and so for wardens that were just forked.
pub(crate) fn of_the_fork_server() -> String {
    format!("{}.fork-server", HOME.get().map_or("", String::as_str))
}

/// The name and the value of the variable for a process that the daemon starts outside of any warden.
#[must_use]
pub fn mark_of_daemon() -> (&'static str, String) {
    (NAME, format!("{}.daemon", HOME.get().map_or("", String::as_str)))
}

/// Kills what earlier daemons of a data directory left behind, and lets this process mark what it starts with the same
/// directory. Call it when no other daemon can use the directory, and before any session continues. Returns how many
/// processes it killed, after waiting a few seconds at most for their death. A process that outlives that runs no more
/// code: it hangs in the kernel with the signal pending.
///
/// It does not find a process that emptied its environment and left its process group.
///
/// # Errors
/// The directory cannot be inspected.
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
