//! The audit writer: writes `trace.jsonl` and `audit.jsonl`.

use crate::audit_log::Audit;
use crate::log_follower::{LogReader, OnPanic};
use crate::rotated::Rotated;
use crate::trace_lines;
use agentd_actor_kit::Traced;
use agentd_protocol::{Event, EventBody, SessionId};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use tokio::sync::mpsc;

/// Sessions whose step is cached; beyond that, the oldest ids are dropped.
const MAX_STEPS: usize = 10_000;

/// Writes the side files.
#[derive(Debug)]
pub(crate) struct AuditWriter {
    trace: Option<Rotated>,
    audit: Option<Audit>,
    steps: BTreeMap<SessionId, u32>,
    stages: Option<mpsc::Receiver<Traced>>,
    audits: mpsc::Receiver<Value>,
    /// A line that the audit file does not contain yet.
    line: Option<Value>,
}

impl AuditWriter {
    /// It also records the stages of calls, the requests to models, and reloads and changes of tokens, which are not in the log.
    pub(crate) const fn new(
        trace: Option<Rotated>,
        audit: Option<Audit>,
        stages: Option<mpsc::Receiver<Traced>>,
        audits: mpsc::Receiver<Value>,
    ) -> Self {
        Self {
            trace,
            audit,
            steps: BTreeMap::new(),
            stages,
            audits,
            line: None,
        }
    }

    /// A line that could not be written stays for the next round.
    fn write_kept(&mut self) -> io::Result<()> {
        if let (Some(file), Some(line)) = (&mut self.audit, &self.line) {
            file.write(line)?;
        }
        self.line = None;
        Ok(())
    }

    fn write_traced(&mut self, done: &Traced) {
        if let Some(file) = &mut self.trace {
            write_line(file, &trace_lines::traced(done));
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
}

#[async_trait]
impl LogReader for AuditWriter {
    const NAME: &'static str = "the audit writer";
    const VIEWER: u64 = u64::MAX;
    const QUEUE: usize = 4_096;
    /// The audit file has no gap.
    const ON_PANIC: OnPanic = OnPanic::Retry;

    /// Writes the lines of an event. An error concerns the audit file.
    fn take(&mut self, cursor: u64, stored: &[u8]) -> io::Result<()> {
        let Ok(event) = serde_json::from_slice::<Event>(stored) else {
            return Ok(());
        };
        if let Some(file) = &mut self.audit
            && let Some(line) = trace_lines::audit(cursor, &event)
        {
            file.write(&line)?;
        }
        let step = self.step(&event);
        if let Some(file) = &mut self.trace {
            for line in trace_lines::trace(&event, step) {
                write_line(file, &line);
            }
        }
        Ok(())
    }

    async fn take_other(&mut self) -> io::Result<()> {
        tokio::select! {
            Some(done) = next(&mut self.stages) => {
                self.write_traced(&done);
                Ok(())
            }
            Some(line) = self.audits.recv() => {
                self.line = Some(line);
                self.write_kept()
            }
            else => std::future::pending().await,
        }
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.write_kept()
    }

    fn flush(&mut self) {
        if let Some(Err(error)) = self.trace.as_mut().map(Rotated::flush) {
            tracing::warn!(%error, "could not write a side file");
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
        tracing::warn!(%error, "could not write a side file");
    }
}
