//! Tests of the pool with fake servers, under a paused clock.

mod fake;
mod life;
mod messages;
mod odd_results;
mod odd_tools;
mod port;

use crate::{Call, CallAnswer, LeftOut, Limits, McpError, Offer, OnProgress, Pool, Scope, ServerState};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus};
use fake::{Act, Fake, Stage, offered, result, spec};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DIR: &str = "/w";

fn pool(fake: &Arc<Fake>, specs: Vec<crate::ServerSpec>) -> Pool {
    let launch = Arc::new(Stage(Arc::clone(fake)));
    Pool::new(specs, launch, crate::http_client().unwrap()).unwrap()
}

fn call(name: &str, arguments: &Value) -> Call {
    Call {
        name: name.to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        time: None,
        max_bytes: 10_000,
        on_progress: OnProgress::default(),
    }
}

async fn echo(pool: &Pool) -> CallAnswer {
    pool.call(Path::new(DIR), call("mcp__fake__echo", &json!({ "text": "hi" })))
        .await
}
