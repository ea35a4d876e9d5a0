//! Walks the places, and finds what was made or changed there.

use crate::shared_memory::deleted_files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// The bytes of a block in the size that the kernel states.
const BLOCK: u64 = 512;

/// The criteria of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// Bytes count from here, files from `since`.
    pub(super) first: SystemTime,
    pub(super) since: SystemTime,
    /// The number of new files at which it stops.
    pub(super) enough: u64,
    pub(super) until: Instant,
}

/// The result of a walk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Files that were made since the running commands began.
    pub(super) files: u64,
    /// By device: bytes of files that were made, or made before and changed, since the session's first command.
    pub(super) new: BTreeMap<u64, u64>,
    pub(super) changed: BTreeMap<u64, u64>,
    /// Bytes of files that were made or changed since the running commands began.
    pub(super) recent: u64,
    /// Whether it saw everything.
    pub(super) complete: bool,
}

impl Found {
    pub(super) fn new_on(&self, device: u64) -> u64 {
        self.new.get(&device).copied().unwrap_or(0)
    }

    pub(super) fn changed_on(&self, device: u64) -> u64 {
        self.changed.get(&device).copied().unwrap_or(0)
    }
}

impl Walk {
    /// Counts below the places, and the deleted files that processes hold open.
    pub(super) fn run(self, places: Vec<PathBuf>, living: &BTreeSet<i32>) -> Found {
        let mut found = Found::default();
        for (device, bytes) in deleted_files(living.iter().copied()) {
            *found.new.entry(device).or_default() += bytes;
            found.recent = found.recent.saturating_add(bytes);
        }
        let mut open = places;
        while let Some(dir) = open.pop() {
            // A path that is gone, or is no longer a directory, has nothing to count.
            let Ok(entries) = fs::read_dir(&dir) else { continue };
            for entry in entries.flatten() {
                // This does not follow links.
                let Ok(about) = entry.metadata() else { continue };
                self.add(&about, &mut found);
                if found.files >= self.enough || Instant::now() > self.until {
                    return found;
                }
                if about.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        found.complete = true;
        found
    }

    fn add(self, about: &Metadata, found: &mut Found) {
        let created = about.created().ok();
        let made = created.or_else(|| about.modified().ok());
        found.files += u64::from(made.is_some_and(|time| time >= self.since));
        // Unlike the time of modification, a process cannot set this one.
        let changed = changed(about);
        if changed < self.first {
            return;
        }
        let bytes = about.blocks().saturating_mul(BLOCK);
        let new = created.is_some_and(|time| time >= self.first);
        let all = if new { &mut found.new } else { &mut found.changed };
        let sum = all.entry(about.dev()).or_default();
        *sum = sum.saturating_add(bytes);
        if changed >= self.since {
            found.recent = found.recent.saturating_add(bytes);
        }
    }
}

fn changed(about: &Metadata) -> SystemTime {
    let seconds = u64::try_from(about.ctime()).unwrap_or(0);
    let nanos = u64::try_from(about.ctime_nsec()).unwrap_or(0);
    let since = Duration::from_secs(seconds) + Duration::from_nanos(nanos);
    SystemTime::UNIX_EPOCH
        .checked_add(since)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::super::now;
    use super::*;

    fn walk(first: SystemTime, enough: u64) -> Walk {
        Walk {
            first,
            since: first,
            enough,
            until: Instant::now() + Duration::from_secs(60),
        }
    }

    #[test]
    fn new_files_are_counted_at_every_depth_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/c"), "").unwrap();
        std::os::unix::fs::symlink("/usr", dir.path().join("l")).unwrap();
        let all = |since, enough| {
            walk(since, enough)
                .run(vec![dir.path().to_owned()], &BTreeSet::new())
                .files
        };
        assert_eq!(all(SystemTime::UNIX_EPOCH, 100), 4);
        assert_eq!(all(SystemTime::UNIX_EPOCH, 3), 3);
        assert_eq!(all(now() + Duration::from_secs(3_600), 100), 0);
    }

    #[test]
    fn bytes_of_a_changed_file_count_whatever_time_it_claims() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, vec![1; 100_000]).unwrap();
        let old = fs::File::options().write(true).open(&file).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let seen = |first| walk(first, 100).run(vec![dir.path().to_owned()], &BTreeSet::new());
        let found = seen(now() - Duration::from_secs(3_600));
        let bytes: u64 = found.new.values().chain(found.changed.values()).sum();
        assert!(bytes >= 100_000 && found.recent == bytes, "{found:?}");
        assert!(found.complete);
        let later = seen(now() + Duration::from_secs(3_600));
        assert_eq!((later.new, later.changed, later.recent), Default::default());
    }
}
