//! Limits: the step cap of a turn and the session's budgets, checked before each model call.

use crate::draft::Draft;
use crate::durable::Durable;
use crate::tree::shared_budget::TreeSpent;
use crate::{calls::approvals, words};
use agentd_protocol::{
    About, ApprovalAsked, ApprovalKind, Budget, Choice, EndReason, LimitKind, LimitReached, NoteInjected,
    NoteKind, OnLimit, Timestamp, TurnError,
};

/// The answer to a limit that means "go on".
pub(crate) const GO_ON: &str = "continue";
/// The answer to a limit that means "stop".
pub(crate) const STOP: &str = "stop";
/// The fraction of a budget at which the model is warned.
const WARN_AT: f64 = 0.9;

/// The consequences of a limit, as recorded in `limit.reached`.
pub(crate) mod action {
    /// A person is asked.
    pub(crate) const ASK: &str = "ask";
    /// The turn ends.
    pub(crate) const STOP: &str = "stop";
    /// One last call without tools.
    pub(crate) const SUMMARIZE: &str = "summarize";
    /// The model is told.
    pub(crate) const WARN: &str = "warn";
}

/// The limits for one more model call.
#[derive(Debug, PartialEq)]
pub(crate) enum Leave {
    /// The call may be made.
    Go,
    /// The call may be made without tools.
    GoWithoutTools,
    /// Something has to be answered first.
    Wait,
    /// The call may not be made; the turn ends.
    End(EndReason, TurnError),
}

impl Leave {
    /// No leave yet if the call has to wait.
    pub(crate) const fn unless(waits: bool) -> Self {
        if waits { Self::Wait } else { Self::Go }
    }
}

/// How much of one budget has been used.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Used {
    limit: LimitKind,
    used: f64,
    of: f64,
}

/// Checks all limits before one more model call; records a limit that is reached.
pub(crate) fn ask_leave(draft: &mut Draft<'_, '_>) -> Leave {
    let limits = draft.durable().limits();
    let Some(cap) = limits.step_cap() else {
        let message =
            "chat is disabled for this session: max_turns is 0; create a session with another value";
        return Leave::End(EndReason::ChatDisabled, error("chat_disabled", message));
    };
    let used = used(draft.durable(), draft.now(), draft.seen().tree.last);
    if let Some(full) = used.iter().find(|used| used.used >= used.of) {
        let (reason, error) = end_of_budget(draft, *full);
        return Leave::End(reason, error);
    }
    let Some(turn) = &draft.durable().turn else {
        return Leave::Go;
    };
    if turn.summarizing {
        return Leave::GoWithoutTools;
    }
    if turn.steps.saturating_sub(turn.steps_granted) >= cap {
        return at_cap(draft, turn.steps, cap);
    }
    if !draft.durable().budget_warned
        && let Some(near) = used.iter().find(|used| used.used >= WARN_AT * used.of)
    {
        reached(draft, near.limit, near.of, action::WARN);
        draft.emit(NoteInjected {
            kind: NoteKind::LimitNotice,
            text: words::near_the_end(near.limit),
        });
    }
    Leave::Go
}

/// The reason to end the turn if a budget is used up before another attempt of the same call. The step cap is not
/// checked: the step was granted when the call began.
pub(crate) fn spent_before_retry(draft: &mut Draft<'_, '_>) -> Option<(EndReason, TurnError)> {
    let used = used(draft.durable(), draft.now(), draft.seen().tree.last);
    let full = used
        .into_iter()
        .find(|used| used.limit != LimitKind::Steps && used.used >= used.of)?;
    Some(end_of_budget(draft, full))
}

/// Whether a budget other than the step cap is used up: the turn is about to end.
pub(crate) fn spent(durable: &Durable, now: Timestamp) -> bool {
    used(durable, now, None)
        .iter()
        .any(|used| used.limit != LimitKind::Steps && used.used >= used.of)
}

/// Whether any part of a budget is used up.
pub(crate) fn used_up(durable: &Durable, now: Timestamp) -> bool {
    used(durable, now, None).iter().any(|used| used.used >= used.of)
}

/// Whether another step could start without asking or ending; optional work is skipped otherwise.
pub(crate) fn has_room(durable: &Durable, now: Timestamp) -> bool {
    let Some(turn) = &durable.turn else { return false };
    let below_cap = durable
        .limits()
        .step_cap()
        .is_some_and(|cap| turn.steps.saturating_sub(turn.steps_granted) < cap);
    below_cap && !turn.summarizing && used(durable, now, None).iter().all(|used| used.used < used.of)
}

