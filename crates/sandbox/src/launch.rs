//! How the warden starts commands, and what of itself it keeps from them.

use crate::controlling;
use nix::sys::signal::{SigSet, Signal};
use rustix::fd::OwnedFd;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The signals that are read and not obeyed: the socket alone decides when the warden ends.
pub(crate) fn taken_signals() -> SigSet {
    use Signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD].into_iter().collect()
}

/// Closes what the daemon's own parent left open: commands get 0, 1 and 2 and nothing else.
pub(crate) fn close_inherited() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // The directory that was just read is among them and closed already.
        let _ = nix::unistd::close(fd);
    }
}

/// Starts a command in a process group of its own, with three descriptors and no signal blocked.
pub(crate) fn command(
    argv: &[String],
    cwd: &Path,
    env: Vec<(String, String)>,
    descriptors: Vec<OwnedFd>,
) -> Result<u32, std::io::Error> {
    let mut command = with_descriptors(argv, cwd, env, descriptors)?;
    spawn(command.process_group(0))
}

/// The same in a session of its own, whose terminal is what the descriptors are.
pub(crate) fn at_terminal(
    argv: &[String],
    cwd: &Path,
    env: Vec<(String, String)>,
    descriptors: Vec<OwnedFd>,
) -> Result<u32, std::io::Error> {
    // A leader of a group could not begin a session.
    spawn(&mut with_descriptors(
        &controlling::words(argv),
        cwd,
        env,
        descriptors,
    )?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the commands of sessions are started"
)]
fn with_descriptors(
    argv: &[String],
    cwd: &Path,
    env: Vec<(String, String)>,
    descriptors: Vec<OwnedFd>,
) -> Result<Command, std::io::Error> {
    let invalid = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidInput, what.to_owned());
    let (program, args) = argv.split_first().ok_or_else(|| invalid("no program named"))?;
    let mut descriptors = descriptors.into_iter();
    let (Some(stdout), Some(stderr)) = (descriptors.next(), descriptors.next()) else {
        return Err(invalid("two or three descriptors expected"));
    };
    let stdin = descriptors.next().map_or_else(Stdio::null, Stdio::from);
    let mut command = Command::new(program);
    command
        .args(args)
        .envs(env)
        .current_dir(cwd)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    Ok(command)
}

fn spawn(command: &mut Command) -> Result<u32, std::io::Error> {
    // A command inherits the mask of the thread that starts it.
    let mask = taken_signals();
    mask.thread_unblock()?;
    let spawned = command.spawn();
    mask.thread_block()?;
    Ok(spawned?.id())
}
