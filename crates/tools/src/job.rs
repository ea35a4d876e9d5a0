//! A background command that runs or has ended: its output, its end, and its input.

use crate::context::{ProgressSink, Spilled};
use crate::jobs::JobEnding;
use agentd_sandbox::{CollectSpec, Collected, Fresh, Keyboard, Running, SandboxError};
use agentd_text::{Plain, Typescript, last_versions, settled};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes of unread output to keep.
pub(crate) const UNREAD: usize = 128 << 10;

/// The collection of a command's output up to its end. Dropping it kills the command.
pub(crate) type Collecting = Pin<Box<dyn Future<Output = Result<Collected, SandboxError>> + Send>>;

/// One job as its readers see it.
pub(crate) struct Job {
    unread: Mutex<Unread>,
    /// Bytes received so far.
    heard: watch::Sender<u64>,
    end: watch::Sender<Option<JobEnding>>,
    /// The complete output of an ended job, until a reader takes it.
    whole: Mutex<Option<Whole>>,
    stop: watch::Sender<bool>,
    /// The keyboard, if the job has a terminal.
    keyboard: Option<AsyncMutex<Keyboard>>,
    /// Receives the output as it is produced.
    audience: Mutex<Option<ProgressSink>>,
}

/// The complete output of a job, up to the capture limit.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) kept: Spilled,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
}

/// Output that no reader has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// The kept part of it, with a mark where bytes are missing.
    pub(crate) text: String,
    /// Bytes dropped from its beginning.
    pub(crate) dropped: u64,
    /// Whether readers missed some of the job's output.
    pub(crate) partial: bool,
    /// The offset in the complete output at which the next piece is expected.
    next: u64,
    /// Removes escape sequences.
    typescript: Typescript,
    at_terminal: bool,
}

impl Unread {
    fn push(&mut self, fresh: &Fresh) {
        let missing = fresh.offset.saturating_sub(self.next);
        if missing > 0 {
            self.partial = true;
            self.text
                .push_str(&format!("\n[... {missing} bytes omitted ...]\n"));
        }
        self.next = fresh.offset.saturating_add(size(&fresh.text));
        self.text.push_str(&self.typescript.text_of(&fresh.text));
        let excess = self.text.len().saturating_sub(UNREAD);
        if excess > 0 {
            self.partial = true;
            let cut = self.text.ceil_char_boundary(excess);
            self.text.drain(..cut);
            self.dropped = self
                .dropped
                .saturating_add(u64::try_from(cut).unwrap_or(u64::MAX));
        }
    }

    /// Returns the unread output and starts an empty page.
    fn turn(&mut self) -> Self {
        let fresh = Self {
            next: self.next,
            partial: self.partial,
            typescript: self.typescript,
            at_terminal: self.at_terminal,
            ..Self::default()
        };
        let mut read = std::mem::replace(self, fresh);
        if read.at_terminal {
            read.text = settled(&read.text);
        } else {
            let Plain { text, lost } = last_versions(&read.text);
            self.partial |= lost;
            read.text = text.into_owned();
        }
        read
    }
}

