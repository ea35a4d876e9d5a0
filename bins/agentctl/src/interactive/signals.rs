//! Signals to this program while it holds the terminal.

use futures_util::FutureExt as _;
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

/// Handlers for signals whose default action would leave the terminal in key mode, without echo.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    continued: Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        let continued = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            continued: signal(continued)?,
        })
    }

    /// The next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> TerminalSignal {
        tokio::select! {
            _ = self.interrupt.recv() => TerminalSignal::Interrupt,
            _ = self.terminate.recv() => TerminalSignal::Terminated,
            _ = self.hang_up.recv() => TerminalSignal::Terminated,
            _ = self.continued.recv() => TerminalSignal::Continued,
        }
    }

    /// Drops a Ctrl-C that has arrived: it was for another program.
    pub(crate) fn forget_interrupt(&mut self) {
        let _ = self.interrupt.recv().now_or_never();
    }
}
