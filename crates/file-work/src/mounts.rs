//! Determines the file system of a path without accessing it: a stat of the path itself could block.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

const TABLE: &str = "/proc/self/mountinfo";
const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `major:minor`: the same for all mounts of one file system.
    pub(crate) device: String,
    /// The mount point.
    pub(crate) point: PathBuf,
}

/// The mount table of this process, reread when the kernel reports a change.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    file: Option<File>,
    list: Vec<Mount>,
}

impl Mounts {
    /// The mount that contains a path. Without a mount table everything is on one file system.
    pub(crate) fn of(&mut self, path: &Path) -> Mount {
        if self.changed() {
            self.list = self.read().map(|text| parse(&text)).unwrap_or_default();
        }
        find(&self.list, path)
    }

    fn changed(&self) -> bool {
        let Some(file) = &self.file else { return true };
        // The kernel reports a change of the table as an exceptional condition, once.
        let mut fds = [PollFd::new(file, PollFlags::PRI)];
        poll(&mut fds, Some(&NOW)).is_ok_and(|ready| ready > 0)
    }

    fn read(&mut self) -> io::Result<String> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(File::open(TABLE)?),
        };
        file.rewind()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The mount whose mount point is the path's longest prefix; of two at the same point, the later one hides the other.
fn find(mounts: &[Mount], path: &Path) -> Mount {
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let deepest = around.max_by_key(|mount| mount.point.as_os_str().len());
    deepest.cloned().unwrap_or_else(|| Mount {
        device: "unknown".to_owned(),
        point: PathBuf::from("/"),
    })
}

/// The mount points of a table in the format of `/proc/self/mountinfo`, in order.
#[must_use]
pub fn mount_points(table: &str) -> Vec<PathBuf> {
    parse(table).into_iter().map(|mount| mount.point).collect()
}

/// Parses the table: space-separated; field 3 is the device, field 5 the mount point (proc_pid_mountinfo(5)).
fn parse(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let mut fields = line.split(' ').skip(2);
        let device = fields.next()?.to_owned();
        let point = unescape(fields.nth(1)?);
        Some(Mount { device, point })
    };
    text.lines().filter_map(mount).collect()
}

/// The kernel escapes space, tab, newline and backslash as three octal digits.
fn unescape(field: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /mnt rw - tmpfs tmpfs rw
31 22 0:45 / /mnt/a\\040b rw - fuse.x x rw
32 22 0:46 / /mnt/a\\040b rw - fuse.y y rw
33 22 254:0 /srv /home/x rw - ext4 /dev/vda rw
broken line
";

    #[test]
    fn a_path_belongs_to_the_deepest_and_latest_mount() {
        let mounts = parse(TEXT);
        let device = |path: &str| find(&mounts, Path::new(path)).device;
        assert_eq!(
            ["/", "/mnt/c", "/mnt/a b/c", "/mnt/a bc", "/home/x/y", "/home/xy"].map(device),
            ["254:0", "0:26", "0:46", "0:26", "254:0", "254:0"]
        );
        assert_eq!(find(&[], Path::new("/x")).device, "unknown");
        assert_eq!(unescape("a\\134b\\9"), Path::new("a\\b\\9"));
    }

    #[test]
    fn the_mount_table_is_read_once_and_after_changes() {
        let mut mounts = Mounts::default();
        let root = mounts.of(Path::new("/"));
        assert_eq!(root.point, Path::new("/"));
        assert!(mounts.of(Path::new("/proc/self")).point.starts_with("/proc"));
        assert!(!mounts.changed());
    }
}
