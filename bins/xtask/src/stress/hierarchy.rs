//! Where this process may make control groups that limit the processor: pure functions of files below `/proc/self`.

use std::path::PathBuf;

/// The version of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// The group that this process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) version: Version,
    pub(crate) dir: PathBuf,
}

impl Group {
    /// The file that limits the processor, and its content for a share of one core.
    pub(crate) fn limit(&self, percent: u32) -> (&'static str, String) {
        // The period is 100 ms, the default of the kernel.
        let quota = percent * 1000;
        match self.version {
            Version::One => ("cpu.cfs_quota_us", quota.to_string()),
            Version::Two => ("cpu.max", format!("{quota} 100000")),
        }
    }
}

/// The groups of this process that can have a limit of the processor, from `mountinfo` and `cgroup`. Where version 1 has the
/// controller `cpu`, version 2 does not have it.
pub(crate) fn groups(mountinfo: &str, cgroup: &str) -> Vec<Group> {
    let one = groups_of(Version::One, mountinfo, cgroup);
    if one.is_empty() {
        groups_of(Version::Two, mountinfo, cgroup)
    } else {
        one
    }
}

fn groups_of(version: Version, mountinfo: &str, cgroup: &str) -> Vec<Group> {
    let found = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        let fits = match version {
            Version::One => kind == "cgroup" && options.split(',').any(|option| option == "cpu"),
            Version::Two => kind == "cgroup2",
        };
        let mut before = before.split(' ').skip(3);
        let (root, mounted) = (before.next()?, before.next()?);
        let own = own(version, cgroup)?;
        // The mount shows the part of the hierarchy below its root.
        let below = own.strip_prefix(root.trim_end_matches('/')).unwrap_or_default();
        let dir = PathBuf::from(mounted).join(below.trim_start_matches('/'));
        fits.then_some(Group { version, dir })
    });
    found.collect()
}

/// The path of the own group within its hierarchy.
fn own(version: Version, cgroup: &str) -> Option<&str> {
    cgroup.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let fits = match version {
            Version::One => controllers.split(',').any(|name| name == "cpu"),
            Version::Two => controllers.is_empty(),
        };
        fits.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::{Group, Version, groups};

    const ONE: &str = "\
30 28 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs rw,mode=755
31 30 0:26 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
32 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
33 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    fn group(version: Version, dir: &str) -> Vec<Group> {
        let dir = dir.into();
        vec![Group { version, dir }]
    }

    #[test]
    fn the_controller_is_found_where_it_is_mounted() {
        let cgroup = "9:cpuset:/\n2:cpu,cpuacct:/user/1\n0::/";
        let dir = "/sys/fs/cgroup/cpu,cpuacct/user/1";
        assert_eq!(groups(ONE, cgroup), group(Version::One, dir));
    }

    #[test]
    fn a_unified_hierarchy_is_used_when_there_is_no_other() {
        let mounts = "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        let own = "0::/user.slice/user-1000.slice/session-1.scope";
        let dir = "/sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope";
        assert_eq!(groups(mounts, own), group(Version::Two, dir));
    }

    #[test]
    fn a_mount_of_a_part_is_relative_to_that_part() {
        let mounts = "35 24 0:30 /docker/abc /sys/fs/cgroup rw - cgroup cgroup rw,cpu";
        assert_eq!(
            groups(mounts, "3:cpu:/docker/abc/x"),
            group(Version::One, "/sys/fs/cgroup/x")
        );
    }

    #[test]
    fn without_the_controller_there_is_no_group() {
        assert_eq!(
            groups(
                "31 30 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset",
                ""
            ),
            []
        );
    }

    #[test]
    fn the_limit_is_a_share_of_one_core() {
        let [one, two] = [Version::One, Version::Two].map(|version| Group {
            version,
            dir: "/".into(),
        });
        assert_eq!(one.limit(20), ("cpu.cfs_quota_us", "20000".to_owned()));
        assert_eq!(two.limit(50), ("cpu.max", "50000 100000".to_owned()));
    }
}
