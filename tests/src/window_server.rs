//! A model server with a window that it enforces as llama.cpp does, with its own words; it also refuses what strict chat
//! templates refuse. It reads files, step after step, and writes summaries where it is asked for one.

use crate::fault_server::{Act, Acts, Asked, FaultServer, Say, Speech, http};
use agentd_provider::Dialect;
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Bytes of a request in a token. Not the four that agentd guesses: its guess has to learn.
const BYTES_PER_TOKEN: f64 = 3.3;

/// The plan of the server.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Tokens of its window.
    pub window: u64,
    /// Answers of its plan before it says that it is done.
    pub steps: u64,
    /// The nth of them.
    pub says: fn(u64) -> Say,
    /// It writes summaries; otherwise those calls fail.
    pub summarises: bool,
    /// The response to a request to count.
    pub counting: Counting,
}

/// The response of a server to a request to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// It does not know that address.
    Never,
    /// It counts.
    Exactly,
    /// It answers something else.
    Garbage,
    /// It holds the connection in silence.
    Hangs,
}

/// The requests that the server has seen.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// Steps of the agent that were answered.
    pub steps: u64,
    /// Requests for a summary.
    pub summaries: u64,
    /// Questions outside the conversation: titles, summaries of the session, intents.
    pub beside: Vec<String>,
    /// Requests to count.
    pub counts: u64,
    /// Requests that did not fit into the window, of the agent and for summaries.
    pub overflows: (u64, u64),
    /// Requests that a strict template refuses, and why.
    pub refused: Vec<String>,
    /// Tokens that were added to the conversation, as the server counts.
    pub appended: u64,
    /// The largest request that was answered, in tokens.
    pub largest: u64,
    /// Bodies of the agent's requests; the last of them only, unless all are kept.
    pub bodies: Vec<Bytes>,
    /// The body of the last request for a summary.
    pub retold: Bytes,
    last: u64,
}

/// A running server.
#[derive(Debug)]
pub struct WindowServer {
    server: FaultServer,
    log: Arc<Mutex<Log>>,
}

impl WindowServer {
    /// Starts it. With `keep` it keeps all bodies.
    pub async fn start(plan: Plan, keep: bool) -> Self {
        let log = Arc::new(Mutex::new(Log::default()));
        let seen = Arc::clone(&log);
        let server = FaultServer::start(move |asked| {
            let mut log = seen.lock().expect("nobody panics with it");
            answer(&plan, keep, asked, &mut log)
        })
        .await;
        Self { server, log }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The requests that it has seen so far.
    #[must_use]
    pub fn log(&self) -> Log {
        self.log.lock().expect("nobody panics with it").clone()
    }
}

fn answer(plan: &Plan, keep: bool, asked: &Asked, log: &mut Log) -> Acts {
    if asked.path().ends_with("/input_tokens") && plan.counting != Counting::Never {
        return count(plan, asked, log);
    }
    log.counts += u64::from(asked.path().ends_with("/input_tokens"));
    if !asked.path().ends_with("/chat/completions") {
        return vec![http(
            404,
            &[],
            r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#,
        )];
    }
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    let tokens = tokens(&body);
    if let Some(said) = beside(&body) {
        log.beside.push(body.to_string());
        return counted(&Say::text(said), log.steps, tokens);
    }
    let summary = asks_for_summary(&body);
    if tokens >= plan.window {
        let overflows = &mut log.overflows;
        *(if summary {
            &mut overflows.1
        } else {
            &mut overflows.0
        }) += 1;
        return vec![too_long(tokens, plan.window)];
    }
    if let Some(why) = wrong(&body) {
        log.refused.push(why.clone());
        let error = json!({"error": {"code": 500, "message": why, "type": "server_error"}});
        return vec![http(500, &[], &error.to_string())];
    }
    log.largest = log.largest.max(tokens);
    if summary {
        return summarise(plan, asked, log, tokens);
    }
    if !keep {
        log.bodies.clear();
    }
    log.bodies.push(asked.body.clone());
    log.appended += tokens.saturating_sub(log.last);
    log.last = tokens;
    log.steps += 1;
    let say = if log.steps > plan.steps {
        Say::text("It is all read.")
    } else {
        (plan.says)(log.steps)
    };
    counted(&say, log.steps, tokens)
}

/// Whether the request ends with the question for a summary, be it in the conversation or about it.
fn asks_for_summary(body: &Value) -> bool {
    let messages = body.get("messages").and_then(Value::as_array);
    let last = messages.and_then(|messages| messages.last());
    last.is_some_and(|last| last.to_string().contains("Write only the summary."))
}

/// The request asks for a summary.
fn summarise(plan: &Plan, asked: &Asked, log: &mut Log, tokens: u64) -> Acts {
    log.summaries += 1;
    log.retold = asked.body.clone();
    if !plan.summarises {
        return vec![http(
            400,
            &[],
            r#"{"error":{"message":"no summaries here","type":"invalid_request_error"}}"#,
        )];
    }
    let say = Say::text(&format!(
        "1. Task: read the file, part {}.\n9. Next step: go on reading.",
        log.summaries
    ));
    counted(&say, log.steps, tokens)
}

/// The request asks for a count.
fn count(plan: &Plan, asked: &Asked, log: &mut Log) -> Acts {
    log.counts += 1;
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    if let Some(why) = wrong(&body) {
        log.refused.push(why);
    }
    let json = [("content-type", "application/json")];
    match plan.counting {
        Counting::Exactly => {
            let count = json!({ "input_tokens": tokens(&body) });
            vec![http(200, &json, &count.to_string())]
        }
        Counting::Hangs => vec![Act::Stall],
        Counting::Never | Counting::Garbage => vec![http(200, &json, "{\"input_tokens\": \"some\"}")],
    }
}

/// The answer to a question outside the conversation; none: the request is no such question.
fn beside(body: &Value) -> Option<&'static str> {
    let system = body.pointer("/messages/0/content").and_then(Value::as_str)?;
    if system.starts_with("You name conversations") {
        Some("\"The big file\"\n")
    } else if system.starts_with("You tell in a few sentences") {
        Some("The file was read. Nothing is open.")
    } else if system.starts_with("You sort what a person says") {
        Some(r#"{"label": "CODING_TASK", "confidence": 0.9, "reason": "a file is to be read"}"#)
    } else {
        None
    }
}

/// The error of llama.cpp's server, field by field.
fn too_long(tokens: u64, window: u64) -> Act {
    let message = format!(
        "request ({tokens} tokens) exceeds the available context size ({window} tokens), try increasing it"
    );
    let error = json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": message,
        "n_prompt_tokens": tokens, "n_ctx": window}});
    http(400, &[("content-type", "application/json")], &error.to_string())
}

