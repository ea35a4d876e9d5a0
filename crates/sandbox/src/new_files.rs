//! Counts the files that commands created. The file system's own count of free entries is cheap, so it is read often; but
//! it does not tell who created them, so when it has moved far, a separate thread walks the directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant, SystemTime};

/// The time limit of a walk.
const WALK: Duration = Duration::from_secs(5);
/// Walks may take at most one part in this many of the time.
const SHARE: u32 = 20;
/// The minimum interval between two walks.
const PAUSE: Duration = Duration::from_secs(1);
/// File system timestamps are coarser than our clock.
const COARSE: Duration = Duration::from_millis(20);

/// Counts the files that were created below some places since the start.
pub(crate) struct NewFiles {
    limit: u64,
    places: Vec<PathBuf>,
    /// Entries in use at the start in the file system of each place; `None` where it does not count them.
    used: Vec<Option<u64>>,
    since: SystemTime,
    walk: Option<Receiver<u64>>,
    next: Instant,
}

impl NewFiles {
    pub(crate) fn new(limit: u64, places: Vec<PathBuf>) -> Self {
        Self {
            limit,
            places: outermost(places),
            used: Vec::new(),
            since: SystemTime::UNIX_EPOCH,
            walk: None,
            next: Instant::now(),
        }
    }

    /// Starts counting.
    pub(crate) fn begin(&mut self) {
        self.since = now().checked_sub(COARSE).unwrap_or(SystemTime::UNIX_EPOCH);
        self.used = self.places.iter().map(|place| used(place)).collect();
        self.walk = None;
        self.next = Instant::now() + PAUSE;
        if self.used.iter().all(Option::is_some) {
            self.next = Instant::now();
        }
    }

    /// Whether there are too many. Does not block: a walk reports its result at a later call.
    pub(crate) fn exceeded(&mut self) -> bool {
        if let Some(walk) = &self.walk {
            return match walk.try_recv() {
                Ok(found) => {
                    self.walk = None;
                    found > self.limit
                }
                Err(TryRecvError::Empty) => false,
                Err(TryRecvError::Disconnected) => {
                    self.walk = None;
                    false
                }
            };
        }
        if Instant::now() >= self.next && self.suspicious() {
            self.begin_walk();
        }
        false
    }

    /// Whether there may be too many, judged by the file systems' counters.
    fn suspicious(&self) -> bool {
        self.places
            .iter()
            .zip(&self.used)
            .any(|(place, before)| match (before, used(place)) {
                (Some(before), Some(now)) => now.saturating_sub(*before) > self.limit,
                _ => true,
            })
    }

    fn begin_walk(&mut self) {
        let (tell, found) = sync_channel(1);
        let (places, since, enough) = (self.places.clone(), self.since, self.limit.saturating_add(1));
        let begun = Instant::now();
        let walk = move || {
            let until = Instant::now() + WALK;
            // The receiver is gone when the commands have ended meanwhile.
            let _ = tell.send(count(&places, since, enough, until));
        };
        if std::thread::Builder::new()
            .name("counter".to_owned())
            .spawn(walk)
            .is_ok()
        {
            self.walk = Some(found);
        }
        self.next = begun + PAUSE.max(WALK / SHARE);
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

/// The number of entries in use in the file system of a place.
fn used(place: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(place).ok()?;
    (found.f_files > 0).then(|| found.f_files.saturating_sub(found.f_ffree))
}

/// Counts files below the places that are younger than `since`; stops at `enough`, and at a time limit.
fn count(places: &[PathBuf], since: SystemTime, enough: u64, until: Instant) -> u64 {
    let mut found = 0;
    let mut open: Vec<PathBuf> = places.to_vec();
    while let Some(dir) = open.pop() {
        // A path that is gone, or is no longer a directory, has nothing to count.
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            // This does not follow links.
            let Ok(about) = entry.metadata() else { continue };
            let young = about
                .created()
                .or_else(|_| about.modified())
                .is_ok_and(|time| time >= since);
            found += u64::from(young);
            if found >= enough || Instant::now() > until {
                return found;
            }
            if about.is_dir() {
                open.push(entry.path());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_are_counted_at_every_depth_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/c"), "").unwrap();
        std::os::unix::fs::symlink("/usr", dir.path().join("l")).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let all = |since, enough| count(&[dir.path().to_owned()], since, enough, until);
        assert_eq!(all(SystemTime::UNIX_EPOCH, 100), 4);
        assert_eq!(all(SystemTime::UNIX_EPOCH, 3), 3);
        assert_eq!(all(now() + Duration::from_secs(3_600), 100), 0);
    }

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

    #[test]
    fn the_limit_itself_is_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let exceeded = |limit| {
            let mut files = NewFiles::new(limit, vec![dir.path().to_owned()]);
            files.begin();
            files.begin_walk();
            let found = files.walk.take().unwrap().recv().unwrap();
            found > limit
        };
        assert!(!exceeded(0));
        for name in ["a", "b"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let mut files = NewFiles::new(1, vec![dir.path().to_owned()]);
        files.since = SystemTime::UNIX_EPOCH;
        files.begin_walk();
        assert_eq!(files.walk.take().unwrap().recv().unwrap(), 2);
    }
}
