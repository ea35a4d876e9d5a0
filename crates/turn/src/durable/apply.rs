//! Folding one event: the envelope, and the facts about the session and its inbox.

use crate::attempts::unseen;
use crate::durable::fold_error::FoldError;
use crate::durable::{Durable, Mark, Phase, Waiting};
use crate::steps::surroundings::Surroundings;
use agentd_protocol::{
    Block, Event, EventBody, InputAccepted, InputId, Principal, QueuedInput, Seq, SessionCreated,
    SessionUpdated, Timestamp, TodoUpdated,
};

/// The most characters of an input in a queue listing.
const PREVIEW_CHARS: usize = 200;

/// Why an event cannot follow.
pub(crate) type Refusal = &'static str;

impl Durable {
    /// Folds the next event; refuses an impossible one and then leaves the state unchanged.
    pub(crate) fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        let (session, seq) = (self.session, event.seq);
        if event.session != session {
            return Err(FoldError::OtherSession {
                seq,
                session,
                found: event.session,
            });
        }
        if seq != self.head.saturating_add(1) {
            return Err(FoldError::Gap {
                session,
                expected: self.head.saturating_add(1),
                found: seq,
            });
        }
        let kind = event.body.kind();
        let impossible = |why| FoldError::Impossible {
            session,
            seq,
            kind,
            why,
        };
        if self.settings.is_none() && !may_open_a_log(&event.body) {
            return Err(impossible("the session was not created yet"));
        }
        let spent = self.unaccounted_ms(event.at, matches!(event.body, EventBody::SessionRecovered(_)));
        self.apply_body(event, impossible)?;
        self.files.take(event);
        self.totals.time_ms = self.totals.time_ms.saturating_add(spent);
        self.head = seq;
        self.updated_at = event.at;
        Ok(())
    }

    fn apply_body(
        &mut self,
        event: &Event,
        impossible: impl Fn(Refusal) -> FoldError,
    ) -> Result<(), FoldError> {
        let at = event.at;
        let done = match &event.body {
            EventBody::SessionCreated(created) => self.created(created, at),
            EventBody::SessionUpdated(updated) => self.updated(updated),
            EventBody::SessionPaused(paused) => self.pause(&paused.reason, at, &event.by),
            EventBody::SessionResumed(_) => self.resume(at),
            EventBody::SessionClosed(closed) => self.close(&closed.reason, at),
            EventBody::InputAccepted(accepted) => self.input_accepted(accepted, at),
            EventBody::InputCancelled(cancelled) => self.input_cancelled(cancelled.input),
            EventBody::NoteInjected(note) => self.note_injected(note.kind, at),
            EventBody::TurnStarted(started) => self.turn_started(started, event.turn, at),
            EventBody::ModelStarted(started) => self.model_started(started, at),
            EventBody::ModelFinished(finished) => self.model_finished(finished, at),
            EventBody::ModelFailed(failed) => self.model_failed(failed, at),
            EventBody::ToolProposed(proposed) => self.tool_proposed(proposed),
            EventBody::VerdictGiven(given) => self.verdict_given(given),
            EventBody::ApprovalAsked(asked) => self.approval_asked(asked, at),
            EventBody::ApprovalEscalated(escalated) => self.approval_escalated(escalated),
            EventBody::ApprovalDecided(decided) => self.approval_decided(decided),
            EventBody::ToolStarted(started) => self.tool_started(started, at),
            EventBody::ToolFinished(finished) => self.tool_finished(finished, event.seq),
            EventBody::HookFinished(finished) => self.hook_finished(finished),
            EventBody::TodoUpdated(updated) => self.todo_updated(updated),
            EventBody::ModeChanged(changed) => self.mode_changed(changed),
            EventBody::IntentClassified(classified) => self.intent_classified(classified),
            EventBody::PlanUpdated(updated) => self.plan_updated(updated),
            EventBody::JobStarted(started) => self.job_started(started, at),
            EventBody::JobFinished(finished) => self.job_finished(finished),
            EventBody::JobLost(lost) => self.job_lost(lost),
            EventBody::SideCallFinished(finished) => self.side_call_finished(finished),
            EventBody::SubagentStarted(started) => self.subagent_started(started, at),
            EventBody::SubagentFinished(finished) => self.subagent_finished(finished),
            EventBody::LimitReached(reached) => self.limit_reached(&reached.action),
            EventBody::TurnFinished(finished) => self.turn_finished(finished, at),
            EventBody::SessionRecovered(_) => self.recovered(at),
            EventBody::ContextCompacted(compacted) => self.compacted(compacted),
            EventBody::ContextPruned(_) | EventBody::ContextTrimmed(_) => self.shortened(false),
            EventBody::CompactionAsked(_) => self.compaction_due(true),
            EventBody::ContextKept(_) => self.compaction_due(false),
            EventBody::ContextTruncated(_) => self.shortened(true),
            EventBody::HistoryStarted(started) => self.history_started(started, event.seq),
            EventBody::HistoryFailed(_) => self.history_failed(),
            EventBody::UndoApplied(applied) => self.undo_applied(applied, event.seq),
            EventBody::WorkspaceCheckpointed(taken) => self.checkpointed(taken, event.seq),
            EventBody::WorkspaceCreated(created) => self.workspace_created(created),
            EventBody::WorkspaceRestored(restored) => self.workspace_restored(restored, event.seq),
            EventBody::WorkspacePrepared(prepared) => self.workspace_prepared(prepared),
            EventBody::SessionRewound(rewound) => self.session_rewound(rewound),
            EventBody::WarningRaised(raised) => self.warned(raised),
            // An imported event has no effect here: it changes no call, approval, setting or total.
            EventBody::SessionImported(_) | EventBody::ImportedEvent(_) => Ok(()),
            // What leaves the session changes nothing in it.
            EventBody::TransferStarted(_) | EventBody::TransferFinished(_) => Ok(()),
            EventBody::SessionMoved(moved) => self.session_moved(moved),
            EventBody::SessionForked(_) => self.forked(at),
            EventBody::RuleAdded(_) | EventBody::RuleRemoved(_) => {
                Err("always-rules belong to the fleet-wide stream")
            }
            EventBody::Unknown => return Err(self.unknown(event.seq)),
        };
        done.map_err(impossible)
    }

    const fn unknown(&self, seq: Seq) -> FoldError {
        let session = self.session;
        FoldError::UnknownType { session, seq }
    }

    fn created(&mut self, created: &SessionCreated, at: Timestamp) -> Result<(), Refusal> {
        if self.settings.is_some() {
            return Err("the session exists already");
        }
        self.settings = Some(SessionCreated {
            // The prompt is only needed to build the system prompt, which happens once.
            prompt: None,
            ..created.clone()
        });
        if let Some((_, lineage)) = self.lineage() {
            self.grants = lineage.grants.clone();
        }
        self.created_at = at;
        self.told = Surroundings::by_prompt(created, at);
        Ok(())
    }

    fn updated(&mut self, updated: &SessionUpdated) -> Result<(), Refusal> {
        self.mode_updated(updated);
        let settings = self.settings.as_mut().ok_or("the session was not created yet")?;
        if let Some(title) = &updated.title {
            settings.title.clone_from(title);
            settings.derived_title = false;
        }
        if let Some(model) = &updated.model {
            settings.model.clone_from(model);
        }
        if let Some(labels) = &updated.labels {
            settings.labels.clone_from(labels);
        }
        settings.mode = updated.mode.unwrap_or(settings.mode);
        if let Some(budget) = updated.budget {
            settings.budget = budget;
            self.budget_warned = false;
        }
        if updated.summary.is_some() {
            self.summary.clone_from(&updated.summary);
        }
        Ok(())
    }

    fn todo_updated(&mut self, updated: &TodoUpdated) -> Result<(), Refusal> {
        self.todo.clone_from(&updated.items);
        Ok(())
    }

    /// The only pause that agentd starts by itself is the one that follows the parent's pause.
    fn pause(&mut self, reason: &str, at: Timestamp, by: &Principal) -> Result<(), Refusal> {
        self.still_open()?;
        self.paused_with_parent = *by == Principal::agentd();
        self.paused = Some(Mark {
            at,
            reason: reason.to_owned(),
        });
        Ok(())
    }

    /// Ends a pause. If the session was not paused, a parked model call becomes due.
    fn resume(&mut self, at: Timestamp) -> Result<(), Refusal> {
        self.still_open()?;
        self.paused_with_parent = false;
        if self.paused.take().is_none()
            && let Some(turn) = &mut self.turn
            && turn.phase.parked()
            && let Phase::BackingOff { retry_at, .. } = &mut turn.phase
        {
            *retry_at = at.min(*retry_at);
        }
        Ok(())
    }

    fn close(&mut self, reason: &str, at: Timestamp) -> Result<(), Refusal> {
        self.still_open()?;
        if self.turn.is_some() {
            return Err("a turn runs");
        }
        self.inbox.clear();
        self.closed = Some(Mark {
            at,
            reason: reason.to_owned(),
        });
        Ok(())
    }

    pub(crate) fn still_open(&self) -> Result<(), Refusal> {
        if self.closed.is_some() {
            Err("the session is closed")
        } else {
            Ok(())
        }
    }

    fn input_accepted(&mut self, accepted: &InputAccepted, at: Timestamp) -> Result<(), Refusal> {
        self.still_open()?;
        if self.waiting(accepted.input).is_some() {
            return Err("the input was accepted before");
        }
        let queued = QueuedInput {
            input: accepted.input,
            delivery: accepted.delivery,
            preview: preview(&accepted.content),
            at,
        };
        self.outer.told_unseen &= !unseen::has_images(&accepted.content);
        self.inbox.push(Waiting {
            queued,
            model: accepted.model.clone(),
            taken: false,
        });
        Ok(())
    }

    fn input_cancelled(&mut self, input: InputId) -> Result<(), Refusal> {
        self.waiting(input).ok_or("the input does not wait")?;
        self.leave_inbox(&[input]);
        Ok(())
    }

    /// Removes inputs from the inbox and remembers that they existed.
    pub(crate) fn leave_inbox(&mut self, inputs: &[InputId]) {
        self.inbox
            .retain(|waiting| !inputs.contains(&waiting.queued.input));
        for input in inputs {
            remember(&mut self.gone, *input);
        }
    }

    /// Milliseconds of work since the last event that are not yet in the sum. Waiting for people, pauses and the time
    /// between two incarnations do not count.
    fn unaccounted_ms(&self, now: Timestamp, new_incarnation: bool) -> u64 {
        let Some(turn) = &self.turn else { return 0 };
        if new_incarnation {
            return 0;
        }
        match &turn.phase {
            Phase::Streaming(_) => now.since_ms(self.updated_at),
            Phase::BackingOff { retry_at, .. } if self.paused.is_none() && !turn.phase.parked() => {
                now.min(*retry_at).since_ms(self.updated_at)
            }
            // The time that sub-agents spend is counted in their own sessions.
            Phase::Calling { .. }
                if turn
                    .calls
                    .iter()
                    .any(|call| call.is_running() && !crate::tree::delegate::is_child(self, call)) =>
            {
                now.since_ms(self.updated_at)
            }
            Phase::BackingOff { .. }
            | Phase::Calling { .. }
            | Phase::Ready
            | Phase::GaveUp { .. }
            | Phase::Answered { .. }
            | Phase::AtLimit(_) => 0,
        }
    }

    /// Milliseconds spent inside turns until now.
    #[must_use]
    pub fn spent_ms(&self, now: Timestamp) -> u64 {
        self.totals
            .time_ms
            .saturating_add(self.unaccounted_ms(now, false))
    }
}

/// Keeps only the most recent ids, so that a session's state stays bounded.
pub(crate) fn remember<T>(kept: &mut std::collections::VecDeque<T>, id: T) {
    if kept.len() >= crate::durable::REMEMBERED {
        kept.pop_front();
    }
    kept.push_back(id);
}

const fn may_open_a_log(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::SessionCreated(_)
            | EventBody::SessionImported(_)
            | EventBody::SessionMoved(_)
            | EventBody::Unknown
    )
}

fn preview(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Image { .. } => Some("[image]"),
        Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Unknown => None,
    });
    let mut out = String::new();
    for text in texts {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(text.chars().take(PREVIEW_CHARS));
    }
    out.chars().take(PREVIEW_CHARS).collect()
}
