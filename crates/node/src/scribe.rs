//! The scribe: a viewer of the whole fleet that writes `trace.jsonl` and `audit.jsonl`.
//!
//! It hangs off the commit like any viewer, so it slows nobody; when it lags it reads on from the log by cursor.

use crate::rotated::Rotated;
use crate::trace_lines;
use agentd_actor_kit::{FeedFrame, FeedMsg, Handle, Read, StoreMsg, Viewer};
use agentd_protocol::{Event, EventBody, SessionId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

/// Frames that wait for the scribe; beyond that it reads the log instead.
const QUEUE: usize = 4_096;
/// Sessions whose step is remembered; beyond that the oldest ids are forgotten.
const MAX_STEPS: usize = 10_000;
/// Events of one catch-up page.
const PAGE: u32 = 512;
/// How long a catch-up page or a (re)subscription may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes at the end of an audit file that are searched for its last line.
const TAIL: u64 = 1 << 20;
/// The scribe's number among viewers.
const VIEWER: u64 = u64::MAX;

/// Writes the side files.
#[derive(Debug)]
pub(crate) struct Scribe {
    pub(crate) trace: Option<Rotated>,
    pub(crate) audit: Option<Rotated>,
    pub(crate) feed: Handle<FeedMsg>,
    pub(crate) store: Handle<StoreMsg>,
    steps: BTreeMap<SessionId, u32>,
    cursor: Option<u64>,
}

impl Scribe {
    pub(crate) const fn new(
        trace: Option<Rotated>,
        audit: Option<Rotated>,
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
        }
    }

    /// Runs until dropped. It goes on after the last event that the audit file has, so a crash leaves no hole. A feed that restarts is followed again; nothing in between is missed.
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
                    self.catch_up().await;
                    self.follow(&mut frames).await;
                }
                Err(error) => {
                    // At the start and at the end there is none for a moment; its own restarts are told elsewhere.
                    tracing::info!(%error, "the scribe waits for the feed");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            self.flush();
        }
    }

    async fn follow(&mut self, frames: &mut mpsc::Receiver<FeedFrame>) {
        while let Some(frame) = frames.recv().await {
            match frame {
                FeedFrame::Event { cursor, event, .. } => {
                    if self.cursor.is_none_or(|seen| cursor > seen) {
                        self.write(cursor, &event.body);
                        self.cursor = Some(cursor);
                    }
                }
                FeedFrame::Delta { .. } => {}
                FeedFrame::Lagged => return,
            }
        }
    }

    async fn catch_up(&mut self) {
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
            let Ok(Ok(page)) = read else { return };
            let full = page.events.len() >= PAGE as usize;
            for event in &page.events {
                self.write(event.cursor, &event.body);
            }
            self.cursor = Some(page.cursor);
            if !full {
                return;
            }
        }
    }

    fn write(&mut self, cursor: u64, stored: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event>(stored) else {
            return;
        };
        let step = self.step(&event);
        if let Some(file) = &mut self.trace {
            for line in trace_lines::trace(&event, step) {
                write_line(file, &line);
            }
        }
        if let Some(file) = &mut self.audit
            && let Some(line) = trace_lines::audit(cursor, &event)
        {
            write_line(file, &line);
        }
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
        for file in [&mut self.trace, &mut self.audit].into_iter().flatten() {
            if let Err(error) = file.flush() {
                tracing::warn!(%error, "a side file cannot be written");
            }
        }
    }
}

/// The cursor of the last whole line of an audit file.
pub(crate) fn last_cursor(path: &Path) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    let cursor = |line: &[u8]| {
        serde_json::from_slice::<Value>(line)
            .ok()?
            .get("cursor")?
            .as_u64()
    };
    tail.split(|byte| *byte == b'\n').rev().find_map(cursor)
}

fn write_line(file: &mut Rotated, line: &Value) {
    let text = line.to_string();
    let mut safe = agentd_text::redact(&text).into_owned();
    safe.push('\n');
    if let Err(error) = file.write_all(safe.as_bytes()) {
        tracing::warn!(%error, "a side file cannot be written");
    }
}
