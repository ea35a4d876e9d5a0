//! Waits for a command for a limited time; if it still runs then, the same process goes on as a background job.

use crate::bash::{finished, lost};
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::job::{Collecting, Job};
use crate::job_tools::{LONGEST, most, said};
use crate::prepared::Prepared;
use agentd_sandbox::{CaptureLimits, CollectSpec, Collected, Running, SandboxError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the model waits for a command before it goes on in the background. `time` is the command's own timeout.
pub(crate) fn patience(prepared: &Prepared, ctx: &ToolContext, time: Duration) -> Option<Duration> {
    let asked = prepared.number("yield_ms").unwrap_or(ctx.limits.bash_yield_ms);
    let patience = Duration::from_millis(asked);
    (!patience.is_zero() && patience < time).then_some(patience)
}

/// Waits for the command, for at most `patience`.
pub(crate) async fn run(
    running: Running,
    prepared: &Prepared,
    ctx: &ToolContext,
    time: Duration,
    patience: Duration,
) -> Finished {
    // A requested timeout also holds in the background; the default one applies only while the model waits.
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
                "[still running after {} ms; it continues as background job {number}: read its output with Job, action read; end it with action stop]\n",
                patience.as_millis()
            );
            said(number, &job, ctx, Some(how))
        }
        // No free place: wait for the command as if no `yield_ms` had been given.
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

/// The description for the model.
pub(crate) fn described(limits: &ToolLimits) -> String {
    match limits.bash_yield_ms {
        0 => "If it still runs after `yield_ms`, it continues as a background job.".to_owned(),
        usual => format!(
            "If it still runs after `yield_ms` (default {usual}; 0: wait for its end), it continues as a background job."
        ),
    }
}
