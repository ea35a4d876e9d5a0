//! How much memory the machine has, and how much of it is left: the kernel's figures, and the limits of the cgroups around
//! this process, for example those of a container.

use crate::cgroup::around;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The memory bound where the machine's memory size is unknown.
const LEAST_MEMORY: u64 = 1 << 30;
/// A session may hold this many times what is left.
const TIMES_LEFT: u64 = 2;
/// A session with less memory than this is never the reason why little is left.
const LEAST_SHARE: u64 = 256 << 20;

/// Determined once: a process moves only between groups within these.
static AROUND: LazyLock<Vec<PathBuf>> = LazyLock::new(around);

/// Half of the machine's memory, or of the container's.
#[must_use]
pub fn half_of_the_machine() -> u64 {
    let limits = AROUND.iter().filter_map(|dir| number(dir, "memory.max"));
    meminfo("MemTotal:")
        .into_iter()
        .chain(limits)
        .min()
        .map_or(LEAST_MEMORY, |bytes| bytes / 2)
}

/// The memory that one session may hold now, which is a multiple of what is left: alone it may hold most of it, and each
/// session that grows takes from the shares of all, so that some memory always stays free. A switch shares its buffers among
/// its ports in the same way (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
/// 1998). `None` where the kernel does not say what is left.
pub(crate) fn share_of_memory() -> Option<u64> {
    let left = AROUND.iter().filter_map(|dir| left_in(dir));
    meminfo("MemAvailable:").into_iter().chain(left).min().map(share)
}

fn share(left: u64) -> u64 {
    left.saturating_mul(TIMES_LEFT).max(LEAST_SHARE)
}

/// The memory that a cgroup has left. Unused pages of files are as good as free.
fn left_in(dir: &Path) -> Option<u64> {
    let used = number(dir, "memory.current")?;
    let stat = fs::read_to_string(dir.join("memory.stat")).ok()?;
    let files = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let files = files?.trim().parse::<u64>().ok()?;
    Some(number(dir, "memory.max")?.saturating_sub(used.saturating_sub(files)))
}

/// `None` for `max`, too.
fn number(dir: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()
}

fn meminfo(name: &str) -> Option<u64> {
    value(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

fn value(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_its_memory() {
        let text = "MemTotal:       24684084 kB\nMemFree:        23331616 kB\n";
        assert_eq!(value(text, "MemTotal:"), Some(24_684_084 * 1_024));
        assert_eq!(value("MemFree: 1 kB\n", "MemTotal:"), None);
        assert_eq!(value("MemTotal: many kB\n", "MemTotal:"), None);
    }

    #[test]
    fn sessions_that_grow_together_leave_memory_free() {
        let machine = 24_000_u64 << 20;
        for sessions in [1, 2, 10, 40] {
            let mut each = 0;
            while each < share(machine.saturating_sub(each * sessions)) {
                each += 1 << 20;
            }
            assert!(
                each * sessions < machine - (100 << 20),
                "{sessions} sessions with {each} bytes each"
            );
        }
        assert_eq!(share(0), LEAST_SHARE);
    }

    #[test]
    fn a_cgroup_without_a_limit_has_no_say() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 5\ninactive_file 100\nactive_file 9\n");
        assert_eq!(left_in(dir.path()), None);
        write("memory.max", "1000\n");
        assert_eq!(left_in(dir.path()), Some(400));
        write("memory.max", "500\n");
        assert_eq!(left_in(dir.path()), Some(0), "it was lowered");
    }
}
