//! Lifecycle hooks: the session's start and end, inputs, the end of a turn, a compaction. Each request is volatile:
//! after a restart what is still blocked is requested again, and pure notifications are not repeated.

pub(crate) mod event;

use crate::context::overflow;
use crate::draft::Draft;
use crate::durable::status::failed;
use crate::inbox;
use crate::lifecycle::event::{LifecycleEvent, Notice};
use crate::questions::{self, Question, Subject};
use crate::steps::limits;
use crate::volatile::Volatile;
use agentd_protocol::{
    ApprovalAsked, EventBody, HookEvent, HookFinished, InputCancelled, InputId, NoteInjected, NoteKind,
    TurnFinished, TurnId, VerdictKind, WarningRaised,
};

/// The most notifications in flight at the same time; slow hooks miss those beyond.
const MOST_NOTICES: usize = 16;

/// Whether the agent is blocked on hooks.
pub(crate) fn holds_up(volatile: &Volatile) -> bool {
    volatile.questions.events().any(LifecycleEvent::holds_up)
}

fn is_asked(draft: &Draft<'_, '_>, event: &LifecycleEvent) -> bool {
    draft.seen().questions.events().any(|asked| asked == event)
}

fn hears(draft: &Draft<'_, '_>, event: HookEvent) -> bool {
    draft.config().hooks.contains(&event)
}

/// Sends a request to the hooks.
pub(crate) fn ask(draft: &mut Draft<'_, '_>, event: LifecycleEvent) {
    questions::ask(draft, Question::Hooks(event));
}

/// Asks the hooks about new arrivals: a new session, inputs.
pub(crate) fn begin(draft: &mut Draft<'_, '_>) {
    let durable = draft.durable();
    if durable.settings.is_none() || durable.closed.is_some() || draft.seen().draining {
        return;
    }
    let new = !durable.greeted && durable.last.is_none() && durable.turn.is_none();
    if new && !draft.seen().greeted && hears(draft, HookEvent::SessionStart) {
        ask(draft, LifecycleEvent::SessionStart);
        draft.volatile().greeted = true;
    }
    if !hears(draft, HookEvent::UserPromptSubmit) {
        return;
    }
    let unseen: Vec<InputId> = draft
        .durable()
        .inbox
        .iter()
        .filter(|waiting| !waiting.taken)
        .map(|waiting| waiting.queued.input)
        .filter(|input| !draft.seen().screened.contains_key(input))
        .filter(|input| !is_asked(draft, &LifecycleEvent::Prompt(*input)))
        .collect();
    for input in unseen {
        ask(draft, LifecycleEvent::Prompt(input));
    }
}

/// Whether an input may join.
pub(crate) fn lets_in(draft: &Draft<'_, '_>, input: InputId) -> bool {
    !hears(draft, HookEvent::UserPromptSubmit) || draft.seen().screened.contains_key(&input)
}

/// Whether a turn may begin.
pub(crate) fn lets_begin(draft: &Draft<'_, '_>) -> bool {
    !is_asked(draft, &LifecycleEvent::SessionStart)
}

/// Text that hooks add to inputs is recorded when they join, so that a restart before that leaves nothing behind.
pub(crate) fn join(draft: &mut Draft<'_, '_>) -> Vec<InputId> {
    let inputs = inbox::joins_next(draft);
    for input in &inputs {
        if let Some(Some(text)) = draft.volatile().screened.remove(input) {
            note(draft, text);
        }
    }
    inputs
}

/// Whether the turn may end by itself. The hooks are asked at each such end; they may object a limited number of times.
pub(crate) fn lets_stop(draft: &mut Draft<'_, '_>) -> bool {
    let child = draft
        .durable()
        .settings
        .as_ref()
        .is_some_and(|settings| settings.parent.is_some());
    let Some(turn) = draft.turn() else { return true };
    let topic = LifecycleEvent::Stop {
        turn: turn.id,
        text: turn.text.clone(),
        rounds: turn.stops,
        child,
    };
    if draft.seen().may_stop == Some(turn.id) || !hears(draft, topic.event()) {
        return true;
    }
    let asked = draft
        .seen()
        .questions
        .events()
        .any(|topic| matches!(topic, LifecycleEvent::Stop { .. }));
    // The next incarnation asks them.
    if !asked && !draft.seen().draining {
        ask(draft, topic);
    }
    false
}

/// Handles the hooks' results.
pub(crate) fn heard(draft: &mut Draft<'_, '_>, event: &LifecycleEvent, records: Vec<HookFinished>) {
    let (objection, words) = (HookFinished::objection(&records), HookFinished::words(&records));
    match *event {
        LifecycleEvent::SessionStart => {
            write_down(draft, records);
            words.into_iter().for_each(|text| note(draft, text));
        }
        LifecycleEvent::SessionEnd { .. } | LifecycleEvent::Notification { .. } => write_down(draft, records),
        LifecycleEvent::Prompt(input) => {
            write_down(draft, records);
            if objection.is_some() {
                let reason = objection;
                draft.emit(InputCancelled { input, reason });
            } else {
                draft.volatile().screened.insert(input, words);
            }
        }
        LifecycleEvent::Stop { turn, rounds, .. } => {
            write_stop(draft, records, (turn, rounds, objection));
        }
        LifecycleEvent::Compaction { call, attempt, .. } => {
            write_down(draft, records);
            overflow::vetted(draft, (call, attempt), objection);
        }
    }
}

