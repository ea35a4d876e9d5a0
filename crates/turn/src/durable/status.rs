//! The visible state of an agent: its derived status and its list row.

use crate::agent::Agent;
use crate::calls::open_call::{OpenCall, Stage};
use crate::context::overflow::Shrinking;
use crate::durable::{Durable, LastTurn, Phase, Turn};
use crate::questions::Subject;
use crate::{
    context::overflow,
    inbox, lifecycle,
    tree::{completion_report, delegate},
};
use agentd_protocol::{
    ApprovalKind, CompactionCause, EndReason, FailureClass, OpenApproval, PermissionMode, Remedy, RunState,
    SidePurpose, Status, Summary, Timestamp, WaitReason,
};

impl Agent {
    /// The derived status with a readable reason.
    ///
    /// A session is `failed` after a turn with any end reason except `completed`, `cancelled` and `denied`.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Status {
        let durable = &self.durable;
        if durable.settings.is_none() {
            return status(RunState::Queued, "not created yet", durable.created_at);
        }
        if let Some(closed) = &durable.closed {
            return status(RunState::Closed, &closed.reason, closed.at);
        }
        match self.volatile.shrinking {
            Some(shrinking) => compacting(self, shrinking),
            None if durable.turn.is_none() && lifecycle::holds_up(&self.volatile) => {
                let reason = "hooks are asked before it begins";
                status(RunState::Starting, reason, durable.updated_at)
            }
            None => self.lasting_status(now),
        }
    }

    /// The status for the list, which is read while nothing can update it: hook requests, and work on a shorter
    /// conversation that leaves no fact or was ended by a crash, are left out because they would stay in it.
    #[must_use]
    pub fn lasting_status(&self, now: Timestamp) -> Status {
        let durable = &self.durable;
        if durable.settings.is_none() || durable.closed.is_some() {
            return self.status(now);
        }
        match &durable.turn {
            Some(turn) => self.status_of_turn(turn, now),
            None => idle(durable),
        }
    }

    fn status_of_turn(&self, turn: &Turn, now: Timestamp) -> Status {
        let changed_at = self.durable.updated_at;
        if let Phase::Streaming(current) = &turn.phase {
            if self.volatile.answer.is_some() {
                return status(
                    RunState::RunningTool,
                    "the calls of the model are being judged",
                    changed_at,
                );
            }
            let reason = format!("step {}: {} answers", current.step, current.model);
            let mut status = status(RunState::RunningModel, &reason, current.started_at);
            status.attempt = Some(current.attempt).filter(|attempt| *attempt > 1);
            return status;
        }
        let here = || {
            turn.calls
                .iter()
                .filter(|call| !delegate::is_child(&self.durable, call))
        };
        if let Some((title, at)) = here().find_map(running) {
            let others = here().filter(|call| call.is_running()).skip(1).count();
            let more = if others > 0 {
                format!(" and {others} more")
            } else {
                String::new()
            };
            return status(RunState::RunningTool, &format!("{title}{more}"), at);
        }
        if let Some(open) = self.durable.approvals.first() {
            // The answer alone does not resume the session.
            let paused = self.durable.paused.as_ref();
            let also = paused.map_or_else(String::new, |paused| format!("; paused: {}", paused.reason));
            return status(
                RunState::Waiting(waits_for(open.kind)),
                &format!("{}{also}", open.title),
                open.asked_at,
            );
        }
        if let Some(paused) = &self.durable.paused {
            return status(RunState::Paused, &paused.reason, paused.at);
        }
        if let Some(waiting) = delegate::waiting(&self.durable) {
            return waiting;
        }
        if let Some(backing_off) = backing_off(turn, now) {
            return backing_off;
        }
        self.about_to(turn, changed_at)
    }

    /// The status when nothing runs and no person has to act: the next activity.
    fn about_to(&self, turn: &Turn, changed_at: Timestamp) -> Status {
        if self.volatile.draining {
            let why = if self.volatile.only_ends {
                "its files or labels are on another node; it goes on there"
            } else {
                "the daemon drains; it goes on after the restart"
            };
            return status(RunState::Queued, why, changed_at);
        }
        if turn.calls.iter().any(OpenCall::is_open) {
            return status(RunState::RunningTool, "a tool call is about to run", changed_at);
        }
        status(RunState::Starting, self.waits_before_a_step(), changed_at)
    }

    /// What blocks the next step.
    fn waits_before_a_step(&self) -> &'static str {
        let questions = &self.volatile.questions;
        if questions.is_pending(&Subject::Side(SidePurpose::Intent)) {
            "a model classifies the input"
        } else if questions.is_pending(&Subject::TokenCount) {
            "the provider counts the next request"
        } else if questions.is_pending(&Subject::Setup) {
            "the workspace is being set up"
        } else if lifecycle::holds_up(&self.volatile) {
            "hooks run before the next step"
        } else {
            "the next step is about to begin"
        }
    }

    /// The list row: folded state, open approvals, queue, next wake time.
    #[must_use]
    pub fn summary(&self, now: Timestamp) -> Summary {
        let durable = &self.durable;
        let settings = durable.settings.as_ref();
        Summary {
            session: durable.session,
            name: settings
                .map(|settings| settings.title.clone())
                .unwrap_or_default(),
            status: self.lasting_status(now),
            model: settings
                .map(|settings| settings.model.clone())
                .unwrap_or_default(),
            mode: settings.map_or(PermissionMode::Default, |settings| settings.mode),
            workdir: settings
                .map(|settings| settings.workdir.clone())
                .unwrap_or_default(),
            place: durable.place(),
            requires: settings
                .map(|settings| settings.requires.clone())
                .unwrap_or_default(),
            labels: settings
                .map(|settings| settings.labels.clone())
                .unwrap_or_default(),
            seq: durable.head,
            steps: durable.totals.steps,
            usage: durable.totals.usage,
            cost_usd: durable.totals.cost_usd,
            created_at: durable.created_at,
            updated_at: durable.updated_at,
            parent: settings.and_then(|settings| settings.parent),
            turn: durable.turn.as_ref().map(|turn| turn.id),
            open_approvals: durable.approvals.clone(),
            queue: durable
                .inbox
                .iter()
                .map(|waiting| waiting.queued.clone())
                .collect(),
            budget: durable.budget(),
            last_error: durable
                .last
                .as_ref()
                .filter(|last| failed(last.reason))
                .and_then(|last| last.error.clone()),
            todo: durable.todo.clone(),
            summary: durable.summary.clone(),
            jobs: durable.jobs.clone(),
            time_ms: durable.spent_ms(now),
            children: durable.children.keys().copied().collect(),
            subagents: durable.subagents,
            below: durable.below,
            paused: durable.paused.is_some(),
            wake_at: wake_at(durable),
            resumable: resumable(durable),
            settings_tag: None,
            limits: None,
        }
    }
}

