//! What runs on the machine.

use crate::daemon::PATIENCE;
use std::fs;
use std::time::Duration;

/// The process ids below `pid`, whatever their depth.
pub fn descendants(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all()
        .into_iter()
        .filter_map(|child| Some((child, parent(child)?)))
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&of) = found.get(next) {
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| *parent == of)
                .map(|(child, _)| *child),
        );
        next += 1;
    }
    found.split_off(1)
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

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
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
