//! The time at which the commands of this node end unless the daemon moves it on: its lease in a fleet (I4, I5).
//!
//! Others take over the sessions of a node that gave no sign of life, also if it is only stopped or cut off. Its commands
//! must not run on beside theirs. A timer of the kernel keeps the time, because it expires whatever the daemon does: the
//! daemon sets it again with every renewal of the lease, and each warden holds the same timer and waits for it. So a renewal
//! is one system call, however many wardens there are, and none of them wakes up before the end.
//!
//! Its clock also counts while the machine is suspended.

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

/// The timer of this process. A process is one node.
static TIMER: OnceLock<OwnedFd> = OnceLock::new();

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// The end of all commands, which the daemon moves. Without one, they may run forever.
#[derive(Debug, Clone, Copy)]
pub struct CommandDeadline(&'static OwnedFd);

impl CommandDeadline {
    /// The time on the clock of deadlines.
    #[must_use]
    pub fn clock() -> Duration {
        let now = clock_gettime(ClockId::Boottime);
        Duration::new(
            now.tv_sec.cast_unsigned(),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        )
    }

    /// Gives the commands of this process an end. Call it before the first warden starts: it does not reach earlier ones.
    ///
    /// # Errors
    /// The kernel has no timer left.
    pub fn begin(end: Duration) -> io::Result<Self> {
        let made = match TIMER.get() {
            Some(made) => made,
            None => {
                let timer = timer()?;
                TIMER.get_or_init(|| timer)
            }
        };
        let deadline = Self(made);
        deadline.until(end)?;
        Ok(deadline)
    }

    /// Moves the end, to a later or an earlier time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn until(self, end: Duration) -> io::Result<()> {
        set(self.0, end)
    }
}

fn timer() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    Ok(timerfd_create(TimerfdClockId::Boottime, flags)?)
}

fn set(timer: &OwnedFd, end: Duration) -> io::Result<()> {
    // Zero would mean never.
    let end = end.max(Duration::from_nanos(1));
    let end = Itimerspec {
        it_interval: NOW,
        it_value: Timespec {
            tv_sec: i64::try_from(end.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(end.subsec_nanos()),
        },
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &end)?;
    Ok(())
}

/// The timer for a new warden; `None`: its commands have no end.
pub(crate) fn for_a_warden() -> Option<BorrowedFd<'static>> {
    TIMER.get().map(OwnedFd::as_fd)
}

/// What a process that ends commands knows of the deadline. Nobody ever reads the timer: that would hide its end from all
/// others.
#[derive(Debug)]
pub(crate) struct Watched {
    timer: OwnedFd,
    /// Readable once for each end: the timer itself stays readable until it is set again.
    ends: OwnedFd,
}

impl Watched {
    pub(crate) fn new(timer: OwnedFd) -> io::Result<Self> {
        let ends = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let once = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&ends, &timer, epoll::EventData::new_u64(0), once)?;
        Ok(Self { timer, ends })
    }

    /// Readable when [`Self::has_come`] has something to say.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.ends.as_fd()
    }

    /// Whether the deadline passed since this was last asked.
    pub(crate) fn has_come(&self) -> bool {
        let mut events = Vec::with_capacity(1);
        let found = epoll::wait(
            &self.ends,
            rustix::buffer::spare_capacity(&mut events),
            Some(&NOW),
        );
        found.is_ok_and(|found| found > 0)
    }

    /// Whether the deadline has passed and was not moved since.
    pub(crate) fn is_over(&self) -> bool {
        poll(&mut [PollFd::new(&self.timer, PollFlags::IN)], Some(&NOW)).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Duration = Duration::from_secs(3_600);

    fn wait(watched: &Watched) {
        let mut fds = [PollFd::from_borrowed_fd(watched.descriptor(), PollFlags::IN)];
        let at_most = Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        assert_eq!(poll(&mut fds, Some(&at_most)), Ok(1), "the end does not come");
    }

    #[test]
    fn i5_every_holder_learns_each_end_once_and_a_later_end_takes_it_back() {
        let timer = timer().unwrap();
        let now = CommandDeadline::clock();
        set(&timer, now + FAR).unwrap();
        let watched = |timer: &OwnedFd| Watched::new(timer.try_clone().unwrap()).unwrap();
        let holders = [watched(&timer), watched(&timer)];
        for holder in &holders {
            assert!(!holder.has_come() && !holder.is_over());
        }
        for _ in 0..3 {
            set(&timer, CommandDeadline::clock() + Duration::from_millis(1)).unwrap();
            for holder in &holders {
                wait(holder);
                assert!(holder.has_come() && holder.is_over());
                assert!(!holder.has_come() && holder.is_over(), "once for each end");
            }
            set(&timer, now + FAR).unwrap();
            for holder in &holders {
                assert!(!holder.has_come() && !holder.is_over());
            }
        }
    }

    #[test]
    fn i5_a_time_that_has_passed_is_an_end_at_once_also_for_those_who_come_later() {
        let timer = timer().unwrap();
        set(&timer, Duration::ZERO).unwrap();
        let watched = Watched::new(timer).unwrap();
        wait(&watched);
        assert!(watched.has_come() && watched.is_over());
    }

    #[test]
    fn i5_an_end_that_was_moved_before_anybody_looked_is_none() {
        let timer = timer().unwrap();
        let watched = Watched::new(timer.try_clone().unwrap()).unwrap();
        set(&timer, Duration::ZERO).unwrap();
        wait(&watched);
        set(&timer, CommandDeadline::clock() + FAR).unwrap();
        assert!(!watched.has_come() && !watched.is_over());
    }
}
