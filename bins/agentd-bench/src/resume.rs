//! Kills the daemon (kill -9) in the middle of many turns, and measures the time until all of them continue.

use crate::checks;
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all};
use crate::report::{Report, Target};
use anyhow::{Context as _, Result};
use clap::Args;
use std::time::Instant;

/// How many.
#[derive(Debug, Clone, Args)]
pub(crate) struct ResumeArgs {
    /// Open turns
    #[arg(long, default_value_t = 1_000)]
    sessions: u32,
}

pub(crate) async fn run(bench: &mut Bench, args: &ResumeArgs) -> Result<Report> {
    let mut report = Report::default();
    let sessions = u64::from(args.sessions);
    let mut wanted = Wanted::fleet(bench, "r", args.sessions, 1)?;
    for wanted in &mut wanted {
        // After its command, each turn waits for an answer that comes only when the next daemon repeats the request.
        let plan = wanted.prompt.take().unwrap_or_default();
        wanted.prompt = Some(plan.replace(';', " hang=1 hangs=1;"));
    }
    let begun = Instant::now();
    let created = create_all(&bench.client, wanted).await?;
    requests(bench, sessions * 2).await?;
    report.number("opened_seconds", begun.elapsed().as_secs_f64());
    report.number("rss_mb.before", bench.usage()?.rss_mb);
    bench.kill().await?;
    let begun = Instant::now();
    let started = bench.restart().await?;
    requests(bench, sessions * 3).await?;
    let most = (args.sessions == 1_000).then_some(Target::AtMost(5.0));
    report.number("start_ms", started.as_secs_f64() * 1_000.0);
    report.maybe("resumed_seconds", begun.elapsed().as_secs_f64(), most);
    let mut watch = Watcher::since(bench, Some(0)).await?;
    watch.until(sessions).await?;
    report.number("completed_seconds", begun.elapsed().as_secs_f64());
    watch.all_completed()?;
    report.number("rss_mb.after", bench.usage()?.rss_mb);
    checks::logs(&bench.client, created.keys(), &mut report).await?;
    Ok(report)
}

async fn requests(bench: &Bench, wanted: u64) -> Result<()> {
    let model = bench.model.as_ref();
    model
        .context("this mode needs the built-in model server")?
        .requests(wanted)
        .await
}
