//! What commands add below the places where they write: new files, and the bytes that new and changed files take. Counters
//! of the kernel are cheap, so each check reads them; but they do not tell who wrote what, so when they have moved far, a
//! separate thread walks the directories.

mod volume;
mod walk;
mod written;

use crate::bounds::{Bound, Bounds};
use crate::processes::Table;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant, SystemTime};
use volume::Volume;
use walk::{Found, Walk};
use written::Written;

/// The time limit of a walk.
const WALK: Duration = Duration::from_secs(5);
/// Walks may take at most one part in this many of the time.
const SHARE: u32 = 20;
/// The minimum interval between two walks.
const PAUSE: Duration = Duration::from_secs(1);
/// File system timestamps are coarser than our clock.
const COARSE: Duration = Duration::from_millis(20);
/// A session that has reached its bound may still delete files, which writes a little.
const LITTLE: u64 = 1 << 20;
/// Below the bound of free space, a session that holds this part of it is killed.
const PART_OF_FREE: u64 = 16;

/// The limits; pure.
#[derive(Debug, Clone, Copy)]
struct Limits {
    files: u64,
    bytes: u64,
    free: u64,
}

/// Counts what was added below some places.
pub(crate) struct Growth {
    limits: Limits,
    places: Vec<PathBuf>,
    volumes: Vec<Volume>,
    /// The start of the session's first command, and of the first of those that run.
    first: Option<SystemTime>,
    since: SystemTime,
    written: Written,
    walk: Option<Receiver<Found>>,
    begun: Instant,
    next: Instant,
}

impl Growth {
    pub(crate) fn new(bounds: Bounds, places: Vec<PathBuf>) -> Self {
        Self {
            limits: Limits {
                files: bounds.new_files,
                bytes: bounds.new_bytes,
                free: bounds.free,
            },
            places: outermost(places),
            volumes: Vec::new(),
            first: None,
            since: SystemTime::UNIX_EPOCH,
            written: Written::default(),
            walk: None,
            begun: Instant::now(),
            next: Instant::now(),
        }
    }

    /// Starts counting files. Bytes count from the first start.
    pub(crate) fn begin(&mut self) {
        self.since = now().checked_sub(COARSE).unwrap_or(SystemTime::UNIX_EPOCH);
        if self.first.is_none() {
            self.first = Some(self.since);
            self.volumes = volume::all(&self.places);
            if self.limits.bytes == 0 {
                self.limits.bytes = volume::half_of_the_free(&self.volumes);
            }
        }
        self.written.begin();
        for volume in &mut self.volumes {
            volume.begin();
        }
        self.walk = None;
        self.next = Instant::now();
        if self.volumes.iter().any(Volume::counts_no_files) {
            self.next += PAUSE;
        }
    }

    /// The exceeded limit, if any. Does not block: a walk reports its result at a later call.
    pub(crate) fn exceeded(&mut self, table: &Table, living: &BTreeSet<i32>) -> Option<(Bound, u64)> {
        self.written.read(living.iter().filter_map(|pid| table.get(pid)));
        for volume in &mut self.volumes {
            volume.read();
        }
        if let Some(walk) = &self.walk {
            let found = match walk.try_recv() {
                Ok(found) => Some(found),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => None,
            };
            self.walk = None;
            self.next = Instant::now() + PAUSE.max(self.begun.elapsed() * SHARE);
            return found.and_then(|found| self.judge(&found));
        }
        if Instant::now() >= self.next && self.suspicious() {
            self.begin_walk(living.clone());
        }
        None
    }

    /// Whether a limit may be exceeded, judged by the kernel's counters.
    fn suspicious(&self) -> bool {
        let bytes: u64 = self.volumes.iter().map(Volume::growth).sum();
        bytes.max(self.written.all()) > self.limits.bytes
            || self.volumes.iter().any(|volume| {
                volume.new_files().is_none_or(|files| files > self.limits.files)
                    || volume.is_short_of(self.limits.free).is_some()
            })
    }

    /// The limit that the session itself has exceeded.
    fn judge(&self, found: &Found) -> Option<(Bound, u64)> {
        let Limits { files, bytes, free } = self.limits;
        if found.files > files {
            return Some((Bound::NewFiles, files));
        }
        if found.recent.max(self.written.in_this_run()) <= LITTLE.min(bytes / PART_OF_FREE) {
            return None;
        }
        let on = |volume: &Volume| {
            // A changed file may have been large before: it counts up to what anyone wrote.
            let changed = volume.growth().max(self.written.all());
            found
                .new_on(volume.device)
                .saturating_add(found.changed_on(volume.device).min(changed))
        };
        if self.volumes.iter().map(on).sum::<u64>() > bytes {
            return Some((Bound::NewBytes, bytes));
        }
        let short = self.volumes.iter().find_map(|volume| {
            let limit = volume.is_short_of(free)?;
            (!found.complete || on(volume) > limit / PART_OF_FREE).then_some(limit)
        });
        short.map(|limit| (Bound::FreeSpace, limit))
    }

