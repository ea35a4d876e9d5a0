//! How the warden starts commands, and what they do not inherit from it.

use crate::controlling;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::fd::OwnedFd;
use rustix::fs::{Access, access};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Signals that are read and ignored: only the socket decides when the warden ends. Each would end it by default, but for
/// SIGCHLD.
const TAKEN: [Signal; 13] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGCHLD,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    Signal::SIGIO,
    Signal::SIGPWR,
    Signal::SIGSTKFLT,
];

/// Blocks these signals in this thread and returns where to read them.
///
/// A handler replaces each action, since an ignored signal stays ignored in the programs that a process starts: under a
/// daemon that a script runs in the background, ctrl-c would not reach a session's commands.
pub(crate) fn take_signals() -> Result<SignalFd, std::io::Error> {
    for signal in TAKEN {
        signal_hook::flag::register(signal as i32, Arc::default())?;
    }
    let mask: SigSet = TAKEN.into_iter().collect();
    mask.thread_block()?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    Ok(SignalFd::with_flags(&mask, flags)?)
}

/// Closes what the daemon's own parent left open: commands get descriptors 0, 1 and 2 and nothing else.
pub(crate) fn close_inherited() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // They include the directory that was just read, which is closed already.
        let _ = nix::unistd::close(fd);
    }
}

/// Starts a command in its own process group, with three descriptors and no blocked signals.
pub(crate) fn command(
    argv: &[String],
    cwd: &Path,
    env: Vec<(String, String)>,
    descriptors: Vec<OwnedFd>,
) -> Result<u32, std::io::Error> {
    let mut command = with_descriptors(argv, cwd, env, descriptors)?;
    spawn(command.process_group(0))
}

/// The same in its own session, whose terminal is on the descriptors.
pub(crate) fn at_terminal(
    argv: &[String],
    cwd: &Path,
    env: Vec<(String, String)>,
    descriptors: Vec<OwnedFd>,
) -> Result<u32, std::io::Error> {
    // A group leader could not start a session.
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
    let (program, args) = argv.split_first().ok_or_else(|| invalid("no program given"))?;
    let mut descriptors = descriptors.into_iter();
    let (Some(stdout), Some(stderr)) = (descriptors.next(), descriptors.next()) else {
        return Err(invalid("expected two or three file descriptors"));
    };
    let stdin = descriptors.next().map_or_else(Stdio::null, Stdio::from);
    // A program that needs a PATH search cannot be started the fast way with its own environment.
    let mut command = Command::new(found(program, &env));
    command
        .arg0(program)
        .args(args)
        .env_clear()
        .envs(env)
        .current_dir(cwd)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    Ok(command)
}

/// Resolves a program on the PATH that it will see; returns the name itself if it is a path, or not found.
fn found(program: &str, env: &[(String, String)]) -> PathBuf {
    let path = env.iter().rev().find(|(name, _)| name == "PATH");
    let dirs = path.into_iter().flat_map(|(_, path)| path.split(':'));
    let mut candidates = dirs.map(|dir| Path::new(dir).join(program));
    let is_there = |candidate: &PathBuf| {
        candidate.is_absolute() && candidate.is_file() && access(candidate, Access::EXEC_OK).is_ok()
    };
    let searched = (!program.contains('/')).then(|| candidates.find(is_there));
    searched.flatten().unwrap_or_else(|| program.into())
}

fn spawn(command: &mut Command) -> Result<u32, std::io::Error> {
    // A command inherits the signal mask of the thread that starts it.
    let mask: SigSet = TAKEN.into_iter().collect();
    mask.thread_unblock()?;
    let spawned = command.spawn();
    mask.thread_block()?;
    Ok(spawned?.id())
}
