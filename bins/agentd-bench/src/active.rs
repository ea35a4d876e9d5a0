//! Memory of many sessions with concurrently open turns.

use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, cold, create_all};
use crate::fleet::usage;
use crate::report::{Report, Target};
use crate::tree::Usage;
use crate::{checks, store};
use anyhow::Result;
use clap::Args;
use std::time::{Duration, Instant};

/// How many, and how busy.
#[derive(Debug, Clone, Args)]
pub(crate) struct ActiveArgs {
    /// Concurrent sessions
    #[arg(long, default_value_t = 1_000)]
    sessions: u32,
    /// Kilobytes of history per session
    #[arg(long, default_value_t = 20)]
    history_kb: u32,
    /// Steps per session
    #[arg(long, default_value_t = 3)]
    steps: u32,
    /// Milliseconds that the model waits before each answer
    #[arg(long, default_value_t = 8_000)]
    think_ms: u32,
}

pub(crate) async fn run(bench: &Bench, args: &ActiveArgs) -> Result<Report> {
    let mut report = Report::default();
    let mut watch = Watcher::start(bench).await?;
    let idle = bench.usage()?;
    report.number("rss_mb.idle", idle.rss_mb);
    let begun = Instant::now();
    let created = create_all(&bench.client, wanted(bench, args)?).await?;
    report.number("create_seconds", begun.elapsed().as_secs_f64());
    let (mut most, mut hot) = (Usage::default(), 0);
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let turns = u64::from(args.sessions);
    while watch.ended() < turns {
        tokio::select! {
            ended = watch.until(turns) => ended?,
            _ = ticks.tick() => {
                let now = bench.usage()?;
                hot = hot.max(bench.client.status().await?.hot);
                most.rss_mb = most.rss_mb.max(now.rss_mb);
                most.helpers_mb = most.helpers_mb.max(now.helpers_mb);
                most.helpers = most.helpers.max(now.helpers);
                most.fds = most.fds.max(now.fds);
                most.threads = most.threads.max(now.threads);
            }
        }
    }
    watch.all_completed()?;
    let target = (args.sessions == 1_000).then_some(Target::AtMost(200.0));
    report.maybe("rss_mb.most", most.rss_mb, target);
    let grown = (most.rss_mb - idle.rss_mb) * 1e6;
    report.number(
        "bytes_per_active_session",
        grown / f64::from(args.sessions.max(1)),
    );
    report.put("open_at_once", hot);
    usage(&most, &mut report);
    let steps = f64::from(args.sessions * args.steps);
    report.number("steps_per_second", steps / begun.elapsed().as_secs_f64());
    report.number("cpu_ms_per_step", (bench.usage()?.cpu_ms - idle.cpu_ms) / steps);
    cold(bench).await?;
    report.number("rss_mb.after", bench.usage()?.rss_mb);
    store::figures(bench, &mut report).await?;
    checks::logs(&bench.client, created.keys(), &mut report).await?;
    Ok(report)
}

/// The history is part of the prompt: it is there immediately, and the same for every tool.
fn wanted(bench: &Bench, args: &ActiveArgs) -> Result<Vec<Wanted>> {
    let history = "An older message.    ".repeat(args.history_kb as usize * 1_000 / 22);
    let mut all = Wanted::fleet(bench, "a", args.sessions, args.steps)?;
    for wanted in &mut all {
        let plan = wanted.prompt.take().unwrap_or_default();
        let plan = plan.replace(';', &format!(" first={};", args.think_ms));
        wanted.prompt = Some(format!("{history}{plan}"));
    }
    Ok(all)
}
