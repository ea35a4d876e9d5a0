//! Gives programs a small share of the processor: with a control group, or else with programs that
//! compete for one core.

use super::hierarchy::{Group, Version, groups};
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long to wait for killed processes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A place for one program at a time.
pub(crate) enum Place {
    /// A control group.
    Limited(PathBuf),
    /// One core, shared with these.
    Shared(Vec<Child>),
}

impl Place {
    /// Makes a place with a share of one core; `number` tells apart those of this process.
    pub(crate) fn new(percent: u32, number: u32) -> Result<Self> {
        match limited(percent, number) {
            Ok(dir) => Ok(Self::Limited(dir)),
            Err(_) => Ok(Self::Shared(competitors(percent)?)),
        }
    }

    /// The share in words; loud if it is not exact.
    pub(crate) fn describe(percent: u32) -> String {
        match limited(percent, u32::MAX) {
            Ok(dir) => {
                let _ = fs::remove_dir(dir);
                format!("{percent}% of a core")
            }
            Err(error) => format!(
                "about {percent}% of a core: NO CONTROL GROUP ({error:#}), so it shares a core with busy programs"
            ),
        }
    }

    /// A command that runs a program in this place, in a process group of its own.
    #[expect(clippy::disallowed_methods, reason = "a development task starts tests")]
    pub(crate) fn command(&self, program: &OsStr) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = match self {
            Self::Limited(dir) => {
                let mut shell = Command::new("sh");
                let enter = r#"echo $$ >"$1/cgroup.procs" && shift && exec "$@""#;
                shell.args(["-c", enter, "sh"]).arg(dir).arg(program);
                shell
            }
            Self::Shared(_) => pinned(program),
        };
        command.process_group(0);
        command
    }

    /// Kills a program that was started in this place, and all that it left behind.
    pub(crate) fn clear(&self, started: u32) {
        let Self::Limited(dir) = self else {
            kill_group(started);
            return;
        };
        let deadline = Instant::now() + PATIENCE;
        while kill_all(dir) && Instant::now() < deadline {
            // Killed processes are gone when their parents have noticed.
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        match self {
            // If it cannot be removed, an empty group remains until the next boot.
            Self::Limited(dir) => drop(fs::remove_dir(dir)),
            Self::Shared(competitors) => {
                for competitor in competitors {
                    let _ = competitor.kill();
                    let _ = competitor.wait();
                }
            }
        }
    }
}

/// Kills all processes in a group; says whether there were any.
fn kill_all(dir: &std::path::Path) -> bool {
    let listed = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let pids = listed
        .lines()
        .filter_map(|line| line.parse().ok().and_then(Pid::from_raw));
    let mut any = false;
    for pid in pids {
        // One that is gone already needs no signal.
        let _ = kill_process(pid, Signal::KILL);
        any = true;
    }
    any
}

fn kill_group(leader: u32) {
    let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
    if let Some(leader) = leader {
        // A group whose processes are all gone needs no signal.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// Makes a control group with this share of one core.
fn limited(percent: u32, number: u32) -> Result<PathBuf> {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let groups = groups(&read("mountinfo"), &read("cgroup"));
    let own = groups
        .first()
        .context("no hierarchy has the controller of the processor")?;
    if own.version == Version::Two {
        delegate(own)?;
    }
    let dir = own
        .dir
        .join(format!("agentd-stress-{}-{number}", std::process::id()));
    fs::create_dir(&dir).context("cannot make a group")?;
    let (file, content) = own.limit(percent);
    if let Err(error) = fs::write(dir.join(file), content) {
        let _ = fs::remove_dir(&dir);
        return Err(error).context("cannot limit a group");
    }
    Ok(dir)
}

/// Lets the groups within a group have limits of the processor.
fn delegate(own: &Group) -> Result<()> {
    let file = own.dir.join("cgroup.subtree_control");
    let now = fs::read_to_string(&file).unwrap_or_default();
    if now.split_whitespace().any(|name| name == "cpu") {
        return Ok(());
    }
    fs::write(&file, "+cpu")
        .context("the group has processes of its own; try `systemd-run --scope -p Delegate=yes`")
}

/// The core that is shared.
const CORE: &str = "0";

#[expect(clippy::disallowed_methods, reason = "a development task starts tests")]
fn pinned(program: &OsStr) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", CORE]).arg(program);
    command
}

/// Programs that take the rest of the core.
fn competitors(percent: u32) -> Result<Vec<Child>> {
    let count = (100 / percent.max(1)).saturating_sub(1).max(1);
    let start = |_| {
        let mut command = pinned(OsStr::new("sh"));
        let command = command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        command.spawn().context("cannot start `taskset`")
    };
    (0..count).map(start).collect()
}
