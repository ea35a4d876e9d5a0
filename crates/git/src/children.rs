//! The git processes that this daemon runs. The daemon kills children that nobody started (orphans of commands); git is none.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Children by pid, with their start times: a pid may be used again.
type Started = BTreeMap<i32, u64>;

static STARTED: Mutex<Started> = Mutex::new(BTreeMap::new());

/// Above this many, those that have ended are forgotten.
const MANY: usize = 256;

/// Starts a process and notes it. Nobody looks in between.
pub(crate) fn noted<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    pid: impl FnOnce(&C) -> Option<u32>,
) -> io::Result<C> {
    with_children(|all| {
        let child = spawn()?;
        let pid = pid(&child).and_then(|pid| i32::try_from(pid).ok());
        if let Some((pid, at)) = pid.and_then(|pid| Some((pid, started(pid)?))) {
            all.insert(pid, at);
        }
        if all.len() > MANY {
            all.retain(|pid, at| started(*pid) == Some(*at));
        }
        Ok(child)
    })
}

/// Looks at the git processes that were started, by pid with their start times in clock ticks, while none is being started.
/// Some may have ended.
pub fn with_children<T>(look: impl FnOnce(&mut Started) -> T) -> T {
    look(&mut STARTED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// When a process started: field 22 of its `stat`, of which the first two may contain spaces.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_this_process_is_known_and_ended_ones_are_forgotten() {
        let own = i32::try_from(std::process::id()).unwrap();
        let at = started(own).unwrap();
        assert!(at > 0 && started(own) == Some(at));
        noted(|| Ok(own), |_| Some(std::process::id())).unwrap();
        with_children(|all| {
            assert_eq!(all.get(&own), Some(&at));
            // No process has a pid below zero.
            all.extend((0..300).map(|n| (-1 - n, 1)));
        });
        noted(|| Ok(own), |_| Some(std::process::id())).unwrap();
        with_children(|all| assert!(all.len() < 100 && all.contains_key(&own), "{}", all.len()));
    }
}