fn write_stop(
    draft: &mut Draft<'_, '_>,
    mut records: Vec<HookFinished>,
    (turn, rounds, objection): (TurnId, u32, Option<String>),
) {
    let may = rounds < draft.config().stop_rounds && limits::has_room(draft.durable(), draft.now());
    if !may {
        for record in &mut records {
            // A decision that has no effect is not recorded as if it had one.
            if record.decision.take() == Some(VerdictKind::Deny) {
                let why = record.reason.take().unwrap_or_default();
                record.reason = Some(format!("not followed, the turn may not go on any more: {why}"));
            }
        }
    }
    write_down(draft, records);
    match objection.filter(|_| may) {
        Some(why) => note(draft, format!("The turn does not end yet. {why}")),
        None => draft.volatile().may_stop = Some(turn),
    }
}

fn write_down(draft: &mut Draft<'_, '_>, records: Vec<HookFinished>) {
    for record in records {
        draft.emit(record);
    }
}

fn note(draft: &mut Draft<'_, '_>, text: String) {
    draft.emit(NoteInjected {
        kind: NoteKind::HookContext,
        text,
    });
}

/// Notifies hooks of what happened in this step.
pub(crate) fn announce(draft: &mut Draft<'_, '_>) {
    if !hears(draft, HookEvent::Notification) && !hears(draft, HookEvent::SessionEnd) {
        return;
    }
    let happened = draft.happened().iter();
    let topics: Vec<LifecycleEvent> = happened.filter_map(|event| topic_of(&event.body)).collect();
    for topic in topics {
        if !hears(draft, topic.event()) {
            continue;
        }
        let notices = draft.seen().questions.events();
        let on_their_way = notices.filter(|topic| !topic.holds_up()).count();
        if on_their_way < MOST_NOTICES {
            ask(draft, topic);
        } else {
            let code = "notification_dropped".to_owned();
            let message = format!("{MOST_NOTICES} notifications wait for their hooks: {topic:?}");
            draft.emit(WarningRaised { code, message });
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "hooks are told of few events")]
fn topic_of(body: &EventBody) -> Option<LifecycleEvent> {
    match body {
        EventBody::SessionClosed(closed) => Some(LifecycleEvent::SessionEnd {
            reason: closed.reason.clone(),
        }),
        EventBody::ApprovalAsked(asked) => Some(of_question(asked)),
        EventBody::TurnFinished(finished) => Some(of_end(finished)),
        _ => None,
    }
}

fn of_question(asked: &ApprovalAsked) -> LifecycleEvent {
    LifecycleEvent::Notification {
        notice: Notice::Approval,
        message: asked.title.clone(),
        approval: Some(asked.approval),
    }
}

fn of_end(finished: &TurnFinished) -> LifecycleEvent {
    let error = finished.error.as_ref().map(|error| error.message.clone());
    let (notice, message) = if failed(finished.reason) {
        (Notice::Failed, error)
    } else {
        (Notice::Idle, None)
    };
    LifecycleEvent::Notification {
        notice,
        message: message.unwrap_or_else(|| "waits for input".to_owned()),
        approval: None,
    }
}

/// Drops requests without a cause: their subject is over, or the daemon drains and the next incarnation asks again.
pub(crate) fn reconcile(draft: &mut Draft<'_, '_>) {
    let events = draft.seen().questions.events();
    let causeless: Vec<LifecycleEvent> = events.filter(|event| !has_cause(draft, event)).cloned().collect();
    if !causeless.is_empty() {
        questions::withdraw(
            draft,
            |subject| matches!(subject, Subject::Hooks(event) if causeless.contains(event)),
        );
    }
    for event in causeless {
        if let LifecycleEvent::Compaction { call, attempt, .. } = event
            // A different attempt may have requested a compaction in the meantime.
            && overflow::is_vetted(draft.seen().shrinking, (call, attempt))
        {
            draft.volatile().shrinking = None;
        }
    }
    let gone: Vec<InputId> = draft
        .seen()
        .screened
        .keys()
        .filter(|input| draft.durable().waiting(**input).is_none())
        .copied()
        .collect();
    for input in gone {
        draft.volatile().screened.remove(&input);
    }
}

fn has_cause(draft: &Draft<'_, '_>, topic: &LifecycleEvent) -> bool {
    if topic.holds_up() && (draft.seen().draining || draft.durable().closed.is_some()) {
        return false;
    }
    match topic {
        LifecycleEvent::SessionStart
        | LifecycleEvent::SessionEnd { .. }
        | LifecycleEvent::Notification { .. } => true,
        LifecycleEvent::Prompt(input) => draft.durable().waiting(*input).is_some(),
        LifecycleEvent::Stop { turn, .. } => draft.turn().is_some_and(|running| {
            running.id == *turn && matches!(running.phase, crate::Phase::Answered { .. })
        }),
        LifecycleEvent::Compaction { call, attempt, .. } => {
            overflow::is_vetted(draft.seen().shrinking, (*call, *attempt))
        }
    }
}
