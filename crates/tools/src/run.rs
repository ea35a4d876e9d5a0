//! Runs a prepared call.

use crate::context::{Finished, ToolContext};
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::remote;
use crate::tool::Runs;
use agentd_file_work::Failed;
use agentd_protocol::ToolOutcome;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The timeout of file tools. Searches end earlier and return what they have.
const FILES_WITHIN: Duration = Duration::from_secs(60);

/// Turns true when the caller stops waiting for the result; blocking work polls it.
#[derive(Debug, Clone, Default)]
pub struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub(crate) fn yes(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The last check before a tool changes something.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub(crate) fn stop(&self, tool: &str) -> Result<(), ToolOutcome> {
        if self.yes() {
            let text = format!("{tool} was cancelled before it changed anything.");
            return Err(refuse(Code::Tool, text));
        }
        Ok(())
    }
}

/// Sets the flag when the future is dropped.
struct Watch(Abandoned);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a prepared call to its one result. Dropping the future stops it: a command is killed, and a file that was not
/// yet written stays unwritten.
pub async fn run(prepared: &Prepared, ctx: ToolContext) -> Finished {
    let began = Instant::now();
    let mut finished = match prepared.tool().map(|tool| tool.runs()) {
        Some(Runs::Files(work)) => on_files(prepared.clone(), ctx, work).await,
        Some(Runs::Worker(run)) => run(prepared, &ctx).await,
        None => remote::run(prepared, &ctx).await,
        Some(Runs::Loop(_) | Runs::SubAgent) => refuse(
            Code::UnknownTool,
            format!("{} is not available here.", prepared.name),
        )
        .into(),
    };
    finished.outcome.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    finished
}

/// Runs work on files: on a thread that may block, within the time limit of file tools.
pub(crate) async fn on_files(
    prepared: Prepared,
    ctx: ToolContext,
    work: impl FnOnce(&Prepared, &ToolContext, &Abandoned) -> Finished + Send + 'static,
) -> Finished {
    let watch = Watch(Abandoned::default());
    let abandoned = watch.0.clone();
    let name = prepared.name.clone();
    ctx.on_start.begun();
    let (files, dir) = (ctx.file_work.clone(), Arc::clone(&ctx.workdir));
    let work = move || work(&prepared, &ctx, &abandoned);
    let done = files.run(dir.path(), FILES_WITHIN, work).await;
    done.unwrap_or_else(|failed| unanswered(&name, failed).into())
}

/// The result of a call whose file work gave none. Resumes a panic of the work, for the caller to handle.
#[must_use]
pub fn unanswered(tool: &str, failed: Failed) -> ToolOutcome {
    match failed {
        Failed::Panicked(panic) => std::panic::resume_unwind(panic),
        failed => refuse(Code::Timeout, format!("{tool} was abandoned: {failed}.")),
    }
}
