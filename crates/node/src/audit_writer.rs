//! The audit writer: follows all sessions and writes `trace.jsonl` and `audit.jsonl`.
//!
//! It reads events after their commit, like any viewer, so it delays no session. After a lag it continues from the log.

use crate::audit_log::Audit;
use crate::rotated::Rotated;
use crate::trace_lines;
use agentd_actor_kit::{FeedFrame, FeedMsg, Handle, Read, StoreMsg, Traced, Viewer};
use agentd_protocol::{Event, EventBody, SessionId};
use futures_util::FutureExt as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::mpsc;

/// Frames queued for the audit writer; beyond that it reads the log instead.
const QUEUE: usize = 4_096;
/// Sessions whose step is cached; beyond that, the oldest ids are dropped.
const MAX_STEPS: usize = 10_000;
/// Events per catch-up page.
const PAGE: u32 = 512;
/// How long a catch-up page or a (re)subscription may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The audit writer's viewer id.
const VIEWER: u64 = u64::MAX;

/// Writes the side files.
#[derive(Debug)]
pub(crate) struct AuditWriter {
    pub(crate) trace: Option<Rotated>,
    pub(crate) audit: Option<Audit>,
    pub(crate) feed: Handle<FeedMsg>,
    pub(crate) store: Handle<StoreMsg>,
    steps: BTreeMap<SessionId, u32>,
    cursor: Option<u64>,
    stages: Option<mpsc::Receiver<Traced>>,
    reloads: Option<mpsc::Receiver<Value>>,
    /// A reload that the audit file does not contain yet.
    reload: Option<Value>,
}

impl AuditWriter {
    pub(crate) const fn new(
        trace: Option<Rotated>,
        audit: Option<Audit>,
        feed: Handle<FeedMsg>,
        store: Handle<StoreMsg>,
        after: Option<u64>,
    ) -> Self {
        Self {
            trace,
            audit,
            feed,
            store,
            steps: BTreeMap::new(),
            cursor: after,
            stages: None,
            reloads: None,
            reload: None,
        }
    }

    /// Also records the stages of calls, the requests to models and the reloads, which are not in the log.
    pub(crate) fn hearing(
        mut self,
        stages: Option<mpsc::Receiver<Traced>>,
        reloads: mpsc::Receiver<Value>,
    ) -> Self {
        self.stages = stages;
        self.reloads = Some(reloads);
        self
    }

    /// Runs until dropped. It continues after the last event in the audit file, so a crash leaves no gap. It follows a
    /// restarted feed again, and retries an audit line that could not be written: nothing is missed.
    pub(crate) async fn run(mut self) {
        loop {
            let (queue, mut frames) = mpsc::channel(QUEUE);
            let viewer = Viewer {
                id: VIEWER,
                queue,
                deltas: false,
                decides: false,
            };
            match self
                .feed
                .call(PATIENCE, |done| FeedMsg::Watch { viewer, done })
                .await
            {
                Ok(cursor) => {
                    self.cursor.get_or_insert(cursor);
                    let round = AssertUnwindSafe(self.round(&mut frames)).catch_unwind().await;
                    // Nothing would restart this task: retrying is better than an audit that ends silently.
                    let written =
                        round.unwrap_or_else(|_| Err(io::Error::other("the audit writer panicked")));
                    if let Err(error) = written {
                        tracing::warn!(%error, "the audit file cannot be written; it is tried again");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
                Err(error) => {
                    // At startup and shutdown there is no feed for a moment; restarts of the feed are logged elsewhere.
                    tracing::info!(%error, "the audit writer waits for the feed");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            self.flush();
        }
    }

    async fn round(&mut self, frames: &mut mpsc::Receiver<FeedFrame>) -> io::Result<()> {
        self.catch_up().await?;
        self.write_reload()?;
        self.follow(frames).await
    }

    async fn follow(&mut self, frames: &mut mpsc::Receiver<FeedFrame>) -> io::Result<()> {
        loop {
            let frame = tokio::select! {
                frame = frames.recv() => frame,
                Some(done) = next(&mut self.stages) => {
                    self.write_traced(&done);
                    continue;
                }
                Some(reload) = next(&mut self.reloads) => {
                    self.reload = Some(reload);
                    self.write_reload()?;
                    continue;
                }
            };
            let Some(frame) = frame else { return Ok(()) };
            match frame {
                FeedFrame::Event(told) => {
                    if self.cursor.is_none_or(|seen| told.cursor > seen) {
                        self.write(told.cursor, &told.event.body)?;
                    }
                }
                FeedFrame::Delta(_) => {}
                FeedFrame::Lagged => return Ok(()),
            }
        }
    }

    /// A line that could not be written stays for the next round.
    fn write_reload(&mut self) -> io::Result<()> {
        if let (Some(file), Some(line)) = (&mut self.audit, &self.reload) {
            file.write(line)?;
        }
        self.reload = None;
        Ok(())
    }

    fn write_traced(&mut self, done: &Traced) {
        if let Some(file) = &mut self.trace {
            write_line(file, &trace_lines::traced(done));
        }
    }

    async fn catch_up(&mut self) -> io::Result<()> {
        loop {
            let after = self.cursor;
            let read = self
                .store
                .call(PATIENCE, |done| {
                    StoreMsg::Read(Read::Watch {
                        after,
                        limit: PAGE,
                        done,
                    })
                })
                .await;
            let Ok(Ok(page)) = read else { return Ok(()) };
            let full = page.events.len() >= PAGE as usize;
            for event in &page.events {
                self.write(event.cursor, &event.body)?;
            }
            self.cursor = Some(page.cursor);
            if !full {
                return Ok(());
            }
        }
    }

    /// Writes the side-file lines of an event. An error concerns the audit file; the event is then tried again.
    fn write(&mut self, cursor: u64, stored: &[u8]) -> io::Result<()> {
        let Ok(event) = serde_json::from_slice::<Event>(stored) else {
            self.cursor = Some(cursor);
            return Ok(());
        };
        if let Some(file) = &mut self.audit
            && let Some(line) = trace_lines::audit(cursor, &event)
        {
            file.write(&line)?;
        }
        self.cursor = Some(cursor);
        let step = self.step(&event);
        if let Some(file) = &mut self.trace {
            for line in trace_lines::trace(&event, step) {
                write_line(file, &line);
            }
        }
        Ok(())
    }

    fn step(&mut self, event: &Event) -> Option<u32> {
        match &event.body {
            EventBody::ModelStarted(call) => {
                if self.steps.len() >= MAX_STEPS {
                    self.steps.pop_first();
                }
                self.steps.insert(event.session, call.step);
            }
            EventBody::TurnFinished(_) => return self.steps.remove(&event.session),
            _ => {}
        }
        self.steps.get(&event.session).copied()
    }

    fn flush(&mut self) {
        if let Some(Err(error)) = self.trace.as_mut().map(Rotated::flush) {
            tracing::warn!(%error, "a side file cannot be written");
        }
    }
}

/// The next item. Without a sender, it waits forever.
async fn next<T>(told: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match told {
        Some(told) => told.recv().await,
        None => std::future::pending().await,
    }
}

fn write_line(file: &mut Rotated, line: &Value) {
    let text = line.to_string();
    let mut safe = agentd_text::redact(&text).into_owned();
    safe.push('\n');
    if let Err(error) = file.write_all(safe.as_bytes()) {
        tracing::warn!(%error, "a side file cannot be written");
    }
}
