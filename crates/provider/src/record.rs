//! Recording: turns real answers into a script that the scripted dialect can play.

use crate::error::ProviderError;
use crate::reply::ModelReply;
use crate::script::{Script, ScriptedCall, ScriptedConversation, ScriptedTurn, words};
use agentd_protocol::{Block, Message, Role, StopReason};
use serde_json::Value;
use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest script file.
const LONGEST: u64 = 16 << 20;
/// The longest prefix of a first input that identifies its conversation.
const WHEN: usize = 4 << 10;

/// Serialises writes: recording reads, extends and rewrites a whole file.
static WRITING: Mutex<()> = Mutex::new(());

/// Adds an answer to the script in a file, under the conversation's first input, with secrets cut out (I8). The file is
/// replaced atomically, so a reader sees either the old or the new script. This blocks on the disk.
///
/// # Errors
/// When the file cannot be read or written, is not a script, or would exceed 16 MiB; it then stays unchanged.
pub fn record(path: &Path, messages: &[Arc<Message>], reply: &ModelReply) -> Result<(), ProviderError> {
    let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let wrong = |reason: String| ProviderError::Script {
        name: path.display().to_string(),
        reason,
    };
    let mut script = read(path)?;
    add(&mut script, messages, reply);
    let text = toml::to_string(&script).map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("it would be longer than {LONGEST} bytes")));
    }
    write(path, &text).map_err(|error| wrong(format!("cannot write it: {error}")))
}

/// Reads a script; a missing file is an empty script.
fn read(path: &Path) -> Result<Script, ProviderError> {
    let name = path.display().to_string();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    match read {
        Ok(_) => Script::parse(&name, &text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Script::default()),
        Err(error) => Err(ProviderError::Script {
            name,
            reason: format!("cannot read it: {error}"),
        }),
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    // Conversations are private.
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| rename(&beside, path));
    if written.is_err() {
        let _ = remove_file(&beside);
    }
    written
}

/// Adds an answer at the position where it will be played: after the turns of the answers before it.
fn add(script: &mut Script, messages: &[Arc<Message>], reply: &ModelReply) {
    let opening = messages.first().map(|message| words(message)).unwrap_or_default();
    let turns = turns_of(script, when(&opening));
    let before: Vec<&Arc<Message>> = messages
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .collect();
    // Answers from before the recording, or dropped from it, are taken from the conversation.
    for message in before.iter().skip(turns.len()) {
        turns.push(turn(&message.content));
    }
    // A repeated step replaces what followed.
    turns.truncate(before.len());
    let said = turn(&reply.content);
    let plain = if said.calls.is_empty() {
        StopReason::EndTurn
    } else {
        StopReason::ToolUse
    };
    turns.push(ScriptedTurn {
        usage: Some(reply.usage),
        stop_reason: Some(reply.stop_reason).filter(|reason| *reason != plain),
        ..said
    });
}

/// The part of a first input that identifies its conversation.
fn when(opening: &str) -> String {
    let redacted = agentd_text::redact(opening);
    let end = redacted.floor_char_boundary(WHEN);
    redacted.get(..end).unwrap_or_default().to_owned()
}

/// The turns of the conversation with this name; an empty name selects the default turns.
fn turns_of(script: &mut Script, when: String) -> &mut Vec<ScriptedTurn> {
    if when.is_empty() {
        return &mut script.turns;
    }
    let all = &mut script.conversations;
    let at = all.iter().position(|one| one.when == when).unwrap_or_else(|| {
        all.push(ScriptedConversation {
            when,
            ..ScriptedConversation::default()
        });
        all.len() - 1
    });
    match all.get_mut(at) {
        Some(own) => &mut own.turns,
        None => &mut script.turns,
    }
}

fn turn(content: &[Block]) -> ScriptedTurn {
    let mut turn = ScriptedTurn::default();
    for block in content {
        match block {
            Block::Text { text } => turn.text.push_str(&agentd_text::redact(text)),
            Block::Thinking { text, .. } => turn.thinking.push_str(&agentd_text::redact(text)),
            Block::ToolUse { name, input, .. } => turn.calls.push(ScriptedCall {
                name: name.clone(),
                input: redacted(input),
            }),
            Block::Image { .. } | Block::ToolResult { .. } | Block::Unknown => {}
        }
    }
    turn.verbatim = turn.text.contains("{{");
    turn
}

/// The arguments of a call, with secrets redacted.
fn redacted(input: &Value) -> Value {
    match input {
        Value::String(text) => Value::String(agentd_text::redact(text).into_owned()),
        Value::Array(items) => items.iter().map(redacted).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), redacted(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => input.clone(),
    }
}

#[cfg(test)]
mod tests;
