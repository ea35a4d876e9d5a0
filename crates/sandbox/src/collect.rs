//! Runs a command to its end and keeps what it says.

use crate::capture::{Capture, CaptureLimits, Fresh};
use crate::error::SandboxError;
use crate::running::{Exit, Running};
use crate::spill::{SpillFile, Spilling};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout};

/// Output is reported at most this often.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// How long output that is there already is read after the command's end. Others may hold the pipe for ever.
const DRAIN_WITHIN: Duration = Duration::from_millis(100);
/// How long the end of a terminal is waited for after that of its leader. Others may hold it for ever.
const HANG_UP_WITHIN: Duration = Duration::from_millis(500);
/// How long a command that was told to end may take (the warden kills it after 500 ms).
const KILL_WITHIN: Duration = Duration::from_secs(5);
const CHUNK: usize = 64 << 10;

/// How a command's output is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectSpec {
    /// How long it may run.
    pub time: Duration,
    /// What is kept in memory.
    pub limits: CaptureLimits,
    /// Where the whole output is put when it is longer than the kept beginning.
    pub spill_dir: PathBuf,
    /// The most that is put there.
    pub spill_bytes: u64,
}

/// A command that ended.
#[derive(Debug)]
pub struct Collected {
    /// How it ended.
    pub exit: Exit,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// What is kept of its output.
    pub output: Capture,
    /// The whole output (up to the cap), when memory does not have it.
    pub spill: Option<SpillFile>,
    /// Why the whole output could not be kept.
    pub spill_error: Option<String>,
}

enum Spill {
    NotYet,
    Open(Spilling),
    Failed(io::Error),
}

struct Collector<'a> {
    spec: &'a CollectSpec,
    output: Capture,
    spill: Spill,
}

impl Running {
    /// Reads the output until the command ends (not until all who hold the pipe end) and says how it ended. Reports
    /// output while it comes. When the time is over the command is killed. Dropping the future kills it, too.
    ///
    /// # Errors
    /// When the warden is lost, or the command cannot be killed.
    pub async fn collect(
        self,
        spec: &CollectSpec,
        report: impl FnMut(Fresh) + Send,
    ) -> Result<Collected, SandboxError> {
        self.collect_until(spec, std::future::pending(), report).await
    }

    /// The same; the command is told to end when `stop` comes.
    ///
    /// # Errors
    /// As for [`Running::collect`].
    pub async fn collect_until(
        mut self,
        spec: &CollectSpec,
        stop: impl Future<Output = ()> + Send,
        mut report: impl FnMut(Fresh) + Send,
    ) -> Result<Collected, SandboxError> {
        let mut stop = std::pin::pin!(stop);
        let mut stopping = false;
        let mut collector = Collector {
            spec,
            output: Capture::new(spec.limits),
            spill: Spill::NotYet,
        };
        let mut buffer = vec![0; CHUNK];
        let mut open = true;
        let mut next_report = Instant::now();
        let mut reported = 0;
        let mut deadline = Instant::now() + spec.time;
        let mut timed_out = false;
        let exit = loop {
            let fresh = collector.output.bytes() > reported;
            tokio::select! {
                biased;
                exit = &mut self.exited => break exit.map_err(|_| SandboxError::WardenGone)?,
                () = &mut stop, if !stopping => {
                    stopping = true;
                    self.kill(false);
                    deadline = deadline.min(Instant::now() + KILL_WITHIN);
                }
                () = sleep_until(deadline) => {
                    if stopping {
                        return Err(SandboxError::WardenSlow { within_ms: 5_000 });
                    }
                    (timed_out, stopping) = (true, true);
                    self.kill(false);
                    deadline = Instant::now() + KILL_WITHIN;
                }
                () = sleep_until(next_report), if fresh => {
                    reported = collector.output.bytes();
                    next_report = Instant::now() + REPORT_EVERY;
                    if let Some(fresh) = collector.output.take_fresh() {
                        report(fresh);
                    }
                }
                read = self.output.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => collector.take(buffer.get(..count).unwrap_or_default()).await,
                },
            }
        };
        self.forget();
        if open {
            open = self.rest(&mut collector, &mut buffer).await;
        }
        if let Some(fresh) = collector.output.take_fresh() {
            report(fresh);
        }
        if open {
            keep_draining(self);
        }
        Ok(collector.finish(exit, timed_out).await)
    }

    /// Reads what was said before the end; whether somebody may say more.
    async fn rest(&mut self, collector: &mut Collector<'_>, buffer: &mut [u8]) -> bool {
        if self.at_terminal {
            // What was said last may still be on its way through the terminal; behind it comes its end.
            let rest = collector.drain_to_the_end(&mut self.output, buffer);
            return timeout(HANG_UP_WITHIN, rest).await.is_err();
        }
        let rest = collector.drain(&self.output, buffer);
        // At the deadline whoever still writes is no longer the command.
        timeout(DRAIN_WITHIN, rest).await.unwrap_or(true)
    }
}

