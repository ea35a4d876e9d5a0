//! A model server that often fails or breaks off: counts how many failures reach the sessions.

use crate::checks;
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all};
use crate::report::Report;
use agentd_protocol::EndReason;
use anyhow::Result;
use clap::Args;
use std::time::Instant;

/// How many.
#[derive(Debug, Clone, Args)]
pub(crate) struct StormArgs {
    /// Concurrent sessions
    #[arg(long, default_value_t = 100)]
    sessions: u32,
    /// Steps per session
    #[arg(long, default_value_t = 10)]
    steps: u32,
}

pub(crate) async fn run(bench: &Bench, args: &StormArgs) -> Result<Report> {
    let mut report = Report::default();
    let mut watch = Watcher::start(bench).await?;
    let before = bench.usage()?.cpu_ms;
    let begun = Instant::now();
    let created = create_all(
        &bench.client,
        Wanted::fleet(bench, "s", args.sessions, args.steps)?,
    )
    .await?;
    watch.until(u64::from(args.sessions)).await?;
    let took = begun.elapsed().as_secs_f64();
    let steps = f64::from(args.sessions * args.steps);
    report.number("steps_per_second", steps / took);
    report.number("cpu_ms_per_step", (bench.usage()?.cpu_ms - before) / steps);
    let completed = watch.with(|seen| {
        let ends = seen.ends.values().flatten();
        ends.filter(|end| **end == EndReason::Completed).count()
    });
    report.put("turns", args.sessions);
    report.put("turns_completed", completed);
    report.put("failed_attempts", watch.with(|seen| seen.failed_models));
    if let Some(model) = &bench.model {
        let served = model.served().await?;
        report.put("requests", served.requests);
        report.put("requests_refused", served.failed);
    }
    checks::logs(&bench.client, created.keys(), &mut report).await?;
    Ok(report)
}
