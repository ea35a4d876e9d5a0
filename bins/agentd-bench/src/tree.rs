//! A process and its descendants, from proc(5).

use anyhow::{Context as _, Result};
use std::collections::HashMap;
use std::fs;

/// A snapshot of a daemon and its descendants.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// CPU time in milliseconds: of the daemon, of its running descendants, and of all children that they have reaped.
    pub(crate) cpu_ms: f64,
    /// CPU time of the daemon's own threads.
    pub(crate) own_cpu_ms: f64,
    /// Resident memory of the daemon in megabytes (10^6 bytes).
    pub(crate) rss_mb: f64,
    /// Private memory of the descendants in megabytes, without the program's pages that they share with the daemon.
    pub(crate) helpers_mb: f64,
    /// Number of descendants.
    pub(crate) helpers: u32,
    /// Open file descriptors of the daemon.
    pub(crate) fds: u32,
    /// Threads of the daemon.
    pub(crate) threads: u32,
}

impl Usage {
    /// Measures a daemon and its descendants. Skips processes that end meanwhile.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let helpers = below(pid)?;
        let times = times(pid).context("the daemon is not running")?;
        let mut usage = Self {
            cpu_ms: times.iter().sum::<f64>(),
            own_cpu_ms: times.iter().take(2).sum::<f64>(),
            rss_mb: field(pid, "status", "VmRSS:").unwrap_or_default(),
            helpers: u32::try_from(helpers.len()).unwrap_or(u32::MAX),
            fds: count(&format!("/proc/{pid}/fd")),
            threads: count(&format!("/proc/{pid}/task")),
            ..Self::default()
        };
        for helper in helpers {
            usage.cpu_ms += self::times(helper).map_or(0.0, |times| times.iter().sum());
            let private = ["Private_Clean:", "Private_Dirty:"];
            usage.helpers_mb += private
                .iter()
                .filter_map(|name| field(helper, "smaps_rollup", name))
                .sum::<f64>();
        }
        usage.rss_mb = round(usage.rss_mb);
        usage.helpers_mb = round(usage.helpers_mb);
        Ok(usage)
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// CPU time of one process and of the children that it has reaped, in milliseconds.
pub(crate) fn cpu_ms(pid: u32) -> f64 {
    times(pid).map_or(0.0, |times| times.iter().sum())
}

/// All descendants of a process.
pub(crate) fn below(pid: u32) -> Result<Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = stat(child).and_then(|stat| stat.get(1)?.parse().ok()) {
            children.entry(parent).or_default().push(child);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(next) = open.pop() {
        let workers = children.remove(&next).unwrap_or_default();
        found.extend_from_slice(&workers);
        open.extend(workers);
    }
    Ok(found)
}

/// The state of a process (`Z`: zombie), and its start time in clock ticks since boot.
pub(crate) fn identity(pid: u32) -> Option<(char, u64)> {
    let fields = stat(pid)?;
    Some((fields.first()?.chars().next()?, fields.get(19)?.parse().ok()?))
}

/// The fields after the command name: state, parent, ..
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// utime, stime, cutime, cstime: fields 14 to 17 of proc(5), in ticks of 10 ms.
fn times(pid: u32) -> Option<Vec<f64>> {
    let fields = stat(pid)?;
    let ticks = fields.iter().skip(11).take(4);
    Some(
        ticks
            .filter_map(|field| field.parse::<f64>().ok())
            .map(|ticks| ticks * 10.0)
            .collect(),
    )
}

/// A field in kB of a file below `/proc/PID`, in megabytes.
fn field(pid: u32, file: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1_024.0 / 1_000_000.0)
}

fn count(dir: &str) -> u32 {
    fs::read_dir(dir).map_or(0, |entries| u32::try_from(entries.count()).unwrap_or(u32::MAX))
}
