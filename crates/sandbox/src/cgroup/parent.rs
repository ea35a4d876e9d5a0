//! Finds where in the kernel's cgroup tree we can create cgroups.

use crate::mark;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The prefix of our cgroups' names; the data directory, the daemon's pid and the cgroup's number follow.
const PREFIX: &str = "agentd-";
/// The cgroup that the daemon moves to when a limiting cgroup must hold no process of its own.
const OWN: &str = "agentd";

/// A directory in which cgroups can be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) dir: PathBuf,
    /// Whether memory can be limited there, too.
    pub(super) memory: bool,
}

impl Parent {
    /// The name of the cgroup with this number.
    pub(super) fn name(&self, number: u64) -> String {
        format!("{PREFIX}{}.{}-{number}", mark::of_cgroups(), std::process::id())
    }

    /// The cgroups of other processes that used this data directory.
    pub(super) fn left_by(&self, home: &str) -> Vec<PathBuf> {
        let own = std::process::id().to_string();
        let theirs = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let (of, pid) = parts(name.to_str()?)?;
            (of == home && !home.is_empty() && pid != own).then(|| entry.path())
        };
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries.filter_map(theirs).collect()
    }
}

/// The best available parent: a cgroup of version 2, else one of version 1 that counts processes.
pub(super) fn find() -> Option<Parent> {
    let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
    let parent = second(&own, &mounts).or_else(|| first(&own, &mounts))?;
    sweep(&parent.dir);
    Some(parent)
}

/// The directories of version 2 around this process, from the inside out, without that of a session.
pub(crate) fn around() -> Vec<PathBuf> {
    let found = || dir_of(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?, None);
    found().map_or_else(Vec::new, |dir| above(&dir))
}