/// The last step that the turn may currently take, for "step 3 of 20".
pub(crate) fn max_steps(durable: &Durable) -> u32 {
    let cap = durable.limits().step_cap().unwrap_or_default();
    let granted = durable.turn.as_ref().map_or(0, |turn| turn.steps_granted);
    granted.saturating_add(cap)
}

fn at_cap(draft: &mut Draft<'_, '_>, steps: u32, cap: u32) -> Leave {
    let limits = draft.durable().limits();
    let value = f64::from(cap);
    match limits.on_limit {
        OnLimit::Ask if !limits.headless => {
            reached(draft, LimitKind::Steps, value, action::ASK);
            ask(draft, steps, limits.ask_timeout_ms);
            Leave::Wait
        }
        OnLimit::Ask | OnLimit::Stop => {
            reached(draft, LimitKind::Steps, value, action::STOP);
            Leave::End(EndReason::MaxTurns, steps_used_up(steps))
        }
        OnLimit::Summarize => {
            reached(draft, LimitKind::Steps, value, action::SUMMARIZE);
            draft.emit(NoteInjected {
                kind: NoteKind::LimitNotice,
                text: words::sum_up(cap),
            });
            Leave::GoWithoutTools
        }
    }
}

fn ask(draft: &mut Draft<'_, '_>, steps: u32, ask_timeout_ms: Option<u64>) {
    let choice = |id: &str, label: &str| Choice {
        id: id.to_owned(),
        label: label.to_owned(),
    };
    let asked = ApprovalAsked {
        approval: draft.stamp().approval(),
        kind: ApprovalKind::Limit,
        tool_call: None,
        title: format!("The turn took {steps} steps; go on?"),
        detail: "The step limit of this turn is reached. Going on gives it as many steps again.".to_owned(),
        choices: vec![choice(GO_ON, "Go on"), choice(STOP, "Stop the turn")],
        scopes: Vec::new(),
        expires_at: approvals::expiry(draft.now(), ask_timeout_ms),
        grant: None,
        binding: None,
        about: About::default(),
    };
    draft.emit(asked);
}

fn end_of_budget(draft: &mut Draft<'_, '_>, full: Used) -> (EndReason, TurnError) {
    reached(draft, full.limit, full.of, action::STOP);
    let what = words::limit_name(full.limit);
    let whose = if draft.durable().lineage().is_some() {
        "tree of agents"
    } else {
        "session"
    };
    let message = format!(
        "the {whose}'s {what} budget is used up ({} of {}); raise its budget to go on",
        full.used, full.of
    );
    (EndReason::Budget, error("budget", message))
}

/// The error of a turn that has used all its steps.
pub(crate) fn steps_used_up(steps: u32) -> TurnError {
    error(
        "max_turns",
        format!("the turn took {steps} steps, its limit; send another message to go on"),
    )
}

fn reached(draft: &mut Draft<'_, '_>, limit: LimitKind, value: f64, action: &str) {
    draft.emit(LimitReached {
        limit,
        value,
        action: action.to_owned(),
    });
}

pub(crate) fn error(class: &str, message: impl Into<String>) -> TurnError {
    TurnError {
        class: class.to_owned(),
        message: message.into(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "budgets and sums stay far below 2^52")]
fn used(durable: &Durable, now: Timestamp, tree: Option<TreeSpent>) -> Vec<Used> {
    let Budget {
        tokens,
        usd,
        time_ms,
        steps,
    } = tree.map_or_else(|| durable.budget(), |tree| tree.budget);
    let own = durable.spent(now).and(durable.below);
    let spent = tree.map_or(own, |tree| own.and(tree.others));
    let parts = [
        (LimitKind::Tokens, spent.tokens as f64, tokens as f64),
        (LimitKind::Cost, spent.usd, usd),
        (LimitKind::Time, spent.time_ms as f64, time_ms as f64),
        (LimitKind::Steps, spent.steps as f64, steps as f64),
    ];
    parts
        .into_iter()
        .filter(|(_, _, of)| *of > 0.0)
        .map(|(limit, used, of)| Used { limit, used, of })
        .collect()
}