fn size(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    /// Follows a command. Its output is kept for readers, and shown to `audience` while a call waits for the command.
    pub(crate) fn follow(
        running: Running,
        spec: CollectSpec,
        keyboard: Option<Keyboard>,
        audience: Option<ProgressSink>,
    ) -> (Arc<Self>, Collecting) {
        let job = Arc::new(Self {
            unread: Mutex::new(Unread {
                at_terminal: keyboard.is_some(),
                ..Unread::default()
            }),
            heard: watch::channel(0).0,
            end: watch::channel(None).0,
            whole: Mutex::new(None),
            stop: watch::channel(false).0,
            keyboard: keyboard.map(AsyncMutex::new),
            audience: Mutex::new(audience),
        });
        let (listener, mut asked) = (Arc::clone(&job), job.stop.subscribe());
        let collecting = Box::pin(async move {
            let stop = async move {
                // The sender outlives this task.
                let _ = asked.wait_for(|stop| *stop).await;
            };
            running
                .collect_until(&spec, stop, |fresh| listener.hear(fresh))
                .await
        });
        (job, collecting)
    }

    /// Requests its end. [`Self::ended`] waits for it.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether its end was requested.
    pub(crate) fn stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// How it ended, if it has ended.
    pub(crate) fn end(&self) -> Option<JobEnding> {
        self.end.borrow().clone()
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as the job.
        let _ = self.end.subscribe().wait_for(Option::is_some).await;
    }

    /// Marks it as ended; all of its output has been received.
    pub(crate) fn close(&self, ending: JobEnding, whole: Option<Whole>) {
        *lock(&self.whole) = whole;
        self.end.send_replace(Some(ending));
    }

    /// Stops showing its output: the caller no longer waits.
    pub(crate) fn alone(&self) {
        lock(&self.audience).take();
    }

    /// Takes the unread output.
    pub(crate) fn take(&self) -> Unread {
        lock(&self.unread).turn()
    }

    /// Records that the reader did not pass on all that it took.
    pub(crate) fn cut(&self) {
        lock(&self.unread).partial = true;
    }

    /// Takes the complete output, if the job has ended and a reader missed some of it.
    pub(crate) fn take_whole(&self) -> Option<Whole> {
        let partial = lock(&self.unread).partial;
        lock(&self.whole).take().filter(|_| partial)
    }

    /// Its keyboard, if it has a terminal.
    pub(crate) const fn keyboard(&self) -> Option<&AsyncMutex<Keyboard>> {
        self.keyboard.as_ref()
    }

    /// Waits until it has written more and was then silent for `quiet`, until it ends, or until the time is over.
    pub(crate) async fn answers(&self, since: u64, within: Duration, quiet: Duration) {
        let mut heard = self.heard.subscribe();
        let until = Instant::now() + within;
        let wait = async {
            // The sender lives as long as the job.
            let _ = heard.wait_for(|bytes| *bytes > since).await;
            while timeout(quiet, heard.changed()).await.is_ok() {}
        };
        tokio::select! {
            _ = timeout_at(until, wait) => {}
            () = self.ended() => {}
        }
    }

    /// Bytes received so far.
    pub(crate) fn heard(&self) -> u64 {
        *self.heard.borrow()
    }

    fn hear(&self, fresh: Fresh) {
        lock(&self.unread).push(&fresh);
        let upto = fresh.offset.saturating_add(size(&fresh.text));
        if let Some(audience) = &*lock(&self.audience) {
            audience.report(fresh);
        }
        self.heard.send_replace(upto);
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(offset: u64, text: &str) -> Fresh {
        Fresh {
            offset,
            text: text.to_owned(),
        }
    }

    #[test]
    fn unread_output_is_bounded_and_says_what_is_missing() {
        let mut unread = Unread::default();
        unread.push(&fresh(0, "one\n"));
        unread.push(&fresh(10, "two\n"));
        assert_eq!(unread.text, "one\n\n[... 6 bytes omitted ...]\ntwo\n");
        let mut unread = Unread::default();
        unread.push(&fresh(0, &"x".repeat(UNREAD)));
        assert_eq!((unread.text.len(), unread.dropped), (UNREAD, 0));
        unread.push(&fresh(size(&unread.text), "yy"));
        assert_eq!((unread.text.len(), unread.dropped), (UNREAD, 2));
        assert!(unread.text.ends_with("xyy"));
    }

    #[test]
    fn frames_of_progress_are_reduced_across_pieces_and_count_as_missing() {
        let mut unread = Unread::default();
        unread.push(&fresh(0, "a\u{1b}[3"));
        unread.push(&fresh(4, "1mb\r\n"));
        let read = unread.turn();
        assert_eq!((read.text.as_str(), unread.partial), ("ab\r\n", false));
        unread.push(&fresh(9, "10%\r2"));
        unread.push(&fresh(14, "0%\n"));
        let read = unread.turn();
        assert_eq!((read.text.as_str(), unread.partial), ("20%\n", true));
    }

    #[test]
    fn names_between_nul_characters_are_lines_except_at_a_terminal() {
        let mut unread = Unread::default();
        unread.push(&fresh(0, "./a\0./b"));
        unread.push(&fresh(7, "\0"));
        let read = unread.turn();
        assert_eq!((read.text.as_str(), unread.partial), ("./a\n./b\n", true));
        let mut unread = Unread {
            at_terminal: true,
            ..Unread::default()
        };
        unread.push(&fresh(0, "a\0b\r\n"));
        assert_eq!(unread.turn().text, "ab\n");
    }

    #[test]
    fn terminal_control_sequences_are_neither_shown_nor_counted() {
        let mut unread = Unread {
            at_terminal: true,
            ..Unread::default()
        };
        unread.push(&fresh(0, "\u{1b}[3"));
        unread.push(&fresh(3, "1mred\u{1b}[0m 1%\r"));
        assert_eq!(unread.turn().text, "red 1%");
        unread.push(&fresh(16, "red 9%\r\n"));
        let read = unread.turn();
        assert_eq!((read.text.as_str(), read.partial), ("red 9%\n", false));
    }
}
