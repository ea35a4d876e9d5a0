//! Observes processes that are not our children.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long to wait for a process to exit.
const WITHIN: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// Waits for a process to exit; returns whether it is gone.
#[must_use]
pub fn is_gone(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else {
        return true;
    };
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    matches!(poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&WITHIN)), Ok(1))
}

/// The same without blocking the runtime's workers.
#[expect(clippy::disallowed_methods, reason = "it waits for a process, in tests only")]
pub async fn gone(pid: i32) -> bool {
    tokio::task::spawn_blocking(move || is_gone(pid))
        .await
        .unwrap_or(false)
}
