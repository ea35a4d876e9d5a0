//! Commands of principals: each is checked, answered and recorded as facts.

use crate::Phase;
use crate::draft::Draft;
use crate::durable::shown_settings::ShownSettings;
use crate::effect::Reply;
use crate::input::{Command, NewInput, Transfer};
use crate::{
    calls::{approvals, jobs},
    context, history, inbox, side,
    steps::{ending, limits},
    tree::{completion_report, delegate, following},
    words,
};
use agentd_protocol::{
    Block, Delivery, EndReason, Fault, Principal, SessionCreated, SessionMoved, SessionPaused,
    SessionResumed, SessionUpdated, TurnId,
};

/// The fault code of an update that rests on settings that the session no longer has.
pub const SETTINGS_CHANGED: &str = "settings_changed";

const DONE: Reply = Reply::Done { seq: 0 };

/// Executes a command and answers it.
pub(crate) fn obey(draft: &mut Draft<'_, '_>, command: Command, by: Principal) {
    draft.called_by(by);
    let reply = match accessible(draft, &command) {
        Ok(()) => carry_out(draft, command),
        Err(fault) => Err(fault),
    };
    draft.reply(reply);
}

fn accessible(draft: &Draft<'_, '_>, command: &Command) -> Result<(), Fault> {
    let durable = draft.durable();
    match (
        matches!(command, Command::Create { .. }),
        durable.settings.is_some(),
    ) {
        (true, true) => return Err(Fault::conflict("session_exists", "the session exists already")),
        (false, false) => {
            return Err(Fault::not_found(
                "unknown_session",
                "the session was not created yet",
            ));
        }
        (true, false) | (false, true) => {}
    }
    let of_family = matches!(
        command,
        Command::ChildEnded { .. } | Command::Tell | Command::Follow
    );
    // A person takes the work of a closed session, too.
    let transfers = matches!(command, Command::Transfer(_));
    match &durable.closed {
        Some(closed) if !of_family && !transfers => Err(Fault::conflict(
            "session_closed",
            format!("the session is closed: {}", closed.reason),
        )),
        Some(_) | None => Ok(()),
    }
}

fn carry_out(draft: &mut Draft<'_, '_>, command: Command) -> Result<Reply, Fault> {
    match command {
        Command::Create { created, first } => create(draft, *created, first),
        Command::Send(new) => inbox::send(draft, new),
        Command::CancelInput(input) => inbox::cancel(draft, input),
        Command::CancelTurn { expect, reason, jobs } => cancel_turn(draft, expect, reason.as_deref(), jobs),
        Command::Decide {
            approval,
            decision,
            scope,
            answer,
            message,
            basis,
        } => approvals::decide(
            draft,
            approvals::ApprovalAnswer {
                approval,
                decision,
                scope,
                answer,
                message,
                basis,
            },
        ),
        Command::Pause { reason } => Ok(pause(draft, reason)),
        Command::Resume { reason, moved } => resume(draft, reason, moved),
        Command::Rework(rework) => history::begin(draft, *rework),
        Command::Compact => context::wish(draft).map(|()| DONE),
        Command::Summarize => side::summarize(draft).map(|()| DONE),
        Command::Transfer(step) => Ok(transfer(draft, step)),
        Command::ChildEnded { child, ended } => delegate::ended(draft, child, &ended),
        Command::Tell => completion_report::asked(draft),
        Command::Follow => {
            following::look(draft);
            Ok(DONE)
        }
        Command::Close { reason, force } => inbox::close(draft, reason, force),
        Command::Update {
            expect,
            title,
            model,
            mode,
            labels,
            budget,
        } => update(
            draft,
            expect.as_deref(),
            SessionUpdated {
                title,
                model,
                mode,
                labels,
                budget,
                summary: None,
            },
        ),
    }
}

fn transfer(draft: &mut Draft<'_, '_>, step: Transfer) -> Reply {
    match step {
        Transfer::Started(started) => draft.emit_by_caller(started),
        Transfer::Finished(finished) => draft.emit_by_caller(finished),
    }
    DONE
}

fn pause(draft: &mut Draft<'_, '_>, reason: String) -> Reply {
    if draft.durable().paused.is_none() {
        draft.emit_by_caller(SessionPaused { reason });
    }
    DONE
}

fn resume(
    draft: &mut Draft<'_, '_>,
    reason: String,
    moved: Option<Box<SessionMoved>>,
) -> Result<Reply, Fault> {
    let moves = moved.is_some();
    if let Some(moved) = moved {
        relocate(draft, *moved)?;
    }
    if draft.durable().paused_with_parent {
        // It may have missed the end of the pause.
        following::look(draft);
        if moves {
            return Ok(DONE);
        }
        let message = "it is paused because the session that it works for is";
        return Err(
            Fault::conflict("paused_with_parent", message).hint("resume that one; this one goes on with it")
        );
    }
    let (paused, parked) = (draft.durable().paused.is_some(), draft.durable().parked());
    if paused || parked {
        draft.emit_by_caller(SessionResumed { reason });
        draft.volatile().insists = parked && !paused;
    }
    Ok(DONE)
}

