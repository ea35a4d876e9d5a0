//! Runs a command to its end and keeps its output.

use crate::capture::{Capture, CaptureLimits, Fresh};
use crate::error::SandboxError;
use crate::running::{Exit, Running};
use crate::spill::{SpillFile, Spilling};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout};

/// The minimum interval between reports of output.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// How long to read pending output after the command's end. Others may hold the pipe forever.
const DRAIN_WITHIN: Duration = Duration::from_millis(100);
/// How long to wait for a terminal to close after its leader's exit. Others may hold it forever.
const HANG_UP_WITHIN: Duration = Duration::from_millis(500);
/// The deadline for a command after its signal to end (the warden kills it after 500 ms).
const KILL_WITHIN: Duration = Duration::from_secs(5);
const CHUNK: usize = 64 << 10;

/// How to keep a command's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectSpec {
    /// The command's time limit.
    pub time: Duration,
    /// The part to keep in memory.
    pub limits: CaptureLimits,
    /// Where to write the whole output if it is longer than the kept beginning.
    pub spill_dir: PathBuf,
    /// The maximum size of that file.
    pub spill_bytes: u64,
}

/// A command that ended.
#[derive(Debug)]
pub struct Collected {
    /// How it ended.
    pub exit: Exit,
    /// Whether it exceeded its time limit and was killed.
    pub timed_out: bool,
    /// The kept output.
    pub output: Capture,
    /// The whole output (up to the cap), if memory does not hold it.
    pub spill: Option<SpillFile>,
    /// Why the whole output could not be kept.
    pub spill_error: Option<String>,
    /// The repositories whose objects it could not read, because their history names what a rule denies.
    pub denied_history: Arc<[PathBuf]>,
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
    denied_history: Arc<[PathBuf]>,
}

impl Running {
    /// Reads the output until the command ends (not until every holder of the pipe ends) and returns how it ended. Reports
    /// output as it arrives. Kills the command when its time is up, or when the future is dropped.
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

    /// The same; ends the command when `stop` completes.
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
            denied_history: Arc::clone(&self.denied_history),
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

    /// Reads the output from before the end; returns whether more may follow.
    async fn rest(&mut self, collector: &mut Collector<'_>, buffer: &mut [u8]) -> bool {
        if self.at_terminal {
            // The last output may still be on its way through the terminal; its end follows.
            let rest = collector.drain_to_the_end(&mut self.output, buffer);
            return timeout(HANG_UP_WITHIN, rest).await.is_err();
        }
        let rest = collector.drain(&self.output, buffer);
        // At the deadline any remaining writer is no longer the command.
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
            // The command continues: its output is still counted, and its ends are kept.
            self.spill = Spill::Failed(error);
        }
    }

    /// Reads the pending output; returns whether the pipe is still open.
    async fn drain(&mut self, output: &pipe::Receiver, buffer: &mut [u8]) -> bool {
        loop {
            // Reads the pipe directly: the runtime may not know yet what was written just before the end.
            match rustix::io::read(output, &mut *buffer) {
                Ok(0) => return false,
                Ok(count) => self.take(buffer.get(..count).unwrap_or_default()).await,
                Err(Errno::INTR) => {}
                Err(errno) => return errno == Errno::AGAIN,
            }
            tokio::task::yield_now().await;
        }
    }

    /// Reads until the end of the output.
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
            denied_history: self.denied_history,
        }
    }
}

/// Reads and discards the output of processes that the command left behind: with a closed pipe their next write would kill
/// them, with a full one they would hang. Ends with the warden at the latest.
fn keep_draining(mut running: Running) {
    tokio::spawn(async move {
        let mut buffer = vec![0; 4096];
        while matches!(running.output.read(&mut buffer).await, Ok(count) if count > 0) {}
    });
}
