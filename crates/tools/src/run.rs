//! Runs a prepared call.

use crate::context::{Finished, ToolContext};
use crate::prepared::{Prepared, Subject};
use crate::put_back::Wanted;
use crate::refusal::{Code, refuse};
use crate::{
    apply_patch, bash, edit, glob, grep, job_input, job_tools, ls, read, remote, replacement, repo_map,
    search, skill, undo, web_fetch, write,
};
use agentd_file_work::Failed;
use agentd_protocol::ToolOutcome;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a file tool may take. Searches end before that with what they have.
const FILES_WITHIN: Duration = Duration::from_secs(60);

/// Turns true when nobody waits for the result any more: work that blocks a thread looks at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub(crate) fn yes(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The last word before a tool changes something.
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

/// Runs a prepared call to its one result. Dropping the future stops it: a command is killed, a file is not written
/// unless it was already.
pub async fn run(prepared: &Prepared, ctx: ToolContext) -> Finished {
    let began = Instant::now();
    let mut finished = match prepared.name.as_ref() {
        "Bash" => bash::run(prepared, &ctx).await,
        "BashStart" => job_tools::start(prepared, &ctx).await,
        "BashPoll" => job_tools::poll(prepared, &ctx).await,
        "BashWrite" => job_input::run(prepared, &ctx).await,
        "BashKill" => job_tools::kill(prepared, &ctx).await,
        "WebFetch" => web_fetch::run(prepared, &ctx).await,
        "SemanticSearch" => search::run(prepared, &ctx).await,
        _ if matches!(prepared.subject, Subject::Remote { .. }) => remote::run(prepared, &ctx).await,
        "UndoPatch" => match undo::fetch(prepared, &ctx).await {
            Ok(wanted) => on_files(prepared.clone(), ctx, wanted).await,
            Err(refusal) => refusal.into(),
        },
        "Read" if let Some(name) = read::blob(prepared) => read::read_blob(prepared, &ctx, name).await.into(),
        _ => on_files(prepared.clone(), ctx, Vec::new()).await,
    };
    finished.outcome.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    finished
}

/// `wanted` is what an undo puts back.
async fn on_files(prepared: Prepared, ctx: ToolContext, wanted: Vec<Wanted>) -> Finished {
    let watch = Watch(Abandoned::default());
    let abandoned = watch.0.clone();
    let name = prepared.name.clone();
    ctx.on_start.begun();
    let (files, dir) = (ctx.file_work.clone(), Arc::clone(&ctx.workdir));
    let work = move || dispatch(&prepared, &ctx, &abandoned, wanted);
    let done = files.run(dir.path(), FILES_WITHIN, work).await;
    done.unwrap_or_else(|failed| unanswered(&name, failed).into())
}

/// The result of a call whose work on files gave none. Passes the work's panic on: whoever runs the tool deals with it.
#[must_use]
pub fn unanswered(tool: &str, failed: Failed) -> ToolOutcome {
    match failed {
        Failed::Panicked(panic) => std::panic::resume_unwind(panic),
        failed => refuse(Code::Timeout, format!("{tool} was given up: {failed}.")),
    }
}

fn dispatch(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned, wanted: Vec<Wanted>) -> Finished {
    match prepared.name.as_ref() {
        "Read" => read::run(prepared, ctx).into(),
        "Write" => write::run(prepared, ctx, abandoned),
        "Edit" | "MultiEdit" => edit::run(prepared, ctx, abandoned),
        "ApplyPatch" if prepared.input.get("patch").is_some() => apply_patch::run(prepared, ctx, abandoned),
        "ApplyPatch" => replacement::run(prepared, ctx, abandoned),
        "UndoPatch" => undo::run(prepared, ctx, abandoned, wanted),
        "Skill" => skill::run(prepared, ctx).into(),
        "Ls" => ls::run(prepared, ctx).into(),
        "Glob" => glob::run(prepared, ctx, abandoned).into(),
        "Grep" => grep::run(prepared, ctx, abandoned).into(),
        "RepoMap" => repo_map::run(prepared, ctx, abandoned).into(),
        other => refuse(Code::UnknownTool, format!("{other} cannot be run here.")).into(),
    }
}
