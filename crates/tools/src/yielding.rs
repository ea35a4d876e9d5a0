//! A command that is waited for only so long: when it still runs then, the same process goes on as a background job.

use crate::bash::{finished, lost};
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::job::{Collecting, Job};
use crate::job_tools::{LONGEST, most, said};
use crate::prepared::Prepared;
use agentd_sandbox::{CaptureLimits, CollectSpec, Collected, Running, SandboxError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the model waits for a command, when it does not wait for its end. `time` is what the command may take.
pub(crate) fn patience(prepared: &Prepared, ctx: &ToolContext, time: Duration) -> Option<Duration> {
    let asked = prepared.number("yield_ms").unwrap_or(ctx.limits.bash_yield_ms);
    let patience = Duration::from_millis(asked);
    (!patience.is_zero() && patience < time).then_some(patience)
}

/// Waits for the command, at most `patience` long.
pub(crate) async fn run(
    running: Running,
    prepared: &Prepared,
    ctx: &ToolContext,
    time: Duration,
    patience: Duration,
) -> Finished {
    // A time that was asked for holds in the background, too; the usual one is for those who wait.
    let asked = prepared.number("timeout_ms").is_some();
    let spec = CollectSpec {
        time: if asked { time } else { LONGEST },
        limits: CaptureLimits::default(),
        spill_dir: ctx.spill_dir.clone(),
        spill_bytes: ctx.limits.spill_bytes,
    };
    let (job, mut collecting) = Job::follow(running, spec, None, Some(ctx.progress.clone()));
    if let Ok(ended) = timeout(patience, &mut collecting).await {
        return end(ended, time, ctx);
    }
    let command = prepared.text("command").to_owned();
    match ctx.jobs.keep(command, &job, collecting, most(ctx)) {
        Ok(number) => {
            let how = format!(
                "[it still runs after {} ms and goes on as background job {number}: BashPoll reads on, BashKill ends it]\n",
                patience.as_millis()
            );
            said(number, &job, ctx, Some(how))
        }
        // No room: it is waited for as if nothing else had been said.
        Err(collecting) => to_the_end(&job, collecting, time, patience, ctx).await,
    }
}

async fn to_the_end(
    job: &Arc<Job>,
    mut collecting: Collecting,
    time: Duration,
    waited: Duration,
    ctx: &ToolContext,
) -> Finished {
    if let Ok(ended) = timeout(time.saturating_sub(waited), &mut collecting).await {
        return end(ended, time, ctx);
    }
    job.stop();
    let ended = collecting.await.map(|mut collected| {
        collected.timed_out = true;
        collected
    });
    end(ended, time, ctx)
}

fn end(ended: Result<Collected, SandboxError>, time: Duration, ctx: &ToolContext) -> Finished {
    match ended {
        Ok(collected) => finished(collected, time, ctx),
        Err(error) => lost(&error).into(),
    }
}

/// What the model is told of it.
pub(crate) fn described(limits: &ToolLimits) -> String {
    match limits.bash_yield_ms {
        0 => "With `yield_ms` it is waited for only so long: if it still runs then, it goes on as a background job.".to_owned(),
        usual => format!(
            "If it still runs after `yield_ms` (default {usual}; 0: wait for its end), it goes on as a background job."
        ),
    }
}
