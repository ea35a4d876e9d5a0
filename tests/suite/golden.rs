//! Logs that daemons of earlier builds wrote, in `tests/golden/logs`: every build folds them to the same state, sends the same
//! bytes to a model, shows the same row. A snapshot that differs is a log that means something else to its owner after an
//! upgrade: fix the build, not the snapshot. `just golden TEST` adds the log of an end-to-end test.
#![expect(
    clippy::indexing_slicing,
    reason = "these are tests; the lints' own exception for tests does not reach their support functions"
)]

use agentd_protocol::{Block, Event, EventBody, Timestamp};
use agentd_provider::{
    Dialect, EncodedHistory, ModelSpec, Params, Prompt, RequestBody, Script, encode_prefix, encode_suffix,
};
use agentd_store::{Blob, EncodedEvent};
use agentd_transcript::{Rewinds, Transcript};
use agentd_turn::{Agent, Config};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Kinds that no log here has, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("session.moved", "one node owns every session as yet"),
    (
        "session.imported",
        "folds to nothing by its type; crates/transcript and suite/redteam/import test it",
    ),
    ("imported.event", "as session.imported"),
    (
        "context.trimmed",
        "its log has 270 KB; crates/transcript tests it",
    ),
    ("context.pruned", "its log is as long; crates/transcript tests it"),
    (
        "context.truncated",
        "its log has 690 KB; crates/transcript tests it",
    ),
    (
        "rule.removed",
        "no build writes it as yet; crates/permission-gate reads it",
    ),
];

const DIALECTS: [Dialect; 6] = [
    Dialect::Anthropic,
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
    Dialect::Gemini,
    Dialect::Ollama,
    Dialect::LlamaCompletion,
];

fn logs() -> BTreeMap<String, Vec<String>> {
    let found = files("golden/logs");
    assert!(found.len() >= 12, "the logs are there");
    found
}

/// The stream of rules belongs to no session, so it has no state here: `crates/permission-gate` judges by it.
fn streams() -> BTreeMap<String, Vec<String>> {
    files("golden/streams")
}

fn files(directory: &str) -> BTreeMap<String, Vec<String>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        found.insert(name, text.lines().map(str::to_owned).collect());
    }
    found
}