/// The answer with the server's own count in it, and calls whose ids differ.
fn counted(say: &Say, step: u64, tokens: u64) -> Acts {
    let speech = Speech(Dialect::OpenaiChat);
    let mut acts = vec![speech.head()];
    for frame in speech.frames(say) {
        let text = String::from_utf8_lossy(&frame)
            .replace("\"prompt_tokens\":10", &format!("\"prompt_tokens\":{tokens}"))
            .replace("\"total_tokens\":15", &format!("\"total_tokens\":{}", tokens + 5))
            .replace("\"call_", &format!("\"call_{step}_"));
        acts.push(Act::say(text));
    }
    acts
}

/// Tokens of everything that a template puts into the prompt.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of requests"
)]
fn tokens(body: &Value) -> u64 {
    let bytes = |part: &str| body.get(part).map_or(0, |part| part.to_string().len());
    ((bytes("messages") + bytes("tools")) as f64 / BYTES_PER_TOKEN) as u64
}

/// The defects that a strict template refuses: calls and results that do not fit, roles that do not alternate.
fn wrong(body: &Value) -> Option<String> {
    let messages = body.get("messages")?.as_array()?;
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut last = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let text = |name: &str| {
            message
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match role {
            "system" if at == 0 => {}
            "tool" if open.remove(&text("tool_call_id")) => {}
            "user" | "assistant" if !open.is_empty() => {
                return Some(format!("message {at}: calls without results: {open:?}"));
            }
            "user" if last == "user" => return Some(format!("message {at}: two users in a row")),
            "assistant" if last == "assistant" || last.is_empty() => {
                return Some(format!("message {at}: an assistant after {last:?}"));
            }
            "user" => {}
            "assistant" => {
                let calls = message.get("tool_calls").and_then(Value::as_array);
                for call in calls.into_iter().flatten() {
                    let id = call
                        .get("id")
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned();
                    if !used.insert(id.clone()) {
                        return Some(format!("message {at}: the call {id} comes twice"));
                    }
                    open.insert(id);
                }
            }
            other => return Some(format!("message {at}: {other} is out of place")),
        }
        last = match role {
            "tool" => "tool",
            "user" => "user",
            "assistant" => "assistant",
            _ => last,
        };
    }
    (!open.is_empty()).then(|| format!("calls without results at the end: {open:?}"))
}
