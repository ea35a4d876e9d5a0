//! Signals to this program while it holds the terminal.

use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalSignal {
    /// Ctrl-C.
    Interrupt,
    /// A request to terminate, or the terminal is gone.
    Terminated,
    /// The process continues after Ctrl-Z.
    Continued,
}

/// How late the handler of a signal may run on a busy machine.
const LATE: Duration = Duration::from_secs(1);

/// Handlers for signals whose default action would leave the terminal in key mode, without echo.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    continued: Signal,
    /// Until then a Ctrl-C was for another program.
    forgets_until: Option<Instant>,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        let continued = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            continued: signal(continued)?,
            forgets_until: None,
        })
    }

    /// The next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> TerminalSignal {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    if self.forgets_until.is_none_or(|until| Instant::now() >= until) {
                        return TerminalSignal::Interrupt;
                    }
                }
                _ = self.terminate.recv() => return TerminalSignal::Terminated,
                _ = self.hang_up.recv() => return TerminalSignal::Terminated,
                _ = self.continued.recv() => return TerminalSignal::Continued,
            }
        }
    }

    /// Drops a Ctrl-C that has arrived, or is on its way: it was for another program, which may have ended before our
    /// handler ran.
    pub(crate) fn forget_interrupt(&mut self) {
        self.forgets_until = Some(Instant::now() + LATE);
    }
}