/// Moves the session to another directory. An open call, or one that waits for an approval, is meant for the earlier one.
fn relocate(draft: &mut Draft<'_, '_>, moved: SessionMoved) -> Result<(), Fault> {
    let durable = draft.durable();
    let now = durable.settings.as_ref().map(|settings| &settings.workdir);
    if moved.workdir.is_none() || now == moved.workdir.as_ref() {
        return Ok(());
    }
    let model = matches!(
        durable.turn.as_ref().map(|turn| &turn.phase),
        Some(Phase::Streaming(_))
    );
    let tool = durable
        .open_calls()
        .any(|call| !delegate::is_child(durable, call));
    if model || tool || !durable.jobs.is_empty() || durable.history.is_some() {
        let message = "a call of the session is open, and it is meant for the present working directory";
        return Err(Fault::conflict("call_running", message).hint(
            "wait until it has ended, or cancel the turn: agentctl cancel, or agentctl kill for jobs",
        ));
    }
    draft.volatile().lost_workspace = None;
    draft.emit_by_caller(moved);
    Ok(())
}

fn create(
    draft: &mut Draft<'_, '_>,
    created: SessionCreated,
    first: Option<NewInput>,
) -> Result<Reply, Fault> {
    first.as_ref().map_or(Ok(()), inbox::check)?;
    draft.emit_by_caller(created);
    let input = first.map(|first| inbox::accept(draft, first, Delivery::Start).0);
    Ok(Reply::Created { input, seq: 0 })
}

fn cancel_turn(
    draft: &mut Draft<'_, '_>,
    expect: Option<TurnId>,
    reason: Option<&str>,
    jobs: bool,
) -> Result<Reply, Fault> {
    let background = !draft.durable().jobs.is_empty();
    match (draft.turn().map(|turn| turn.id), expect) {
        (Some(running), Some(expected)) if expected != running => {
            let message = format!("another turn runs by now: {}", running.short());
            return Err(Fault::conflict("other_turn", message));
        }
        (Some(_), _) => ending::cancel(draft, reason.map(str::to_owned)),
        (None, None) if jobs && background => {}
        (None, _) => {
            let fault = Fault::conflict("no_turn", "no turn runs in this session");
            let hint = "background jobs run; `agentctl kill` ends them";
            return Err(if background { fault.hint(hint) } else { fault });
        }
    }
    if jobs {
        jobs::stop_all(draft, reason.unwrap_or(words::JOBS_KILLED));
    }
    Ok(DONE)
}

/// The fault of an update that expects settings that the session does not have any more.
#[must_use]
pub fn settings_changed() -> Fault {
    let message = "the session has other settings than those that the update expects";
    Fault::conflict(SETTINGS_CHANGED, message)
        .hint("read the session again, and send the change with its new tag if you still want it")
}

fn update(
    draft: &mut Draft<'_, '_>,
    expect: Option<&ShownSettings>,
    updated: SessionUpdated,
) -> Result<Reply, Fault> {
    if expect.is_some_and(|expected| !expected.hold(draft.durable())) {
        return Err(settings_changed());
    }
    let SessionUpdated {
        title,
        model,
        mode,
        labels,
        budget,
        summary: _,
    } = &updated;
    if title.is_none() && model.is_none() && mode.is_none() && labels.is_none() && budget.is_none() {
        return Err(Fault::invalid("nothing_to_change", "the update names no setting"));
    }
    if let Some(Err(error)) = model.as_deref().map(draft.scene.models) {
        return Err(Fault::invalid("unusable_model", error.message));
    }
    let budget_changed = budget.is_some();
    draft.emit_by_caller(updated);
    if budget_changed {
        take_up_again(draft);
    }
    Ok(DONE)
}

/// Continues a turn that ended on a used-up budget once the new budget has room. A sub-agent has already reported its
/// end to its parent, which decides what follows.
fn take_up_again(draft: &mut Draft<'_, '_>) {
    let durable = draft.durable();
    let stopped = durable.turn.is_none()
        && durable.lineage().is_none()
        && durable
            .last
            .as_ref()
            .is_some_and(|last| last.reason == EndReason::Budget);
    if stopped && !limits::used_up(durable, draft.now()) && inbox::starts_next(durable).is_empty() {
        let new = NewInput {
            content: vec![Block::text(words::BUDGET_RAISED)],
            delivery: None,
            key: None,
            model: None,
        };
        inbox::accept(draft, new, Delivery::Start);
    }
}
