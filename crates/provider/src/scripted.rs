//! The scripted dialect: plays a script as if a server streamed it.

use crate::call::{Request, Sink};
use crate::error::ModelError;
use crate::reply::{ModelEvent, ModelReply};
use crate::script::{Script, ScriptedTurn, words};
use agentd_protocol::{Block, FailureClass, Latency, Message, Reading, Role, StopReason, Usage};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The size of a streamed piece, in characters.
const PIECE: usize = 24;
/// The longest tool result that a text quotes, in characters.
const QUOTED: usize = 2_000;

pub(crate) async fn call<S: Sink>(
    request: &Request<'_>,
    sink: &mut S,
) -> Result<(ModelReply, Latency), ModelError> {
    let started = Instant::now();
    let no_script = || ModelError::new(FailureClass::InvalidRequest, "the scripted model has no script");
    let script: &Script = request.spec.script.as_deref().ok_or_else(no_script)?;
    let turn = script.next(request.messages);
    fail(&turn, request.attempt)?;
    let pause = Duration::from_millis(turn.delay_ms);
    let reply = answer(turn, request);
    let mut first_ms = None;
    for event in pieces(&reply.content) {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        first_ms.get_or_insert_with(|| elapsed_ms(started));
        sink.send(event).await;
    }
    let total_ms = elapsed_ms(started);
    Ok((
        reply,
        Latency {
            first_ms: first_ms.unwrap_or(total_ms),
            total_ms,
        },
    ))
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn fail(turn: &ScriptedTurn, attempt: u32) -> Result<(), ModelError> {
    match &turn.fail {
        Some(failure) if attempt <= failure.attempts => Err(ModelError {
            retry_after_ms: failure.retry_after_ms,
            ..ModelError::new(failure.class, failure.message.clone())
        }),
        Some(_) | None => Ok(()),
    }
}

fn answer(turn: ScriptedTurn, request: &Request<'_>) -> ModelReply {
    let text = if turn.verbatim {
        turn.text
    } else {
        fill(&turn.text, request.messages)
    };
    let output = (text.len() + turn.thinking.len()).div_ceil(4) as u64;
    let step = request.messages.len();
    let mut content = Vec::new();
    if !turn.thinking.is_empty() {
        content.push(Block::Thinking {
            text: turn.thinking,
            raw: None,
        });
    }
    if !text.is_empty() {
        content.push(Block::Text { text });
    }
    let calls = turn.calls.into_iter().zip(1..);
    content.extend(calls.map(|(call, number): (_, u32)| Block::ToolUse {
        id: format!("scripted_{step}_{number}"),
        name: call.name,
        input: call.input,
    }));
    let calls_tools = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    let usage = turn.usage.unwrap_or(Usage {
        output,
        ..Usage::default()
    });
    ModelReply {
        content,
        stop_reason: turn.stop_reason.unwrap_or(if calls_tools {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        }),
        usage,
        cost_usd: request.spec.cost(&usage),
        model: request.spec.model.clone(),
        request_id: None,
        reading: Reading::default(),
    }
}

fn fill(text: &str, messages: &[Arc<Message>]) -> String {
    if !text.contains("{{") {
        return text.to_owned();
    }
    let users = || messages.iter().rev().filter(|message| message.role == Role::User);
    let result = |block: &Block| match block {
        Block::ToolResult { content, .. } => Some(content.clone()),
        Block::Text { .. }
        | Block::Image { .. }
        | Block::Thinking { .. }
        | Block::ToolUse { .. }
        | Block::Unknown => None,
    };
    let last_result = users()
        .find_map(|message| message.content.iter().rev().find_map(result))
        .unwrap_or_default();
    let last_input = users()
        .map(|message| words(message))
        .find(|text| !text.is_empty())
        .unwrap_or_default();
    let quoted = |text: String| text.trim().chars().take(QUOTED).collect::<String>();
    text.replace("{{last_result}}", &quoted(last_result))
        .replace("{{last_input}}", &quoted(last_input))
}

fn pieces(content: &[Block]) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    for (block, part) in (0..).zip(content) {
        match part {
            Block::Text { text } => {
                events.extend(cut(text).map(|text| ModelEvent::TextDelta { block, text }));
            }
            Block::Thinking { text, .. } => {
                events.extend(cut(text).map(|text| ModelEvent::ThinkingDelta { block, text }));
            }
            Block::ToolUse { name, input, .. } => {
                events.push(ModelEvent::ToolStart {
                    block,
                    name: name.clone(),
                });
                events.push(ModelEvent::ToolInputDelta {
                    block,
                    text: input.to_string(),
                });
            }
            Block::Image { .. } | Block::ToolResult { .. } | Block::Unknown => {}
        }
    }
    events
}

fn cut(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(PIECE)
        .map(|piece| piece.iter().collect())
        .collect::<Vec<String>>()
        .into_iter()
}

#[cfg(test)]
mod tests;