fn compacting(agent: &Agent, shrinking: Shrinking) -> Status {
    let last = match agent.durable.turn.as_ref().map(|turn| &turn.phase) {
        Some(Phase::BackingOff { last, .. }) => last.model.as_str(),
        _ => agent.durable.model(),
    };
    let reason = match shrinking.cause {
        CompactionCause::Overflow => {
            format!("the conversation is too long for {last} and is made shorter")
        }
        CompactionCause::Threshold => "the conversation is long and is made shorter".to_owned(),
        CompactionCause::Manual => "the conversation is compacted on request".to_owned(),
    };
    status(RunState::Compacting, &reason, shrinking.since)
}

pub(crate) fn status(state: RunState, reason: &str, since: Timestamp) -> Status {
    Status {
        state,
        reason: reason.to_owned(),
        since,
        until: None,
        attempt: None,
        position: None,
    }
}

fn backing_off(turn: &Turn, now: Timestamp) -> Option<Status> {
    let Phase::BackingOff {
        last,
        failed_at,
        retry_at,
        message,
        class,
        remedy,
    } = &turn.phase
    else {
        return None;
    };
    if overflow::how(remedy.as_ref()).is_some() {
        let reason = format!(
            "the conversation is too long for {} and is made shorter",
            last.model
        );
        return Some(status(RunState::Compacting, &reason, *failed_at));
    }
    let next = last.attempt.saturating_add(1);
    let (state, reason) = if turn.phase.parked() {
        let (wait, what) = parked_for(*class);
        // The time comes first, because lists show only the beginning.
        let reason = format!("tried again at {retry_at}, or by `resume`: {what}: {message}");
        (RunState::Waiting(wait), reason)
    } else {
        let seconds = retry_at.since_ms(now).div_ceil(1000);
        let how = remedy.as_ref().map(different).unwrap_or_default();
        let reason = format!("attempt {next}{how} in {seconds} s: {message}");
        (RunState::BackingOff, reason)
    };
    let mut status = status(state, &reason, *failed_at);
    (status.until, status.attempt) = (Some(*retry_at), Some(next));
    Some(status)
}

fn different(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Rotate { credential } => format!(" with the credential {credential}"),
        Remedy::Think { level } => format!(" with thinking level {}", level.as_str()),
        Remedy::Fallback { model } => format!(" with the model {model}"),
        Remedy::Without { .. }
        | Remedy::LeaveOut { .. }
        | Remedy::Compact
        | Remedy::TruncateResults
        | Remedy::Park => String::new(),
    }
}

