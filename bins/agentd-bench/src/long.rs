//! One session of many steps: compares the cost of the last steps with that of the first.

use crate::checks;
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all, send};
use crate::report::{Report, Target, percentile};
use agentd_protocol::SessionId;
use anyhow::{Context as _, Result};
use clap::Args;

/// How long.
#[derive(Debug, Clone, Args)]
pub(crate) struct LongArgs {
    /// Steps
    #[arg(long, default_value_t = 2_000)]
    steps: u32,
    /// Steps per turn
    #[arg(long, default_value_t = 50)]
    turn: u32,
}

/// The cost of a turn.
struct Turn {
    step_ms: Vec<f64>,
    cpu_ms: f64,
}

pub(crate) async fn run(bench: &Bench, args: &LongArgs) -> Result<Report> {
    let mut watch = Watcher::start(bench).await?;
    let wanted = Wanted {
        name: "long".to_owned(),
        workdir: bench.place("long")?,
        prompt: None,
    };
    let created = create_all(&bench.client, [wanted]).await?;
    let session = *created.keys().next().context("one was created")?;
    // Starts the warden, and loads the program's pages.
    turn(bench, &mut watch, session, "warm", 5).await?;
    let per_turn = args.turn.clamp(1, args.steps.max(1));
    let mut turns = Vec::new();
    for n in 0..args.steps.div_ceil(per_turn) {
        turns.push(turn(bench, &mut watch, session, &format!("t{n}."), per_turn).await?);
    }
    let mut report = Report::default();
    let ends = 100_u32.div_ceil(per_turn) as usize;
    let first = costs(turns.iter().take(ends), per_turn);
    let last = costs(turns.iter().rev().take(ends), per_turn);
    report.number("step_ms.first", first.0);
    report.number("step_ms.last", last.0);
    report.aim("step_ratio", last.0 / first.0, Target::AtMost(1.5));
    report.number("cpu_ms_per_step.first", first.1);
    report.number("cpu_ms_per_step.last", last.1);
    report.number("cpu_ratio", last.1 / first.1.max(0.001));
    report.number("rss_mb", bench.usage()?.rss_mb);
    watch.all_completed()?;
    checks::logs(&bench.client, [&session], &mut report).await?;
    Ok(report)
}

async fn turn(bench: &Bench, watch: &mut Watcher, session: SessionId, key: &str, steps: u32) -> Result<Turn> {
    let before = bench.usage()?.cpu_ms;
    let ended = watch.ended();
    send(&bench.client, session, &bench.args.tools.plan(key, steps)).await?;
    watch.until(ended + 1).await?;
    let gaps = match &bench.model {
        Some(model) => model.served().await?.gaps,
        None => std::collections::HashMap::new(),
    };
    Ok(Turn {
        step_ms: gaps.into_values().map(|micros| micros as f64 / 1_000.0).collect(),
        cpu_ms: bench.usage()?.cpu_ms - before,
    })
}

/// The median time of a step, and its mean CPU time.
fn costs<'a>(turns: impl Iterator<Item = &'a Turn>, steps: u32) -> (f64, f64) {
    let (mut all, mut cpu, mut count) = (Vec::new(), 0.0, 0.0_f64);
    for turn in turns {
        all.extend_from_slice(&turn.step_ms);
        cpu += turn.cpu_ms;
        count += f64::from(steps);
    }
    all.sort_by(f64::total_cmp);
    (percentile(&all, 50), cpu / count.max(1.0))
}
