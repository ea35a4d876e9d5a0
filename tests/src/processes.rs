//! The processes on the machine.

use crate::follow::within;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The processes whose working directory is `dir` or below it: the commands of a daemon's sessions and their parents.
pub fn working_in(dir: &Path) -> Vec<u32> {
    let inside = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
    all().into_iter().filter(inside).collect()
}

/// The processes whose command line contains `mark`.
pub fn marked(mark: &str) -> Vec<u32> {
    let line = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_marked = |pid: &u32| String::from_utf8_lossy(&line(*pid)).contains(mark);
    all()
        .into_iter()
        .filter(|pid| *pid != std::process::id())
        .filter(is_marked)
        .collect()
}

/// The children of a process.
pub fn children_of(parent: u32) -> Vec<u32> {
    let of = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which may hold anything: the state, then the parent.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    all().into_iter().filter(of).collect()
}

/// The state of a process: `T` is stopped.
pub fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

/// A number of `/proc/PID/status`, such as `VmRSS` in KiB; 0 when the process is gone.
pub fn status_of(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// Sends a signal; one whose process is gone already is as good.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect()
}

/// Waits until the world outside has changed so that `holds`.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    found(what, async || holds().then_some(())).await;
}

/// Waits until `look` finds something; it looks often, but not all the time, for there is no event to wait for.
pub async fn found<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let looking = async {
        loop {
            ticks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    within(what, looking).await
}
