//! The namespaces of an isolated session, created by the process that becomes its warden.
//!
//! The fork server forks a holder, which leaves the machine's namespaces and forks the warden. The warden is process 1 of
//! its process namespace: no process in there can signal it, orphans become its children, and the kernel kills all of them
//! when it ends (I5). The holder only waits, and the warden dies with it.

use crate::error::SandboxError;
use crate::frame::{self, Report};
use crate::mounts::View;
use crate::workdir::identity;
use crate::{privileges, root};
use fork::{Fork, fork};
use nix::sched::{CloneFlags, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with};
use rustix::process::{
    PidfdFlags, Signal, WaitOptions, getegid, geteuid, getpid, pidfd_open, set_parent_process_death_signal,
    wait,
};
use rustix::stdio::dup2_stdin;
use rustix::thread::set_name;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

/// The identity of this process's network namespace.
pub(crate) fn network() -> Option<(u64, u64)> {
    identity(Path::new("/proc/self/ns/net"))
}

/// Leaves the machine's namespaces. Returns the socket in the warden, and `None` in the holder, after the warden has
/// exited.
///
/// # Errors
/// The kernel refuses a step. The daemon reads which one from the socket.
pub(crate) fn enter(view: &View, socket: OwnedFd) -> Result<Option<OwnedFd>, SandboxError> {
    let mut socket = File::from(socket);
    match leave().and_then(|()| split(view)) {
        Ok(true) => Ok(Some(socket.into())),
        Ok(false) => {
            drop(socket);
            hold().map_err(SandboxError::no_walls)?;
            Ok(None)
        }
        Err(message) => {
            let report = frame::encode(&Report::NotConfined {
                message: message.clone(),
            })?;
            // If the daemon is gone, the write fails, and the message has no reader.
            let _ = socket.write_all(&report);
            Err(SandboxError::no_walls(message))
        }
    }
}

fn leave() -> Result<(), String> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    unshare(all).map_err(|errno| format!("cannot create a user namespace: {errno}"))?;
    let map = |file: &str, text: &str| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| format!("{file}: {error}"))
    };
    map("setgroups", "deny")?;
    map("uid_map", &format!("{user} {user} 1"))?;
    map("gid_map", &format!("{group} {group} 1"))
}

/// Forks the warden and builds its file system; returns whether this is the warden.
fn split(view: &View) -> Result<bool, String> {
    let text = |errno: Errno| errno.to_string();
    let holder = pidfd_open(getpid(), PidfdFlags::empty()).map_err(text)?;
    match fork() {
        Ok(Fork::Child) => {}
        Ok(Fork::Parent(_)) => return Ok(false),
        Err(error) => return Err(error.to_string()),
    }
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(text)?;
    // The parent has no pid in this namespace, so its descriptor tells whether it is still alive.
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if poll(&mut [PollFd::new(&holder, PollFlags::IN)], Some(&now)) != Ok(0) {
        return Err("the process that holds the namespaces has ended".to_owned());
    }
    root::enter(view)?;
    // Only a session with a network proxy needs the device. Without it, the proxy's listener fails and reports that.
    let _ = loopback();
    Ok(true)
}

/// Waits for the warden's exit, without any privileges.
fn hold() -> Result<(), String> {
    let _ = set_name(c"agentd-holder");
    let nothing = File::open("/dev/null").map_err(|error| error.to_string())?;
    dup2_stdin(nothing).map_err(|errno| errno.to_string())?;
    privileges::drop_all()?;
    while !matches!(wait(WaitOptions::empty()), Err(errno) if errno != Errno::INTR) {}
    Ok(())
}

/// Enables the namespace's loopback device.
fn loopback() -> Result<(), Errno> {
    const NEW_LINK: u16 = 16;
    const REQUEST: u16 = 1;
    const FIRST: i32 = 1;
    const UP: u32 = 1;
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // Neither sequence number nor sender; then any family, no type.
    message.extend([0; 12]);
    message.extend(FIRST.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    // Of the flags, only this one changes.
    message.extend(UP.to_ne_bytes());
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    send(&socket, &message, SendFlags::empty()).map(drop)
}