impl Collector<'_> {
    async fn take(&mut self, chunk: &[u8]) {
        let head_was = self.output.head().len();
        self.output.push(chunk);
        let whole = u64::try_from(self.output.head().len()).unwrap_or(u64::MAX);
        if self.output.bytes() <= whole {
            return;
        }
        if matches!(self.spill, Spill::NotYet) {
            let before = self.output.head().get(..head_was).unwrap_or_default().to_vec();
            self.spill = match Spilling::start(&self.spec.spill_dir, self.spec.spill_bytes).await {
                Ok(spilling) => Spill::Open(spilling),
                Err(error) => Spill::Failed(error),
            };
            self.spill(&before).await;
        }
        self.spill(chunk).await;
    }

    async fn spill(&mut self, chunk: &[u8]) {
        if let Spill::Open(spilling) = &mut self.spill
            && let Err(error) = spilling.write(chunk).await
        {
            // The command goes on: its output is still counted, and its ends are kept.
            self.spill = Spill::Failed(error);
        }
    }

    /// Reads what is there already; whether the pipe is still open.
    async fn drain(&mut self, output: &pipe::Receiver, buffer: &mut [u8]) -> bool {
        loop {
            // The kernel is asked: the runtime may not know yet what was written just before the end.
            match rustix::io::read(output, &mut *buffer) {
                Ok(0) => return false,
                Ok(count) => self.take(buffer.get(..count).unwrap_or_default()).await,
                Err(Errno::INTR) => {}
                Err(errno) => return errno == Errno::AGAIN,
            }
            tokio::task::yield_now().await;
        }
    }

    /// Reads until there will be no more.
    async fn drain_to_the_end(&mut self, output: &mut pipe::Receiver, buffer: &mut [u8]) {
        while let Ok(count @ 1..) = output.read(buffer).await {
            self.take(buffer.get(..count).unwrap_or_default()).await;
        }
    }

    async fn finish(self, exit: Exit, timed_out: bool) -> Collected {
        let (spill, spill_error) = match self.spill {
            Spill::NotYet => (None, None),
            Spill::Open(spilling) => match spilling.finish().await {
                Ok(file) => (Some(file), None),
                Err(error) => (None, Some(error.to_string())),
            },
            Spill::Failed(error) => (None, Some(error.to_string())),
        };
        Collected {
            exit,
            timed_out,
            output: self.output,
            spill,
            spill_error,
        }
    }
}

/// Reads and forgets what the processes say that the command left behind: with a closed pipe their next word would kill
/// them, with a full one they would hang. Ends at the latest with the warden.
fn keep_draining(mut running: Running) {
    tokio::spawn(async move {
        let mut buffer = vec![0; 4096];
        while matches!(running.output.read(&mut buffer).await, Ok(count) if count > 0) {}
    });
}
