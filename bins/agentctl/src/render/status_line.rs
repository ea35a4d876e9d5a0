//! The status line of `run`, below everything else: what the session does, for how long, and its token usage.

use crate::render::table::cut;
use crate::render::{clock, one_line, tokens, word};
use agentd_protocol::{Event, EventBody, RunState, Status, Timestamp};

/// The known state of the watched turn.
#[derive(Debug)]
pub(crate) struct StatusLine {
    began: Timestamp,
    status: Option<Status>,
    tokens: u64,
    /// Why the last attempt failed.
    failed: String,
}

impl StatusLine {
    pub(crate) const fn new(began: Timestamp) -> Self {
        Self {
            began,
            status: None,
            tokens: 0,
            failed: String::new(),
        }
    }

    pub(crate) fn status(&mut self, status: &Status) {
        self.status = Some(status.clone());
    }

    pub(crate) fn event(&mut self, event: &Event) {
        if let EventBody::ModelFinished(answer) = &event.body {
            self.tokens += answer.usage.total();
        } else if let EventBody::ModelFailed(failed) = &event.body {
            self.failed = word(&failed.class).replace('_', " ");
        }
    }

    /// The line, at most `columns` wide; empty while nothing is known.
    pub(crate) fn text(&self, now: Timestamp, columns: usize) -> String {
        let Some(status) = &self.status else {
            return String::new();
        };
        let mut parts = vec![format!("{} {}", status.state, clock(now.since_ms(self.began)))];
        parts.extend(self.detail(status, now).filter(|detail| !detail.is_empty()));
        if self.tokens > 0 {
            parts.push(format!("{} tokens", tokens(self.tokens)));
        }
        parts.push("Ctrl-C cancels".to_owned());
        cut(&parts.join(" · "), columns)
    }

    /// The reason for the state, or the time left until the next attempt.
    fn detail(&self, status: &Status, now: Timestamp) -> Option<String> {
        if let (Some(until), Some(attempt)) = (status.until, status.attempt) {
            let left = clock(until.since_ms(now).saturating_add(999));
            return Some(format!("attempt {attempt} in {left}: {}", self.failed));
        }
        let told = !matches!(status.state, RunState::Idle | RunState::Failed);
        told.then(|| one_line(&status.reason, 60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: RunState, reason: &str) -> Status {
        Status {
            state,
            reason: reason.to_owned(),
            since: Timestamp(0),
            until: None,
            attempt: None,
            position: None,
        }
    }

    #[test]
    fn the_status_line_shows_state_seconds_and_tokens() {
        let mut line = StatusLine::new(Timestamp(1_000));
        assert_eq!(line.text(Timestamp(5_000), 80), "");
        line.status(&status(RunState::RunningModel, "step 1: claude answers"));
        line.tokens = 3_400;
        let text = line.text(Timestamp(66_500), 80);
        assert_eq!(
            text,
            "running(model) 1m05s · step 1: claude answers · 3.4k tokens · Ctrl-C cancels"
        );
        let narrow = line.text(Timestamp(66_500), 30);
        assert_eq!(narrow, "running(model) 1m05s · step 1…");
    }

    #[test]
    fn a_pending_attempt_counts_down() {
        let mut line = StatusLine::new(Timestamp(0));
        line.failed = "rate limited".to_owned();
        line.status(&Status {
            until: Some(Timestamp(20_000)),
            attempt: Some(3),
            ..status(RunState::BackingOff, "attempt 3 in 8 s: slow down")
        });
        for (now, left) in [(12_000, "8s"), (12_001, "8s"), (19_500, "1s"), (21_000, "0s")] {
            let text = line.text(Timestamp(now), 80);
            let wanted = format!("attempt 3 in {left}: rate limited · Ctrl-C");
            assert!(text.contains(&wanted), "{text}");
        }
    }
}