fn events(lines: &[String]) -> Vec<Event> {
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The conversation as a loop makes it when it loads the session.
fn conversation(events: &[Event]) -> Transcript {
    let mut rewinds = Rewinds::default();
    events.iter().for_each(|event| rewinds.note(event));
    let mut transcript = Transcript::new();
    let parts = match rewinds.is_empty() {
        true => vec![(0, events.len() as u64)],
        false => rewinds.parts(events.len() as u64),
    };
    for (number, (after, upto)) in parts.into_iter().enumerate() {
        if number > 0 {
            transcript.went_back();
        }
        let part = events
            .iter()
            .filter(|event| event.seq > after && event.seq <= upto);
        part.for_each(|event| transcript.apply(event));
    }
    transcript
}

fn request(transcript: &Transcript, dialect: Dialect) -> Bytes {
    let spec = ModelSpec {
        dialect,
        ..ModelSpec::scripted("golden", Arc::new(Script::default()))
    };
    let mut history = EncodedHistory::new();
    history.extend(&spec, transcript.generation(), transcript.messages());
    let prefix = encode_prefix(&spec, &Prompt::of("system"), &[], &Params::default());
    let suffix = encode_suffix(&spec, &[], &Params::default());
    RequestBody::new(prefix, &history, suffix).to_bytes()
}

fn outline(block: &Block) -> String {
    match block {
        Block::Text { text } => format!("text {}", text.len()),
        Block::Thinking { text, .. } => format!("thinking {}", text.len()),
        Block::ToolUse { name, .. } => format!("tool_use {name}"),
        Block::ToolResult {
            content, is_error, ..
        } => format!("tool_result {} error={is_error}", content.len()),
        Block::Image { media_type, .. } => format!("image {media_type}"),
        Block::Unknown => "unknown".to_owned(),
    }
}

/// Everything that a build makes of a log.
fn state(lines: &[String]) -> String {
    let events = events(lines);
    let agent = Agent::fold(events[0].session, Arc::new(Config::default()), &events).unwrap();
    let transcript = conversation(&events);
    let mut durable = serde_json::to_value(agent.durable()).unwrap();
    // The prompt's sources and the specs are long; their digest tells as much.
    if let Some(settings) = durable.get_mut("settings") {
        let text = settings.to_string();
        *settings = json!({ "title": settings["title"], "sha256": Blob::new(text.into()).name() });
    }
    let messages: Vec<Value> = transcript
        .messages()
        .iter()
        .map(|message| {
            let blocks: Vec<String> = message.content.iter().map(outline).collect();
            json!(format!("{:?}: {}", message.role, blocks.join(", ")))
        })
        .collect();
    let requests: BTreeMap<String, String> = DIALECTS
        .iter()
        .map(|dialect| {
            let bytes = request(&transcript, *dialect);
            (
                format!("{dialect:?}"),
                format!("{} bytes, {}", bytes.len(), Blob::new(bytes).name()),
            )
        })
        .collect();
    let now = events.last().map_or(Timestamp(0), |event| event.at);
    let made = json!({
        "events": events.len(),
        "durable": durable,
        "row": agent.summary(now),
        "tokens": transcript.estimate_tokens(),
        "messages": messages,
        "requests": requests,
    });
    serde_json::to_string_pretty(&made).unwrap()
}

#[test]
fn i2_every_build_folds_the_golden_logs_to_the_same_state() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../golden/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, lines) in logs() {
        settings.bind(|| insta::assert_snapshot!(name, state(&lines)));
    }
}

#[test]
fn i2_a_golden_line_is_written_again_as_it_was() {
    for (name, lines) in logs().into_iter().chain(streams()) {
        for line in &lines {
            let event = EncodedEvent::decode(line.as_bytes()).unwrap();
            let again = EncodedEvent::encode(&event).unwrap();
            assert_eq!(String::from_utf8_lossy(&again.body), *line, "{name}");
        }
    }
}

#[test]
fn i3_every_call_of_a_golden_log_is_answered_in_the_request_that_follows() {
    for (name, lines) in logs() {
        let events = events(&lines);
        for (index, event) in events.iter().enumerate() {
            if !matches!(event.body, EventBody::ModelStarted(_)) {
                continue;
            }
            let transcript = conversation(&events[..=index]);
            let held = agentd_turn::sound_request(transcript.messages());
            held.unwrap_or_else(|why| panic!("{name}, request of {}: {why}", event.seq));
        }
    }
}

#[test]
fn every_kind_of_event_is_in_a_golden_log_or_has_a_reason() {
    let text = include_str!("../../crates/protocol/src/event_body.rs");
    let renamed = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#[serde(rename = \""));
    let kinds: BTreeSet<&str> = renamed.filter_map(|rest| rest.split('"').next()).collect();
    assert!(kinds.len() > 40);
    let mut seen = BTreeSet::new();
    for lines in logs().into_values().chain(streams().into_values()) {
        seen.extend(events(&lines).iter().map(|event| event.body.kind()));
    }
    let excused: BTreeSet<&str> = WITHOUT.iter().map(|(kind, _)| *kind).collect();
    let missing: Vec<_> = kinds
        .iter()
        .filter(|kind| !seen.contains(*kind) && !excused.contains(*kind))
        .collect();
    assert!(
        missing.is_empty(),
        "in no golden log: {missing:?}; see `just golden`"
    );
    let stale: Vec<_> = excused
        .iter()
        .filter(|kind| seen.contains(*kind) || !kinds.contains(*kind))
        .collect();
    assert!(
        stale.is_empty(),
        "excused, but there, or no kind any more: {stale:?}"
    );
}
