//! Runs a prepared call.

use crate::context::{Finished, ToolContext};
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::{bash, edit, glob, grep, ls, read, write};
use agentd_protocol::ToolOutcome;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a file tool may take. Searches end before that with what they have.
const FILES_WITHIN: Duration = Duration::from_secs(60);

/// Turns true when nobody waits for the result any more: work that blocks a thread looks at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub(crate) fn yes(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the flag when the future is dropped.
struct Watch(Abandoned);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a prepared call to its one result. Dropping the future stops it: a command is killed, a file is not written
/// unless it was already.
pub async fn run(prepared: &Prepared, ctx: ToolContext) -> Finished {
    let began = Instant::now();
    let mut finished = match prepared.name {
        "Bash" => bash::run(prepared, &ctx).await,
        _ => on_files(prepared.clone(), ctx).await.into(),
    };
    finished.outcome.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    finished
}

async fn on_files(prepared: Prepared, ctx: ToolContext) -> ToolOutcome {
    let watch = Watch(Abandoned::default());
    let abandoned = watch.0.clone();
    let name = prepared.name;
    ctx.on_start.begun();
    let work = tokio::task::spawn_blocking(move || dispatch(&prepared, &ctx, &abandoned));
    match timeout(FILES_WITHIN, work).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => match error.try_into_panic() {
            // Whoever runs the tool deals with its panics.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => refuse(Code::Tool, format!("{name} was stopped: {error}.")),
        },
        Err(_) => refuse(
            Code::Timeout,
            format!(
                "{name} took longer than {} s and was given up.",
                FILES_WITHIN.as_secs()
            ),
        ),
    }
}

fn dispatch(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> ToolOutcome {
    match prepared.name {
        "Read" => read::run(prepared, ctx),
        "Write" => write::run(prepared, ctx, abandoned),
        "Edit" => edit::run(prepared, ctx, abandoned),
        "Ls" => ls::run(prepared, ctx),
        "Glob" => glob::run(prepared, ctx, abandoned),
        "Grep" => grep::run(prepared, ctx, abandoned),
        other => refuse(Code::UnknownTool, format!("{other} cannot be run here.")),
    }
}
