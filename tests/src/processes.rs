//! What runs on the machine.

use crate::daemon::PATIENCE;
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

fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect()
}

/// Waits until the world outside has changed so that `holds`; it is looked at often, for there is no event to wait for.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        ticks.tick().await;
        if holds() {
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "waited too long until {what}"
        );
    }
}
