//! The deadlines of one attempt, as a clock that its reader feeds with events.

use crate::decoder::Progress;
use crate::error::ModelError;
use crate::spec::Deadlines;
use std::time::Duration;
use tokio::time::Instant;

/// Signs of life (comments, pings) without progress extend a wait to at most this many times its length.
const PATIENCE: u32 = 5;
/// How long to wait for the end of the body after a complete answer, so that the connection can be reused.
const WIND_DOWN: Duration = Duration::from_millis(250);

/// Computes when an attempt has waited too long.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    deadlines: Deadlines,
    started: Instant,
    /// The last sign of life.
    alive: Instant,
    /// The last progress; initially the start.
    progress: Instant,
    moved: bool,
    patient: bool,
    complete: Option<Instant>,
}

impl Pace {
    pub(crate) fn start(deadlines: Deadlines) -> Self {
        let now = Instant::now();
        Self {
            deadlines,
            started: now,
            alive: now,
            progress: now,
            moved: false,
            patient: false,
            complete: None,
        }
    }

    /// For answers that are not streamed: their first byte arrives only when the whole answer is ready.
    pub(crate) const fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    fn first_byte(&self) -> Duration {
        self.deadlines.first_byte * if self.patient { PATIENCE } else { 1 }
    }

    /// When the attempt as a whole times out.
    pub(crate) fn end(&self) -> Instant {
        self.started + self.deadlines.total
    }

    /// When waiting for the next bytes times out.
    pub(crate) fn deadline(&self) -> Instant {
        let wait = if self.moved {
            self.deadlines.idle
        } else {
            self.first_byte()
        };
        let patient = (self.alive + wait).min(self.progress + wait * PATIENCE);
        patient.min(self.end()).min(self.complete.unwrap_or(patient))
    }

    /// Records the progress of the bytes that arrived.
    pub(crate) fn note(&mut self, progress: Progress) {
        let now = Instant::now();
        if progress >= Progress::Alive {
            self.alive = now;
        }
        if progress == Progress::Moved {
            self.progress = now;
            self.moved = true;
        }
    }

    /// Records that the answer is complete; only the end of the body is missing.
    pub(crate) fn complete(&mut self) {
        self.complete.get_or_insert_with(|| Instant::now() + WIND_DOWN);
    }

    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Names the deadline that expired.
    pub(crate) fn expired(&self) -> ModelError {
        let now = Instant::now();
        ModelError::transient(if now >= self.end() {
            format!(
                "no complete answer within {} ms",
                self.deadlines.total.as_millis()
            )
        } else if self.moved {
            format!(
                "the stream stalled: no new data within {} ms",
                self.deadlines.idle.as_millis()
            )
        } else {
            format!("no answer within {} ms", self.first_byte().as_millis())
        })
    }
}
