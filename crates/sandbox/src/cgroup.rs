//! The cgroup around a session's commands, where this machine allows us to create one: it counts and limits without
//! polling. Version 2 limits processes and memory, version 1 here only processes.

mod parent;

use crate::bounds::Bounds;
use crate::processes::{kill_and_wait, pause};
use agentd_protocol::sandbox::KernelLimits;
pub(crate) use parent::around;
use parent::{Parent, find};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The processes of a warden, its network proxy and bubblewrap: they are in the cgroup, but not the session's.
const SPARE: u64 = 160;
/// The watch notices a session that exceeds a bound and reports which bound; the kernel's limit is higher by this.
const SLACK: u64 = 16;
/// How often to retry the removal of a cgroup that is being emptied, and the delay between attempts.
const TRIES: u32 = 100;
const AGAIN: Duration = Duration::from_millis(20);

/// Determined once: a program's parent in the cgroup tree does not change by itself.
static PLACE: LazyLock<Option<Parent>> = LazyLock::new(find);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The limits that the kernel would enforce for the sessions of this process.
#[must_use]
pub fn kernel_limits() -> KernelLimits {
    PLACE
        .as_ref()
        .map_or_else(KernelLimits::default, |parent| KernelLimits {
            processes: true,
            memory: parent.memory,
        })
}

/// A cgroup for one warden and its descendants.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dir: PathBuf,
}

impl Cgroup {
    /// Creates one; `None` where that is impossible, and the watch is the only enforcement.
    pub(crate) fn make(bounds: Bounds) -> Option<Self> {
        let parent = PLACE.as_ref()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::within(parent, &parent.name(number), bounds)
    }

    fn within(parent: &Parent, name: &str, bounds: Bounds) -> Option<Self> {
        let dir = parent.dir.join(name);
        fs::create_dir(&dir).ok()?;
        let cgroup = Self { dir };
        match cgroup.limit(parent, bounds) {
            Ok(()) => Some(cgroup),
            Err(_) => {
                cgroup.end();
                None
            }
        }
    }

    fn limit(&self, parent: &Parent, bounds: Bounds) -> io::Result<()> {
        let processes = bounds.processes.saturating_add(SPARE);
        fs::write(self.dir.join("pids.max"), processes.to_string())?;
        if parent.memory {
            let memory = bounds.memory.saturating_add(bounds.memory / SLACK);
            fs::write(self.dir.join("memory.max"), memory.to_string())?;
        }
        Ok(())
    }

    /// A process that writes its pid into this file is in the cgroup, and so is everything that it starts.
    pub(crate) fn door(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Kills the remaining processes in the cgroup and removes it. Blocks for a moment. Returns how many processes there were.
    pub(crate) fn end(&self) -> usize {
        let mut killed = BTreeSet::<i32>::new();
        // Nothing can fork away.
        let _ = fs::write(self.dir.join("pids.max"), "0");
        for _ in 0..TRIES {
            let members = self.members();
            killed.extend(&members);
            // Version 1 does not have this file.
            let _ = fs::write(self.dir.join("cgroup.kill"), "1");
            let none = members.is_empty();
            kill_and_wait(members, AGAIN);
            match fs::remove_dir(&self.dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {}
                _ => break,
            }
            if none {
                // Dead processes that were not reaped yet.
                pause(AGAIN);
            }
        }
        killed.len()
    }

    fn members(&self) -> Vec<i32> {
        let members = fs::read_to_string(self.door()).unwrap_or_default();
        let pids = members.lines().filter_map(|line| line.parse().ok());
        // Processes that this process cannot see have the number 0.
        pids.filter(|pid| *pid > 0).collect()
    }
}

/// Kills what is in the cgroups that earlier daemons of this data directory made, and removes them. Returns how many processes
/// there were. Only we can use the directory now, so none of these daemons lives.
pub(crate) fn end_left(home: &str) -> usize {
    let own = std::process::id().cast_signed();
    let left = PLACE.iter().flat_map(|parent| parent.left_by(home));
    left.map(|dir| Cgroup { dir })
        .filter(|cgroup| !cgroup.members().contains(&own))
        .map(|cgroup| cgroup.end())
        .sum()
}

/// Moves the calling process into the cgroup behind a door.
pub(crate) fn enter(door: &Path) -> io::Result<()> {
    fs::write(door, "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_limits_with_room_for_the_warden() {
        let dir = tempfile::tempdir().unwrap();
        let parent = Parent {
            dir: dir.path().to_owned(),
            memory: true,
        };
        let bounds = Bounds {
            processes: 10,
            memory: 1_600,
            ..Bounds::default()
        };
        let cgroup = Cgroup::within(&parent, "a", bounds).unwrap();
        let said = |name: &str| fs::read_to_string(cgroup.dir.join(name)).unwrap();
        assert_eq!(
            (said("pids.max").as_str(), said("memory.max").as_str()),
            ("170", "1700")
        );
        assert!(
            Cgroup::within(&parent, "a", bounds).is_none(),
            "it is there already"
        );
    }
}
