//! Shared memory of processes. A page counts once, however many processes map it or hold its file open. It also counts when
//! no process maps it: a memory file (`memfd_create`) keeps its pages as long as a descriptor is open.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A device (major, minor) and an inode.
type Key = (u32, u32, u64);

/// Memory files that processes hold open, with the bytes that each one occupies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryFiles(BTreeMap<Key, u64>);

impl MemoryFiles {
    /// Reads the descriptors of `pids`. `with_deleted` includes deleted files of `/dev/shm`; leave it out where that file
    /// system is counted separately.
    pub(crate) fn open_in(pids: impl IntoIterator<Item = i32>, with_deleted: bool) -> Self {
        Self(open_files(pids, |link| is_memory(link, with_deleted)))
    }

    /// The total in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.values().sum()
    }

    /// This process's share of the shared memory that it maps, without these files, and without those of `/dev/shm` if
    /// `without_shm` is set.
    pub(crate) fn other_mapped(&self, pid: i32, without_shm: bool) -> u64 {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
        mapped(&text, |key, path| {
            self.0.contains_key(&key) || (without_shm && path.starts_with("/dev/shm/"))
        })
    }
}

/// The files that processes hold open, by what their links in `/proc` say, with the bytes that each one occupies.
fn open_files(pids: impl IntoIterator<Item = i32>, wanted: impl Fn(&Path) -> bool) -> BTreeMap<Key, u64> {
    let mut found = BTreeMap::new();
    for pid in pids {
        // A process that has exited holds nothing.
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            // Reads only the link first: a stat of another kind of file may block on its file system.
            let link = fs::read_link(&path).is_ok_and(|link| wanted(&link));
            if let Some(about) = link.then(|| fs::metadata(&path).ok()).flatten() {
                let dev = about.dev();
                let key = (rustix::fs::major(dev), rustix::fs::minor(dev), about.ino());
                found.insert(key, about.blocks().saturating_mul(512));
            }
        }
    }
    found
}

/// The device and bytes of each deleted file, outside of memory, that processes hold open: no walk finds it.
pub(crate) fn deleted_files(pids: impl IntoIterator<Item = i32>) -> Vec<(u64, u64)> {
    let files = open_files(pids, |link| is_deleted(link) && !is_memory(link, true));
    let device = |((major, minor, _), bytes)| (rustix::fs::makedev(major, minor), bytes);
    files.into_iter().map(device).collect()
}

fn is_deleted(link: &Path) -> bool {
    link.to_str().is_some_and(|link| link.ends_with(" (deleted)"))
}

fn is_memory(link: &Path, with_deleted: bool) -> bool {
    link.to_str().is_some_and(|link| {
        let deleted = link.starts_with("/dev/shm/") && link.ends_with(" (deleted)");
        link.starts_with("/memfd:") || (with_deleted && deleted)
    })
}

/// The whole machine's shared memory, an upper bound for any session. `None` where the kernel does not report it.
pub(crate) fn of_the_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:"))?;
    Some(kib(line)?.saturating_mul(1_024))
}

fn kib(value: &str) -> Option<u64> {
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The proportional share of the shared memory in a process's mappings, without the skipped ones.
fn mapped(smaps: &str, skip: impl Fn(Key, &str) -> bool) -> u64 {
    let (mut total, mut share, mut counts) = (0_u64, 0_u64, false);
    for line in smaps.lines() {
        if let Some((key, path)) = header(line) {
            counts = is_shared(path) && !skip(key, path);
        } else if !counts {
        } else if let Some(value) = line.strip_prefix("Pss:") {
            share = kib(value).unwrap_or(0);
        } else if let Some(value) = line.strip_prefix("Anonymous:") {
            // Private copies of such pages count as the process's own memory.
            total = total.saturating_add(share.saturating_sub(kib(value).unwrap_or(0)));
        }
    }
    total.saturating_mul(1_024)
}

fn is_shared(path: &str) -> bool {
    ["/memfd:", "/dev/zero (deleted)", "/SYSV", "/dev/shm/"]
        .iter()
        .any(|start| path.starts_with(start))
}

/// The first line of a mapping: `FROM-TO PERMISSIONS OFFSET MAJOR:MINOR INODE PATH`.
fn header(line: &str) -> Option<(Key, &str)> {
    let mut fields = line.splitn(6, ' ');
    fields.next()?.split_once('-')?;
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let key = (
        u32::from_str_radix(major, 16).ok()?,
        u32::from_str_radix(minor, 16).ok()?,
        fields.next()?.parse().ok()?,
    );
    Some((key, fields.next().unwrap_or_default().trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000100000 rw-s 00000000 00:01 77                         /memfd:a (deleted)
Size:               1024 kB
Pss:                 512 kB
Anonymous:             0 kB
7f0000200000-7f0000300000 rw-s 00000000 00:01 78                         /dev/zero (deleted)
Pss:                 300 kB
Anonymous:             0 kB
7f0000400000-7f0000500000 rw-p 00000000 00:1c 5                          /dev/shm/b
Pss:                 200 kB
Anonymous:            50 kB
7f0000600000-7f0000700000 rw-p 00000000 00:00 0
Pss:                 900 kB
Anonymous:           900 kB
";

    #[test]
    fn shared_mappings_count_by_their_share_and_the_skipped_do_not() {
        let kib = |skip: fn(Key, &str) -> bool| mapped(SMAPS, skip) >> 10;
        assert_eq!(kib(|_, _| false), 512 + 300 + 150);
        assert_eq!(kib(|key, _| key == (0, 1, 77)), 300 + 150);
        assert_eq!(kib(|_, path| path.starts_with("/dev/shm/")), 512 + 300);
    }

    #[test]
    fn only_memory_files_are_examined() {
        let memory = |link: &str, deleted| is_memory(Path::new(link), deleted);
        assert!(memory("/memfd:x (deleted)", false));
        assert!(memory("/dev/shm/x (deleted)", true));
        assert!(!memory("/dev/shm/x (deleted)", false));
        assert!(!memory("/dev/shm/x", true));
        assert!(!memory("/srv/memfd:x", true));
    }

    #[test]
    fn a_deleted_file_counts_while_it_is_open() {
        use std::io::Write as _;
        let own = std::process::id().cast_signed();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 1 << 20]).unwrap();
        let device = file.metadata().unwrap().dev();
        let held = deleted_files([own]);
        let large = |found: &(u64, u64)| *found == (device, file.metadata().unwrap().blocks() * 512);
        assert!(held.iter().any(large), "{held:?}");
    }

    #[test]
    fn an_unmapped_memory_file_counts_once() {
        use std::io::Write as _;
        let own = std::process::id().cast_signed();
        let before = MemoryFiles::open_in([own], true).bytes();
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = fs::File::from(rustix::fs::memfd_create("t", flags).unwrap());
        file.write_all(&[1; 1 << 20]).unwrap();
        let again = file.try_clone().unwrap();
        assert_eq!(MemoryFiles::open_in([own, own], true).bytes() - before, 1 << 20);
        drop((file, again));
    }
}