const fn parked_for(class: FailureClass) -> (WaitReason, &'static str) {
    match class {
        FailureClass::QuotaExhausted => (WaitReason::Quota, "the account has no credit or quota left"),
        FailureClass::Auth => (WaitReason::Credentials, "no credential is accepted"),
        FailureClass::Overloaded | FailureClass::Transient => {
            (WaitReason::Provider, "the provider is down or overloaded")
        }
        FailureClass::RateLimited
        | FailureClass::ContextOverflow
        | FailureClass::ContentFilter
        | FailureClass::InvalidRequest
        | FailureClass::Internal
        | FailureClass::Cancelled => (WaitReason::RateLimit, "the provider asks to wait"),
    }
}

fn running(call: &OpenCall) -> Option<(&str, Timestamp)> {
    match &call.stage {
        Stage::Running(started) => Some((started.title.as_str(), started.at)),
        Stage::Named
        | Stage::Proposed
        | Stage::ToAsk
        | Stage::Asking(_)
        | Stage::Allowed
        | Stage::Denied(_)
        | Stage::Answered(_)
        | Stage::Closed(_) => None,
    }
}

const fn waits_for(kind: ApprovalKind) -> WaitReason {
    match kind {
        ApprovalKind::Tool | ApprovalKind::Plan => WaitReason::Approval,
        ApprovalKind::Question => WaitReason::Question,
        ApprovalKind::Limit => WaitReason::Limit,
    }
}

pub(crate) const fn failed(reason: EndReason) -> bool {
    !matches!(
        reason,
        EndReason::Completed | EndReason::Cancelled | EndReason::Denied
    )
}

fn idle(durable: &Durable) -> Status {
    if durable.history.is_some() {
        let (state, why) = (
            RunState::RunningTool,
            "files or the conversation are being put back",
        );
        return status(state, why, durable.updated_at);
    }
    if let Some(paused) = &durable.paused {
        return status(RunState::Paused, &paused.reason, paused.at);
    }
    match &durable.last {
        Some(LastTurn { at, reason, error }) if failed(*reason) => {
            let why = error
                .as_ref()
                .map_or("the last turn failed", |error| error.message.as_str());
            status(RunState::Failed, why, *at)
        }
        Some(LastTurn {
            at,
            reason: EndReason::Cancelled,
            ..
        }) => status(RunState::Idle, "the last turn was cancelled", *at),
        Some(LastTurn { at, .. }) => {
            let reason = match durable.jobs.len() {
                0 => "waits for input".to_owned(),
                1 => "waits for input; 1 background job runs".to_owned(),
                several => format!("waits for input; {several} background jobs run"),
            };
            status(RunState::Idle, &reason, *at)
        }
        None => status(RunState::Idle, "waits for its first input", durable.created_at),
    }
}

/// The next time when something happens without an input: an approval expires or stays unattended, or a back-off ends.
fn wake_at(durable: &Durable) -> Option<Timestamp> {
    let unattended = durable.limits().unattended_ms;
    let of_approval = |open: &OpenApproval| {
        let nobody = unattended.map(|ms| open.asked_at.plus_ms(ms));
        open.expires_at.into_iter().chain(nobody).min()
    };
    let of_backoff = match durable.turn.as_ref().map(|turn| &turn.phase) {
        Some(Phase::BackingOff { retry_at, .. }) if durable.paused.is_none() => Some(*retry_at),
        _ => None,
    };
    durable
        .approvals
        .iter()
        .filter_map(of_approval)
        .chain(of_backoff)
        .min()
}

/// Whether a new incarnation would immediately have something to do.
fn resumable(durable: &Durable) -> bool {
    // A restart loses them, and that has to be recorded.
    if !durable.jobs.is_empty() || durable.history.is_some() {
        return true;
    }
    // The session looks for its children again, and an ended sub-agent reports to its parent again.
    if !durable.children.is_empty() || completion_report::owes(durable) {
        return true;
    }
    let free = durable.paused.is_none() && durable.closed.is_none();
    let Some(turn) = &durable.turn else {
        return free && (durable.compaction_is_due() || !inbox::starts_next(durable).is_empty());
    };
    match &turn.phase {
        Phase::Calling { .. } => durable
            .open_calls()
            .any(|call| !matches!(call.stage, Stage::Asking(_))),
        Phase::AtLimit(_) => false,
        // A lost attempt is recorded even during a pause: otherwise the row would show a streaming model for ever.
        Phase::GaveUp { .. } | Phase::Streaming(_) => true,
        Phase::Ready | Phase::BackingOff { .. } | Phase::Answered { .. } => free,
    }
}
