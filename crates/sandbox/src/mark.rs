//! The mark in the environment of every process that a daemon starts. It identifies the owner after all ancestors were
//! killed at once: the warden, and the data directory, whose next daemon kills the leftovers (I5).

use crate::cgroup;
use crate::processes::{Process, beside, kill_and_wait, pause, table};
use crate::recheck::Recheck;
use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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

/// The data directory in the names of this process's cgroups; empty before [`end_orphans`].
pub(crate) fn of_cgroups() -> &'static str {
    HOME.get().map_or("", String::as_str)
}

/// Kills what earlier daemons of a data directory left behind, and lets this process mark what it starts with the same
/// directory. Call it when no other daemon can use the directory, and before any session continues. Returns how many
/// processes it killed, after waiting a few seconds at most for their death. A process that outlives that runs no more
/// code: it hangs in the kernel with the signal pending.
///
/// It finds them by their mark, and by their cgroup where there is one: a process that emptied its environment is still in
/// that.
///
/// # Errors
/// The directory cannot be inspected.
pub async fn end_orphans(data_dir: &Path) -> io::Result<usize> {
    let home = home(data_dir)?;
    let _ = HOME.set(home.clone());
    let end = move || {
        let prefix = format!("{NAME}={home}.");
        let is_ours = |variable: &[u8]| variable.starts_with(prefix.as_bytes());
        // Those first: they may start others.
        let marked = if any_marked(is_ours) {
            kill_marked(is_ours)
        } else {
            0
        };
        marked + cgroup::end_left(&home)
    };
    beside(end).await.map_err(io::Error::other)
}

/// How long to scan for what a killed warden left behind.
const LOOK_FOR: Duration = Duration::from_secs(3);
/// The number of consecutive scans that must find nothing.
const CLEAN_LOOKS: u32 = 10;
/// The minimum and maximum pause between two scans.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const LOOK_AGAIN_AT_MOST: Duration = Duration::from_secs(1);

/// The facts in the environment of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Ours,
    NotOurs,
    /// It is executing another program, so its environment is not there yet.
    Executing,
}

/// Whether a process has this variable in its environment. During an exec the environment is empty for a moment, so this
/// reads it a few times.
fn any_marked(is_ours: impl Fn(&[u8]) -> bool) -> bool {
    (0..3).any(|look| {
        if look > 0 {
            pause(LOOK_AGAIN);
        }
        let mut living = table()
            .into_values()
            .filter(|process| !process.dead && !process.kernel);
        living.any(|process| mark_of(process.pid, &is_ours) == Mark::Ours)
    })
}

/// Kills every process that has this variable in its environment, and returns how many there were. Waits until several
/// consecutive scans found none, and none that is just executing another program.
pub(crate) fn kill_marked(is_ours: impl Fn(&[u8]) -> bool) -> usize {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut clean = 0;
    let mut killed = BTreeSet::new();
    let mut recheck = Recheck::new(LOOK_AGAIN, LOOK_AGAIN_AT_MOST);
    let until = Instant::now() + LOOK_FOR;
    while clean < CLEAN_LOOKS && Instant::now() < until {
        let marks: Vec<(Process, Mark)> = table()
            .into_values()
            .filter(|process| !process.dead && !process.kernel && process.pid != own)
            .map(|process| (process, mark_of(process.pid, &is_ours)))
            .filter(|(_, mark)| *mark != Mark::NotOurs)
            .collect();
        let ours = marks.iter().filter(|(_, mark)| *mark == Mark::Ours);
        let ours: BTreeSet<_> = ours.map(|(process, _)| (process.pid, process.started)).collect();
        let time = recheck.pause(marks.iter().map(|(process, _)| process.pid).collect());
        if ours.is_empty() {
            pause(time);
        } else {
            kill_and_wait(ours.iter().map(|(pid, _)| *pid), time);
        }
        clean = if marks.is_empty() { clean + 1 } else { 0 };
        killed.extend(ours);
    }
    killed.len()
}

fn mark_of(pid: i32, is_ours: impl Fn(&[u8]) -> bool) -> Mark {
    match fs::read(format!("/proc/{pid}/environ")) {
        Ok(environ) if environ.is_empty() && is_executing(pid) => Mark::Executing,
        Ok(environ) if environ.split(|byte| *byte == 0).any(is_ours) => Mark::Ours,
        Ok(_) | Err(_) => Mark::NotOurs,
    }
}

/// Whether the kernel has not placed the environment of a process yet. One that was started without variables has a place for
/// them, too: to wait for it would be in vain.
fn is_executing(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    place_of_environment(&stat) == Some(0)
}

fn place_of_environment(stat: &str) -> Option<u64> {
    // The fields after the name begin with the third; this is the fiftieth.
    let fields = stat.get(stat.rfind(')')?.checked_add(2)?..)?;
    fields.split(' ').nth(47)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process without an environment")]
    fn a_process_without_variables_is_not_waited_for() {
        let mut child = std::process::Command::new("cat")
            .env_clear()
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (pid, all) = (child.id().cast_signed(), |_: &[u8]| true);
        // When `spawn` returns, the exec has begun.
        let mark = std::iter::repeat_with(|| mark_of(pid, all)).find(|mark| *mark != Mark::Executing);
        // The text of no variable is one empty part.
        assert_eq!(mark, Some(Mark::Ours));
        assert_eq!(
            mark_of(pid, |variable: &[u8]| !variable.is_empty()),
            Mark::NotOurs
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_place_of_an_environment_is_the_fiftieth_field() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("42 (a) b) {}", fields.join(" "));
        assert_eq!(place_of_environment(&stat), Some(50));
        assert_eq!(place_of_environment("42 (a) S 1"), None);
    }
}
