//! Finds and kills orphans of commands, which become children of the daemon when a command kills its warden.
//!
//! The daemon is a subreaper: a process that loses its warden and the fork server becomes its child, not init's. It stays a
//! descendant of the daemon, which the control socket refuses ([`crate::descends_from`]), and is found here (I5).

use crate::forker;
use crate::line::Line;
use crate::processes::{self, below, read, signal};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, waitpid};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// The interval between scans that nothing triggered.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The pause between two rounds: killed processes take a moment to exit, and their children are reparented only then.
const ROUND_EVERY: Duration = Duration::from_millis(20);
/// Rounds per scan. A process that cannot be killed (a set-user-id program) must not keep the daemon busy.
const ROUNDS: u32 = 250;

/// Triggers a scan: a warden exited without cleaning up.
static LOST: Notify = Notify::const_new();

/// Children by pid, with their start times.
type Children = BTreeMap<i32, u64>;

/// Requests a scan soon.
pub(crate) fn look() {
    LOST.notify_one();
}

/// Kills this process's strays for as long as the value is held.
#[derive(Debug)]
pub struct Strays {
    spared: Arc<Children>,
    task: JoinHandle<()>,
}

impl Strays {
    /// Makes the process a subreaper and watches for strays: children that neither this crate nor `agentd_git` started. Children that already
    /// exist are spared. Call it once, inside the runtime, before the first command. `ended` receives the number of strays
    /// that a scan killed.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn adopt(ended: fn(usize)) -> io::Result<Self> {
        let spared = Arc::new(children());
        set_child_subreaper(Some(getpid()))?;
        let task = tokio::spawn(watch(Arc::clone(&spared), ended));
        Ok(Self { spared, task })
    }

    /// Kills the remaining strays when the daemon exits. Returns how many there were.
    pub async fn end(self) -> usize {
        self.task.abort();
        end_all(&self.spared, Git::Ends).await
    }
}

async fn watch(spared: Arc<Children>, ended: fn(usize)) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = LOST.notified() => {}
        }
        let count = end_all(&spared, Git::Stays).await;
        if count > 0 {
            ended(count);
        }
    }
}

/// Kills strays until none is left, within bounds. Returns how many were reaped.
async fn end_all(spared: &Arc<Children>, git: Git) -> usize {
    let mut ticks = interval(ROUND_EVERY);
    let mut reaped = 0_usize;
    for _ in 0..ROUNDS {
        ticks.tick().await;
        let spared = Arc::clone(spared);
        // Runs on the thread that starts children, so a child that is just starting is not taken for a stray.
        match forker::there(move |line| Ok(round(line, &spared, git))).await {
            Ok(Round { found: 0, .. }) | Err(_) => break,
            Ok(round) => reaped = reaped.saturating_add(round.reaped),
        }
    }
    reaped
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    found: usize,
    reaped: usize,
}

/// What becomes of the git processes that the daemon runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Git {
    Stays,
    Ends,
}

/// Kills every stray with its descendants, and reaps the dead.
fn round(line: &mut Line, spared: &Children, git: Git) -> Round {
    // While it looks, no git starts: one that is just starting would be taken for a stray.
    agentd_git::with_children(|gits| {
        let none = Children::new();
        kill(line, [spared, if git == Git::Stays { gits } else { &none }])
    })
}

fn kill(line: &mut Line, spared: [&Children; 2]) -> Round {
    let own = line.own_children();
    let all = children().into_iter();
    let strays: Vec<i32> = all
        .filter(|(pid, at)| !own.contains(pid) && spared.iter().all(|some| some.get(pid) != Some(at)))
        .map(|(pid, _)| pid)
        .collect();
    // Stops them first: a stopped process starts nothing new.
    for kind in [Signal::STOP, Signal::KILL] {
        for pid in strays.iter().flat_map(|stray| below(*stray).into_keys()) {
            signal(pid, kind);
        }
    }
    Round {
        found: strays.len(),
        reaped: strays.iter().filter(|stray| reap(**stray)).count(),
    }
}

/// Waits for this one stray only: the runtime waits for its own children.
fn reap(stray: i32) -> bool {
    let Some(pid) = Pid::from_raw(stray) else {
        return false;
    };
    loop {
        match waitpid(Some(pid), WaitOptions::NOHANG) {
            Ok(Some(_)) => return true,
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return false,
        }
    }
}

/// The children of this process, running or dead.
fn children() -> Children {
    let own = getpid().as_raw_nonzero().get();
    let pids = processes::children(own).unwrap_or_else(|| {
        // This kernel does not provide the list.
        let all = processes::table().into_values();
        all.filter(|process| process.parent == own)
            .map(|process| process.pid)
            .collect()
    });
    let started = pids.into_iter().filter_map(read);
    started
        .filter(|process| process.parent == own)
        .map(|process| (process.pid, process.started))
        .collect()
}
