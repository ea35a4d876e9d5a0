//! Memory of idle sessions, and the start time of a daemon with many of them.

use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, cold, create_all};
use crate::report::{Report, Target};
use agentd_protocol::ListParams;
use anyhow::{Result, ensure};
use clap::Args;
use std::time::Instant;

/// How many.
#[derive(Debug, Clone, Args)]
pub(crate) struct IdleArgs {
    /// Idle sessions
    #[arg(long, default_value_t = 10_000)]
    sessions: u32,
    /// Sessions in the burst
    #[arg(long, default_value_t = 200)]
    burst: u32,
}

pub(crate) async fn run(bench: &mut Bench, args: &IdleArgs) -> Result<Report> {
    let mut report = Report::default();
    let empty = bench.usage()?.rss_mb;
    report.number("rss_mb.0_empty", empty);
    let begun = Instant::now();
    let workdir = bench.workdir.clone();
    let wanted = (0..args.sessions).map(|n| Wanted {
        name: format!("idle {n}"),
        workdir: workdir.clone(),
        prompt: None,
    });
    create_all(&bench.client, wanted).await?;
    report.number(
        "create_per_second",
        f64::from(args.sessions) / begun.elapsed().as_secs_f64(),
    );
    cold(bench).await?;
    let idle = bench.usage()?.rss_mb;
    report.maybe("rss_mb.1_idle", idle, target(args.sessions));
    report.number(
        "bytes_per_idle_session",
        (idle - empty) * 1e6 / f64::from(args.sessions.max(1)),
    );
    let all = ListParams {
        all: true,
        ..ListParams::default()
    };
    let begun = Instant::now();
    let rows = bench.client.list(&all).await?.len();
    ensure!(
        rows >= args.sessions as usize,
        "only {rows} of {} sessions are listed",
        args.sessions
    );
    report.number("list_all_seconds", begun.elapsed().as_secs_f64());
    report.number("rss_mb.2_after_list", bench.usage()?.rss_mb);
    burst(bench, args.burst, &mut report).await?;
    report.number("rss_mb.4_idle_again", bench.usage()?.rss_mb);
    bench.kill().await?;
    let took = bench.restart().await?;
    let most = (args.sessions == 10_000).then_some(Target::AtMost(100.0));
    report.maybe("start_ms", took.as_secs_f64() * 1_000.0, most);
    report.maybe("rss_mb.5_started", bench.usage()?.rss_mb, target(args.sessions));
    ensure!(
        bench.client.status().await?.sessions >= u64::from(args.sessions),
        "sessions were lost"
    );
    Ok(report)
}

const fn target(sessions: u32) -> Option<Target> {
    match sessions {
        10_000 => Some(Target::AtMost(60.0)),
        100_000 => Some(Target::AtMost(250.0)),
        _ => None,
    }
}

async fn burst(bench: &Bench, sessions: u32, report: &mut Report) -> Result<()> {
    let mut watch = Watcher::start(bench).await?;
    let begun = Instant::now();
    create_all(&bench.client, Wanted::fleet(bench, "burst", sessions, 10)?).await?;
    watch.until(u64::from(sessions)).await?;
    watch.all_completed()?;
    let steps = f64::from(sessions) * 10.0;
    report.number("burst_steps_per_second", steps / begun.elapsed().as_secs_f64());
    report.number("rss_mb.3_after_burst", bench.usage()?.rss_mb);
    cold(bench).await
}
