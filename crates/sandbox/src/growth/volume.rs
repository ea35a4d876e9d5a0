//! The file systems of the places where commands write, and how far their counters moved.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A small file system keeps at most this part of itself free.
const PART_OF_SIZE: u64 = 20;

/// The counters of a file system at one moment. All but `files` in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    /// Entries in use; `None` where it does not count them.
    pub(super) files: Option<u64>,
    pub(super) used: u64,
    pub(super) free: u64,
    pub(super) size: u64,
}

impl Reading {
    fn of(place: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(place).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Self {
            files: (found.f_files > 0).then(|| found.f_files.saturating_sub(found.f_ffree)),
            used: bytes(found.f_blocks.saturating_sub(found.f_bfree)),
            free: bytes(found.f_bavail),
            size: bytes(found.f_blocks),
        })
    }
}

/// One file system.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) device: u64,
    place: PathBuf,
    /// At the session's first command, at the first of the commands that run, and now.
    first: Reading,
    begun: Reading,
    now: Reading,
}

impl Volume {
    #[cfg(test)]
    pub(super) fn with(device: u64, first: Reading, now: Reading) -> Self {
        let place = PathBuf::new();
        Self {
            device,
            place,
            first,
            begun: first,
            now,
        }
    }

    /// Reads the counters. One that cannot be read stays as it was.
    pub(super) fn read(&mut self) {
        self.now = Reading::of(&self.place).unwrap_or(self.now);
    }

    pub(super) fn begin(&mut self) {
        self.read();
        self.begun = self.now;
    }

    pub(super) fn counts_no_files(&self) -> bool {
        self.begun.files.is_none()
    }

    /// New entries since the commands began, by any process.
    pub(super) fn new_files(&self) -> Option<u64> {
        Some(self.now.files?.saturating_sub(self.begun.files?))
    }

    /// Bytes since the session's first command, by any process.
    pub(super) fn growth(&self) -> u64 {
        self.now.used.saturating_sub(self.first.used)
    }

    /// The free space that should be left, if it is not, and if there was more when the commands began.
    pub(super) fn is_short_of(&self, free: u64) -> Option<u64> {
        let limit = free.min(self.now.size / PART_OF_SIZE);
        (self.now.free < limit && self.now.free < self.begun.free).then_some(limit)
    }
}

/// The file systems of the places, and those that are mounted below them.
pub(super) fn all(places: &[PathBuf]) -> Vec<Volume> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = BTreeMap::new();
    for place in places.iter().cloned().chain(mounted_below(&mounts, places)) {
        let (Ok(about), Some(reading)) = (fs::metadata(&place), Reading::of(&place)) else {
            continue;
        };
        found.entry(about.dev()).or_insert((place, reading));
    }
    let volume = |(device, (place, reading))| Volume {
        device,
        place,
        first: reading,
        begun: reading,
        now: reading,
    };
    found.into_iter().map(volume).collect()
}

/// The fifth field of a line is where it is mounted; octal escapes stand for blanks, and such a path is left out.
fn mounted_below(mounts: &str, places: &[PathBuf]) -> Vec<PathBuf> {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    points
        .map(PathBuf::from)
        .filter(|point| places.iter().any(|place| point.starts_with(place)))
        .collect()
}

/// Half of the free space of the file system that has most of it.
pub(super) fn half_of_the_free(volumes: &[Volume]) -> u64 {
    let free = volumes.iter().map(|volume| volume.first.free).max();
    free.unwrap_or(u64::MAX) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_found_once_and_those_below_too() {
        let mounts = "30 24 0:26 / /srv/w rw - ext4 /dev/a rw\n31 30 0:27 / /srv/w/cache rw - ext4 /dev/b rw\n\
                      32 24 0:28 / /srv/w-2 rw - ext4 /dev/c rw\n";
        let below = mounted_below(mounts, &["/srv/w".into()]);
        assert_eq!(below, [PathBuf::from("/srv/w"), "/srv/w/cache".into()]);
        let dir = tempfile::tempdir().unwrap();
        let places = [dir.path().to_owned(), dir.path().join("missing")];
        let found = all(&places);
        let [volume] = found.as_slice() else {
            panic!("{found:?}");
        };
        let device = fs::metadata(dir.path()).unwrap().dev();
        assert_eq!((volume.device, volume.place.as_path()), (device, dir.path()));
        assert!(volume.first.size > 0 && volume.first.free <= volume.first.size);
    }

    #[test]
    fn the_file_system_with_most_free_space_counts() {
        let reading = |free| Reading {
            free,
            ..Reading::default()
        };
        let volumes = [30, 70, 50].map(|free| Volume::with(free, reading(free), reading(0)));
        assert_eq!(half_of_the_free(&volumes), 35);
        assert_eq!(half_of_the_free(&[]), u64::MAX / 2);
    }

    #[test]
    fn a_small_file_system_keeps_less_free() {
        let reading = |free| Reading {
            free,
            size: 1_000,
            ..Reading::default()
        };
        let volume = |begun, now| Volume::with(1, reading(begun), reading(now));
        assert_eq!(volume(60, 49).is_short_of(500), Some(50));
        assert_eq!(volume(60, 50).is_short_of(500), None);
        assert_eq!(volume(60, 49).is_short_of(40), None);
        assert_eq!(volume(49, 49).is_short_of(500), None, "it was short before");
    }
}
