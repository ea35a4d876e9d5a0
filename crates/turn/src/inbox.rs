//! Inputs: accepted, withdrawn, joining the next model call, starting the next turn. No accepted input is ever lost.

use crate::draft::Draft;
use crate::durable::{Durable, Waiting};
use crate::effect::Reply;
use crate::input::NewInput;
use crate::{attempts::unseen, calls::jobs, context, history, lifecycle, planning, side, steps::ending};
use agentd_protocol::{
    Block, Delivery, Fault, InputAccepted, InputCancelled, InputId, Seq, SessionClosed, TurnStarted,
};

/// The most inputs that may wait in total, including those whose turn ended before they could join.
const MAX_HELD: usize = 256;

/// Accepts an input.
pub(crate) fn send(draft: &mut Draft<'_, '_>, new: NewInput) -> Result<Reply, Fault> {
    check(&new)?;
    let turn_runs = draft.turn().is_some();
    let delivery = match (new.delivery, turn_runs) {
        (Some(Delivery::Steer), false) => {
            return Err(
                Fault::conflict("no_turn", "no turn is running, so there is nothing to steer")
                    .hint("send it without `--steer`; it starts a turn then"),
            );
        }
        (None | Some(Delivery::Start), true) | (Some(Delivery::Steer), _) => Delivery::Steer,
        (None | Some(Delivery::Start), false) => Delivery::Start,
        (Some(delivery @ (Delivery::Queue | Delivery::Collect | Delivery::Interrupt)), _) => delivery,
    };
    check_room(draft)?;
    let (input, seq) = accept(draft, new, delivery);
    if delivery == Delivery::Interrupt && turn_runs {
        ending::cancel(draft, None);
    }
    Ok(Reply::Sent { input, seq })
}

/// Refuses an empty input.
pub(crate) fn check(new: &NewInput) -> Result<(), Fault> {
    let says_something = |block: &Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Image { .. } => true,
        Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Unknown => false,
    };
    if new.content.iter().any(says_something) {
        Ok(())
    } else {
        Err(Fault::invalid("empty_input", "the input is empty").hint("give it some text"))
    }
}

/// Records an input, and that its model will not see its images.
pub(crate) fn accept(draft: &mut Draft<'_, '_>, new: NewInput, delivery: Delivery) -> (InputId, Seq) {
    let input = draft.stamp().input();
    let NewInput {
        content, key, model, ..
    } = new;
    let unseen = unseen::of_input(draft, model.as_deref(), &content);
    draft.emit_by_caller(InputAccepted {
        input,
        key,
        delivery,
        content,
        model,
        agent: None,
    });
    let seq = draft.durable().head;
    if let Some(warning) = unseen {
        draft.emit(warning);
    }
    (input, seq)
}

fn check_room(draft: &Draft<'_, '_>) -> Result<(), Fault> {
    let inbox = &draft.durable().inbox;
    let waiting = inbox.iter().filter(|waiting| !waiting.taken).count();
    if waiting >= draft.config().max_queue || inbox.len() >= MAX_HELD {
        let message = format!("{} inputs wait already", inbox.len());
        return Err(
            Fault::busy("queue_full", message).hint("wait for the turn to go on, or cancel some of them")
        );
    }
    Ok(())
}

/// Withdraws an input that has not joined.
pub(crate) fn cancel(draft: &mut Draft<'_, '_>, input: InputId) -> Result<Reply, Fault> {
    if draft.durable().waiting(input).is_some() {
        draft.emit_by_caller(InputCancelled { input, reason: None });
        Ok(Reply::Done { seq: 0 })
    } else if draft.durable().gone.contains(&input) {
        let message = format!(
            "input {} joined the conversation or was cancelled before",
            input.short()
        );
        Err(Fault::conflict("input_joined", message))
    } else {
        Err(Fault::not_found(
            "unknown_input",
            format!("this session has no waiting input {}", input.short()),
        ))
    }
}

/// Closes the session to new inputs and cancels those that are waiting.
pub(crate) fn close(draft: &mut Draft<'_, '_>, reason: String, force: bool) -> Result<Reply, Fault> {
    history::none_open(draft)?;
    if draft.turn().is_some() {
        if !force {
            return Err(Fault::conflict("turn_running", "a turn runs in this session")
                .hint("cancel it first, or close with force"));
        }
        ending::cancel(draft, Some(reason.clone()));
    }
    let waiting: Vec<InputId> = draft
        .durable()
        .inbox
        .iter()
        .map(|waiting| waiting.queued.input)
        .collect();
    for input in waiting {
        draft.emit_by_caller(InputCancelled { input, reason: None });
    }
    context::stop(draft, "the session was closed");
    side::stop_all(draft);
    jobs::stop_all(draft, "the session was closed");
    draft.emit_by_caller(SessionClosed { reason });
    Ok(Reply::Done { seq: 0 })
}

/// The inputs that join the running turn's next model call: those that it started with, and steers.
pub(crate) fn joins_next(draft: &Draft<'_, '_>) -> Vec<InputId> {
    let inbox = draft.durable().inbox.iter();
    let joining = inbox.filter(|waiting| {
        let wanted = || !is_queued(waiting) && lifecycle::lets_in(draft, waiting.queued.input);
        waiting.taken || wanted()
    });
    joining.map(|waiting| waiting.queued.input).collect()
}

/// The inputs that start the next turn: all that are wanted now, else the first in the queue. Inputs that are collected
/// join the one before them, if that one is collected, too: their order never changes.
pub(crate) fn starts_next(durable: &Durable) -> Vec<InputId> {
    let fresh = || durable.inbox.iter().filter(|waiting| !waiting.taken);
    let urgent: Vec<InputId> = fresh()
        .filter(|waiting| !is_queued(waiting))
        .map(|waiting| waiting.queued.input)
        .collect();
    if !urgent.is_empty() {
        return urgent;
    }
    let collected = fresh().take_while(|waiting| waiting.queued.delivery == Delivery::Collect);
    let first = fresh().take(collected.count().max(1));
    first.map(|waiting| waiting.queued.input).collect()
}

/// Starts the next turn if inputs wait for it and nothing holds the session. True when it started.
pub(crate) fn begin_turn(draft: &mut Draft<'_, '_>) -> bool {
    if draft.held() || draft.durable().closed.is_some() || draft.durable().history.is_some() {
        return false;
    }
    let inputs = starts_next(draft.durable());
    let free = lifecycle::lets_begin(draft) && inputs.iter().all(|input| lifecycle::lets_in(draft, *input));
    if inputs.is_empty() || !free {
        return false;
    }
    let turn = draft.stamp().turn();
    let words = planning::words_of(draft, &inputs);
    draft.emit_in(turn, TurnStarted { inputs });
    planning::classify(draft, &words);
    true
}

fn is_queued(waiting: &Waiting) -> bool {
    matches!(waiting.queued.delivery, Delivery::Queue | Delivery::Collect)
}
