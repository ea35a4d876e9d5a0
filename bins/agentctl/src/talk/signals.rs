//! What this program is told by signals while it has the terminal.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Ctrl-C.
    Interrupt,
    /// Somebody ends this program, or its terminal is gone.
    Terminated,
    /// It goes on after Ctrl-Z.
    Continued,
}

/// Signals whose default would leave the terminal as it is now: without an echo.
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

    /// The next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.interrupt.recv() => Told::Interrupt,
            _ = self.terminate.recv() => Told::Terminated,
            _ = self.hang_up.recv() => Told::Terminated,
            _ = self.continued.recv() => Told::Continued,
        }
    }
}