    fn begin_walk(&mut self, living: BTreeSet<i32>) {
        let (tell, found) = sync_channel(1);
        self.begun = Instant::now();
        let walk = Walk {
            first: self.first.unwrap_or(self.since),
            since: self.since,
            enough: self.limits.files.saturating_add(1),
            until: self.begun + WALK,
        };
        let places = self.places.clone();
        // The receiver is gone when the commands have ended meanwhile.
        let run = move || drop(tell.send(walk.run(places, &living)));
        if std::thread::Builder::new()
            .name("counter".to_owned())
            .spawn(run)
            .is_ok()
        {
            self.walk = Some(found);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is compared with the times of files, which the machine's clock gave them"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Drops places below another one: their files would count twice.
fn outermost(mut places: Vec<PathBuf>) -> Vec<PathBuf> {
    places.sort_unstable();
    // In this order, everything below a place follows directly after it.
    places.dedup_by(|place, before| place.starts_with(before));
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use volume::Reading;

    const MIB: u64 = 1 << 20;
    const DEVICE: u64 = 7;

    #[test]
    fn a_nested_directory_does_not_count_twice() {
        let places = ["/tmp/w", "/tmp-2", "/tmp", "/tmp/w/v"].map(PathBuf::from);
        assert_eq!(
            outermost(places.to_vec()),
            ["/tmp", "/tmp-2"].map(PathBuf::from).to_vec()
        );
        let apart = ["/w", "/tmp"].map(PathBuf::from);
        assert_eq!(outermost(apart.to_vec()).len(), 2);
    }

    /// A volume of 1,000 MiB, of which `used` are used; 100 were at the start.
    fn growth(used: u64) -> Growth {
        let bounds = Bounds {
            new_files: 10,
            new_bytes: 64 * MIB,
            free: 32 * MIB,
            ..Bounds::default()
        };
        let reading = |used: u64| Reading {
            files: Some(5),
            used: used * MIB,
            free: (1_000 - used) * MIB,
            size: 1_000 * MIB,
        };
        let mut growth = Growth::new(bounds, Vec::new());
        growth.volumes = vec![Volume::with(DEVICE, reading(100), reading(used))];
        growth
    }

    fn found(new: u64, changed: u64) -> Found {
        Found {
            files: 3,
            new: [(DEVICE, new * MIB)].into(),
            changed: [(DEVICE, changed * MIB)].into(),
            recent: (new + changed) * MIB,
            complete: true,
        }
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        let judge = |new, changed| growth(200).judge(&found(new, changed));
        assert_eq!(judge(64, 0), None);
        assert_eq!(judge(65, 0), Some((Bound::NewBytes, 64 * MIB)));
        assert_eq!(judge(32, 33), Some((Bound::NewBytes, 64 * MIB)));
        let files = |files| growth(200).judge(&Found { files, ..found(0, 0) });
        assert_eq!(files(10), None);
        assert_eq!(files(11), Some((Bound::NewFiles, 10)));
    }

    #[test]
    fn a_large_file_that_was_changed_counts_up_to_what_was_written() {
        assert_eq!(growth(110).judge(&found(0, 900)), None);
        assert_eq!(
            growth(165).judge(&found(0, 900)),
            Some((Bound::NewBytes, 64 * MIB))
        );
    }

    #[test]
    fn a_session_at_its_limit_may_delete() {
        let late = Found {
            recent: LITTLE,
            ..found(500, 0)
        };
        assert_eq!(growth(600).judge(&late), None);
        let more = Found {
            recent: LITTLE + 1,
            ..found(500, 0)
        };
        assert_eq!(growth(600).judge(&more), Some((Bound::NewBytes, 64 * MIB)));
    }

    #[test]
    fn little_free_space_ends_who_took_a_part_of_it_and_no_other() {
        let judge = |used, new| growth(used).judge(&found(new, 0));
        assert_eq!(judge(968, 30), None, "the limit itself is left free");
        assert_eq!(judge(969, 30), Some((Bound::FreeSpace, 32 * MIB)));
        assert_eq!(judge(969, 2), None, "others took it");
        let unknown = Found {
            complete: false,
            ..found(2, 0)
        };
        assert_eq!(growth(969).judge(&unknown), Some((Bound::FreeSpace, 32 * MIB)));
    }

    #[test]
    fn counters_that_moved_far_are_suspicious() {
        assert!(!growth(164).suspicious());
        assert!(growth(165).suspicious(), "bytes");
        assert!(growth(990).suspicious(), "free space");
        let mut files = growth(100);
        files.limits.files = 0;
        assert!(!files.suspicious(), "as many as at the start");
    }
}