fn above(dir: &Path) -> Vec<PathBuf> {
    let of_a_session = |dir: &&Path| {
        let name = dir.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    let groups = dir
        .ancestors()
        .take_while(|dir| dir.join("cgroup.procs").exists());
    groups.skip_while(of_a_session).map(Path::to_owned).collect()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn second(own: &str, mounts: &str) -> Option<Parent> {
    let dir = dir_of(own, mounts, None)?;
    let has = |file: &str, name: &str| {
        let words = fs::read_to_string(dir.join(file)).unwrap_or_default();
        words.split_whitespace().any(|word| word == name)
    };
    if !has("cgroup.controllers", "pids") {
        return None;
    }
    let wanted: Vec<&str> = ["pids", "memory"]
        .into_iter()
        .filter(|name| has("cgroup.controllers", name))
        .collect();
    if !wanted.iter().all(|name| has("cgroup.subtree_control", name)) {
        let words: Vec<String> = wanted.iter().map(|name| format!("+{name}")).collect();
        enable(&dir, &words.join(" ")).ok()?;
    }
    try_in(&dir).then(|| Parent {
        memory: wanted.contains(&"memory"),
        dir,
    })
}

/// A cgroup with limited children must not hold a process itself: if we are alone in ours, we move into a child.
fn enable(dir: &Path, words: &str) -> io::Result<()> {
    let control = dir.join("cgroup.subtree_control");
    let Err(error) = fs::write(&control, words) else {
        return Ok(());
    };
    let members = fs::read_to_string(dir.join("cgroup.procs"))?;
    if members.trim() != std::process::id().to_string() {
        return Err(error);
    }
    let own = dir.join(OWN);
    match fs::create_dir(&own) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::write(own.join("cgroup.procs"), "0")?;
    fs::write(&control, words)
}

fn first(own: &str, mounts: &str) -> Option<Parent> {
    let dir = dir_of(own, mounts, Some("pids"))?;
    try_in(&dir).then_some(Parent { dir, memory: false })
}

/// The data directory and the pid in the name of a cgroup. Earlier versions left the first out.
fn parts(name: &str) -> Option<(&str, &str)> {
    let (owner, _) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    Some(owner.rsplit_once('.').unwrap_or(("", owner)))
}

/// Whether a cgroup that limits processes can be created there.
fn try_in(dir: &Path) -> bool {
    let tried = dir.join(format!("{PREFIX}{}-0", std::process::id()));
    let made = fs::create_dir(&tried).is_ok();
    let good = made && fs::write(tried.join("pids.max"), "1000").is_ok();
    if made {
        // It is empty. If the removal fails, the next start removes it.
        let _ = fs::remove_dir(&tried);
    }
    good
}

/// Removes the cgroups of daemons that are gone. A cgroup with a process in it cannot be removed.
fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let daemon = name.to_str().and_then(parts);
        if daemon.is_some_and(|(_, pid)| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The directory of our own cgroup: in version 1 with this controller, or in version 2.
fn dir_of(own: &str, mounts: &str, controller: Option<&str>) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = match controller {
            Some(name) => names.split(',').any(|found| found == name),
            None => number == "0" && names.is_empty(),
        };
        ours.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let ours = match controller {
            Some(name) => kind == "cgroup" && options.split(',').any(|found| found == name),
            None => kind == "cgroup2",
        };
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        ours.then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_group_is_found_in_both_versions_and_below_a_mounted_part() {
        let own = "8:pids:/box/a\n4:memory:/m\n0::/user.slice/x.scope\n";
        let mounts = "30 24 0:26 /user.slice /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\
                      31 24 0:27 /box /sys/fs/pids rw - cgroup cgroup rw,pids\n";
        let found = |controller| dir_of(own, mounts, controller);
        assert_eq!(found(None), Some("/sys/fs/cgroup/x.scope".into()));
        assert_eq!(found(Some("pids")), Some("/sys/fs/pids/a".into()));
        assert_eq!(found(Some("cpu")), None);
        assert_eq!(dir_of(own, "", None), None);
    }

    #[test]
    fn only_what_a_dead_daemon_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let living = format!("{PREFIX}{}-1", std::process::id());
        let dead = ["agentd-4194999-1", "agentd-fe-2a.4194999-7"];
        for name in [living.as_str(), dead[0], dead[1], "agentd", "other"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        sweep(dir.path());
        let left = |name: &str| dir.path().join(name).exists();
        assert!(left(&living) && left("agentd") && left("other"));
        assert!(dead.into_iter().all(|name| !left(name)));
    }

    #[test]
    fn i5_only_the_groups_of_earlier_daemons_of_the_same_data_directory_are_ended() {
        let dir = tempfile::tempdir().unwrap();
        let own = format!("agentd-fe-2a.{}-1", std::process::id());
        // A living process of another process namespace may have any number.
        let theirs = ["agentd-fe-2a.7-1", "agentd-fe-2a.1-20"];
        let others = [
            "agentd-fe-2.7-1",
            "agentd-ffe-2a.7-1",
            "agentd-.7-1",
            "agentd-7-1",
            "agentd-fe-2a",
            "agentd",
        ];
        for name in theirs.iter().chain(&others).copied().chain([own.as_str()]) {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let parent = Parent {
            dir: dir.path().to_owned(),
            memory: false,
        };
        let mut left = parent.left_by("fe-2a");
        left.sort();
        assert_eq!(
            left,
            ["agentd-fe-2a.1-20", "agentd-fe-2a.7-1"].map(|name| dir.path().join(name))
        );
        assert!(parent.left_by("").is_empty(), "no data directory is nobody's");
    }

    #[test]
    fn the_groups_around_a_session_do_not_include_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (all, own) = (dir.path().join("all"), dir.path().join("all/agentd-7-1"));
        fs::create_dir_all(&own).unwrap();
        for group in [&all, &own] {
            fs::write(group.join("cgroup.procs"), "").unwrap();
        }
        assert_eq!(above(&own), std::slice::from_ref(&all));
        assert_eq!(above(&all), [all]);
        assert!(above(dir.path()).is_empty(), "it is no group");
    }

    #[test]
    fn a_directory_without_limits_is_no_place() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!try_in(&dir.path().join("missing")));
    }
}
