//! Decodes recorded streams of real providers. They are not part of the repository: `AGENTD_FIXTURES` names the
//! directory that has `model-streams/cassettes/PROVIDER/…/*.yaml`.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its input must fail")]

use agentd_protocol::{Block, StopReason};
use agentd_provider::{Decoder, Dialect, ModelError, ModelReply, ModelSpec, Script, classify};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Deserialize)]
struct Exchange {
    when: When,
    then: Then,
}

#[derive(Deserialize)]
struct When {
    path: String,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
struct Then {
    status: u16,
    #[serde(default)]
    body: String,
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
}

fn exchanges(path: &Path) -> Vec<Exchange> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_norway::Deserializer::from_str(&text)
        .filter_map(|document| Exchange::deserialize(document).ok())
        .collect()
}

fn dialect(exchange: &Exchange) -> Option<Dialect> {
    let path = exchange.when.path.as_str();
    if path.ends_with("/messages") {
        Some(Dialect::Anthropic)
    } else if path.ends_with("/chat/completions") {
        Some(Dialect::OpenaiChat)
    } else {
        None
    }
}

fn decode(dialect: Dialect, bytes: &[u8], cut: usize) -> Result<ModelReply, ModelError> {
    let spec = ModelSpec {
        dialect,
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    };
    let mut decoder = Decoder::new(&spec)?;
    let mut events = Vec::new();
    for chunk in bytes.chunks(cut) {
        decoder.feed(chunk, &mut events)?;
    }
    decoder.finish(&mut events)
}

/// An answer must have calls exactly when it stopped for them, with whole arguments, and must have counted tokens.
fn complaint(reply: &ModelReply) -> Option<String> {
    let calls = reply
        .content
        .iter()
        .filter(|block| matches!(block, Block::ToolUse { .. }))
        .count();
    let whole = |block: &Block| match block {
        Block::ToolUse { id, name, input } => !id.is_empty() && !name.is_empty() && input.is_object(),
        _ => true,
    };
    if (calls > 0) != (reply.stop_reason == StopReason::ToolUse) && reply.stop_reason != StopReason::MaxTokens
    {
        return Some(format!(
            "{calls} calls but it stopped for {:?}",
            reply.stop_reason
        ));
    }
    if reply.stop_reason != StopReason::MaxTokens && !reply.content.iter().all(whole) {
        return Some(format!("a call is not whole: {:?}", reply.content));
    }
    (reply.usage.output == 0 && !reply.content.is_empty()).then(|| "no output tokens were counted".to_owned())
}

#[test]
fn recorded_streams_decode_the_same_however_they_are_cut() {
    let Some(fixtures) = std::env::var_os("AGENTD_FIXTURES") else {
        eprintln!("skipped: AGENTD_FIXTURES is not set, so there are no recorded streams to decode");
        return;
    };
    let mut found = Vec::new();
    files(&Path::new(&fixtures).join("model-streams/cassettes"), &mut found);
    let (mut streams, mut errors, mut complaints) = (0, 0, Vec::new());
    for path in found {
        for (number, exchange) in exchanges(&path).iter().enumerate() {
            let Some(dialect) = dialect(exchange) else {
                continue;
            };
            let body = exchange.then.body.as_bytes();
            if exchange.then.status >= 400 {
                errors += 1;
                let error = classify(exchange.then.status, &reqwest::header::HeaderMap::new(), body);
                if error.message == format!("HTTP {}", exchange.then.status) && !body.is_empty() {
                    complaints.push(format!("{} #{number}: the error says nothing", path.display()));
                }
            } else if exchange.when.body.contains("\"stream\":true") {
                streams += 1;
                let whole = decode(dialect, body, usize::MAX);
                let problem = match &whole {
                    Ok(reply) if decode(dialect, body, 5).as_ref() != Ok(reply) => {
                        Some("cutting changes it".to_owned())
                    }
                    Ok(reply) => complaint(reply),
                    Err(error) => Some(format!("{:?}: {error}", error.class)),
                };
                complaints.extend(problem.map(|problem| format!("{} #{number}: {problem}", path.display())));
            }
        }
    }
    eprintln!(
        "{streams} streams and {errors} errors decoded, {} complaints",
        complaints.len()
    );
    assert_eq!(complaints, Vec::<String>::new());
    assert!(streams > 0, "no streams found");
}
