//! Reads the process table.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process, pidfd_open,
    pidfd_send_signal, wait, waitid,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// Dead, but not reaped yet.
    pub(crate) dead: bool,
    /// A kernel thread.
    pub(crate) kernel: bool,
    /// The start time in kernel ticks; together with the pid it identifies a process uniquely.
    pub(crate) started: u64,
    pub(crate) threads: u64,
    /// Resident pages, including shared ones.
    pub(crate) pages: u64,
}

/// The flag of kernel threads in a `stat` file.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// All processes, by pid.
pub(crate) type Table = BTreeMap<i32, Process>;

/// Reads one process.
pub(crate) fn read(pid: i32) -> Option<Process> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(pid: i32, stat: &str) -> Option<Process> {
    // The name in parentheses may contain anything, even parentheses and spaces: the fields start after the last `)`.
    let mut fields = stat.get(stat.rfind(')')?.checked_add(2)?..)?.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let flags: u64 = fields.nth(3)?.parse().ok()?;
    let threads = fields.nth(10)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    let pages = fields.nth(1)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        group,
        dead: matches!(state, "Z" | "X" | "x"),
        kernel: flags & KERNEL_THREAD != 0,
        started,
        threads,
        pages,
    })
}

/// Reads all processes.
pub(crate) fn table() -> Table {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Table::new();
    };
    entries
        .filter_map(|entry| read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .map(|process| (process.pid, process))
        .collect()
}

/// Reads a process and its descendants, at a cost independent of the other processes. It can miss a child while another
/// process exits: good enough to measure usage, not to prove that nothing is left.
pub(crate) fn below(home: i32) -> Table {
    let mut found = Table::new();
    let mut open = vec![home];
    while let Some(pid) = open.pop() {
        let Some(process) = read(pid) else { continue };
        if found.insert(pid, process).is_some() {
            continue;
        }
        match children(pid) {
            Some(children) => open.extend(children),
            // This kernel does not provide the list.
            None if pid == home => return table(),
            None => {}
        }
    }
    found
}

/// How often to reread the children because a thread exited meanwhile: its children then move to another thread.
const TRIES: usize = 16;

/// The children of all threads of a process.
pub(crate) fn children(pid: i32) -> Option<Vec<i32>> {
    (0..TRIES).find_map(|_| children_now(pid))
}

fn children_now(pid: i32) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        all.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    Some(all)
}

/// Whether the calling process has no child, running or dead. For a subreaper this means that it has no descendants: the
/// kernel reparents orphans to it and notifies it of their exit.
pub(crate) fn childless() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

/// Reaps one exited child, if there is one.
pub(crate) fn next_dead() -> Option<(i32, WaitStatus)> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => return Some((pid.as_raw_nonzero().get(), status)),
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

/// The process's private memory in bytes, and whether it also maps shared memory.
pub(crate) fn held(pid: i32) -> (u64, bool) {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    let own = kib("RssAnon:").unwrap_or(0).saturating_mul(1_024);
    (own, kib("RssShmem:").is_some_and(|shared| shared > 0))
}

/// The processes of `seeds` and their descendants.
pub(crate) fn with_descendants(table: &Table, seeds: impl IntoIterator<Item = i32>) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for process in table.values() {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<i32> = seeds.into_iter().collect();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// Sends a signal; ignores a process that is already gone.
pub(crate) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Runs work on processes and cgroups outside the async threads. It ends in bounded time: it accesses no session files.
#[expect(clippy::disallowed_methods, reason = "it touches no session's files")]
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(work).await
}

/// Sleeps.
pub(crate) fn pause(time: Duration) {
    // Without descriptors, poll only sleeps.
    let _ = poll(&mut [], Some(&timespec(time)));
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

/// Kills processes and waits until all have exited, but not longer than this. Those that are not there count as exited.
pub(crate) fn kill_and_wait(pids: impl IntoIterator<Item = i32>, at_most: Duration) {
    let pids = pids.into_iter().filter_map(Pid::from_raw);
    // Opened before the kill, so that the numbers are still theirs.
    let dying: Vec<OwnedFd> = pids
        .filter_map(|pid| {
            let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            pidfd_send_signal(&process, Signal::KILL).ok()?;
            Some(process)
        })
        .collect();
    let until = Instant::now() + at_most;
    for process in dying {
        let left = timespec(until.saturating_duration_since(Instant::now()));
        let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left));
    }
}

/// Whether a process is a descendant of another one. An unreadable process counts as one: the answer serves to refuse peers
/// (I7).
#[must_use]
pub fn descends_from(pid: u32, ancestor: u32) -> bool {
    let (Ok(mut pid), Ok(ancestor)) = (i32::try_from(pid), i32::try_from(ancestor)) else {
        return true;
    };
    if pid <= 0 {
        return true;
    }
    // We do not want to talk to a process with such a long chain of ancestors.
    for _ in 0..1024 {
        let Some(process) = read(pid) else { return true };
        pid = process.parent;
        if pid == ancestor {
            return true;
        }
        if pid <= 1 {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_confuse_the_fields() {
        let stat = "42 (a) b) (c) S 7 42 42 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 98765 1 2 3";
        let process = Process {
            pid: 42,
            parent: 7,
            group: 42,
            dead: false,
            kernel: false,
            started: 98765,
            threads: 1,
            pages: 2,
        };
        assert_eq!(parse(42, stat), Some(process));
        assert_eq!(parse(42, "42 (x"), None);
    }

    #[test]
    fn i7_an_unreadable_peer_counts_as_a_descendant() {
        let own = std::process::id();
        assert!(descends_from(0, own));
        assert!(descends_from(u32::MAX, own));
        assert!(descends_from(4_190_000, own));
    }

    #[test]
    fn a_process_descends_from_its_parent_and_not_from_itself() {
        let own = std::process::id();
        let parent = read(i32::try_from(own).unwrap()).unwrap().parent;
        assert!(descends_from(own, u32::try_from(parent).unwrap()));
        assert!(!descends_from(own, own));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process to be found")]
    fn only_descendants_of_a_process_are_found() {
        let script = "sleep 600 & wait";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .spawn()
            .unwrap();
        let (own, shell) = (std::process::id().cast_signed(), child.id().cast_signed());
        assert!(!childless());
        let found = std::iter::repeat_with(|| below(own))
            .find(|found| found.values().any(|process| process.parent == shell));
        let found = found.unwrap();
        assert!(found.contains_key(&own) && found.contains_key(&shell));
        assert!(!found.contains_key(&1), "only what is below");
        for process in found.values().filter(|process| process.parent == shell) {
            signal(process.pid, Signal::KILL);
        }
        child.wait().unwrap();
    }

    #[test]
    fn descendants_are_found_at_every_depth() {
        let row = |pid, parent| {
            (
                pid,
                Process {
                    pid,
                    parent,
                    group: pid,
                    dead: false,
                    kernel: false,
                    started: 1,
                    ..Process::default()
                },
            )
        };
        let table = Table::from([row(2, 1), row(3, 2), row(4, 3), row(9, 1)]);
        assert_eq!(with_descendants(&table, [2]), BTreeSet::from([2, 3, 4]));
    }
}
