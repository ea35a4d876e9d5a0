//! Double failures: kills or stops the fork server and the wardens of a daemon at the moment at which the daemon dies.

use crate::tree::{below, identity};
use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;

/// What happens to a process.
const DEEDS: [(&str, Option<Signal>); 3] = [
    ("left", None),
    ("killed", Some(Signal::KILL)),
    ("stopped", Some(Signal::STOP)),
];
/// The helpers that may be hit, by process name.
const HELPERS: [(&str, &str); 2] = [("agentd-forksrv", "fork_server"), ("agentd-warden", "warden")];

/// All processes below a daemon: their ids and start times, so that a reused id counts as another process.
pub(crate) struct Family(Vec<(u32, u64)>);

impl Family {
    /// The processes that are still running.
    pub(crate) fn left(&self) -> Vec<u32> {
        let lives = |(pid, start): &&(u32, u64)| {
            identity(*pid).is_some_and(|(state, begun)| begun == *start && !"ZX".contains(state))
        };
        self.0.iter().filter(lives).map(|(pid, _)| *pid).collect()
    }
}

/// Kills, stops or spares each helper below this daemon at random. Counts the cases. Returns all processes below it.
pub(crate) fn strike(
    daemon: u32,
    mut dice: impl FnMut() -> f64,
    counts: &mut BTreeMap<String, u32>,
) -> Result<Family> {
    let family = below(daemon)?;
    for (name, told) in HELPERS {
        // Either all wardens have the same fate, or each has its own.
        let together = dice() < 0.5;
        let mut thrown = dice();
        for pid in family.iter().copied().filter(|pid| name_of(*pid).trim() == name) {
            thrown = if together { thrown } else { dice() };
            let (deed, signal) = deed(thrown);
            if let (Some(signal), Some(pid)) = (signal, i32::try_from(pid).ok().and_then(Pid::from_raw)) {
                // The process may have ended by itself.
                let _ = kill_process(pid, signal);
            }
            *counts.entry(format!("{told}s_{deed}")).or_default() += 1;
        }
    }
    let known = family.iter().filter_map(|pid| Some((*pid, identity(*pid)?.1)));
    Ok(Family(known.collect()))
}

fn deed(thrown: f64) -> (&'static str, Option<Signal>) {
    match thrown {
        low if low < 0.34 => DEEDS[0],
        middle if middle < 0.67 => DEEDS[1],
        _ => DEEDS[2],
    }
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}
