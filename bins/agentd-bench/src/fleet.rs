//! Throughput: N concurrent sessions of several steps each; then the overhead of a step at 60 % of that throughput.

use crate::config::{Level, ToolMix};
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, cold, create_all};
use crate::probe::Probe;
use crate::report::{Report, Target};
use crate::tree::{Usage, cpu_ms};
use crate::{checks, open_loop, store};
use agentd_client::Subscription;
use agentd_protocol::{AttachParams, SessionId};
use anyhow::Result;
use clap::Args;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The load.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetArgs {
    /// Concurrent sessions
    #[arg(long, default_value_t = 50)]
    pub(crate) sessions: u32,
    /// Steps per session
    #[arg(long, default_value_t = 10)]
    pub(crate) steps: u32,
    /// Waves; all count together
    #[arg(long, default_value_t = 5)]
    pub(crate) waves: u32,
    /// Seconds of open-loop load after the waves; 0: none
    #[arg(long, default_value_t = 10)]
    pub(crate) open_seconds: u32,
    /// Viewers per session during the waves
    #[arg(long, default_value_t = 0)]
    pub(crate) viewers: u32,
}

/// The result of the waves.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) steps_per_second: f64,
    pub(crate) sessions: HashMap<SessionId, String>,
}

pub(crate) async fn run(bench: &Bench, args: &FleetArgs) -> Result<Report> {
    let mut report = Report::default();
    let mut watch = Watcher::start(bench).await?;
    report.number("rss_mb.idle", bench.usage()?.rss_mb);
    let reached = reach(bench, &mut watch, args, &mut report).await?;
    memory(bench, &mut watch, args, &mut report).await?;
    if args.open_seconds > 0 {
        let probe = Probe::start(bench).await?;
        let rate = reached.steps_per_second * 0.6;
        let names = open_loop::run(bench, &mut watch, args, rate, &mut report).await?;
        probe.end(&mut report);
        open_loop::overhead(bench, &watch, &names, &mut report).await?;
    }
    watch.all_completed()?;
    report.put("failed_tool_calls", watch.with(|seen| seen.failed_tools));
    cold(bench).await?;
    report.number("rss_mb.after", bench.usage()?.rss_mb);
    store::figures(bench, &mut report).await?;
    checks::logs(&bench.client, reached.sessions.keys(), &mut report).await?;
    Ok(report)
}

/// Measures the maximum throughput: a short wave to warm up, then the waves that count.
pub(crate) async fn reach(
    bench: &Bench,
    watch: &mut Watcher,
    args: &FleetArgs,
    report: &mut Report,
) -> Result<Reached> {
    let warm = Wanted::fleet(bench, "warm", args.sessions.min(10), 2)?;
    wave(bench, watch, warm, 0).await?;
    let mut wanted = Vec::new();
    for wave in 0..args.waves {
        wanted.push(Wanted::fleet(
            bench,
            &format!("w{wave}."),
            args.sessions,
            args.steps,
        )?);
    }
    let model_pid = bench.model.as_ref().map(crate::model_process::ModelProcess::pid);
    let others = || (model_pid.map_or(0.0, cpu_ms), cpu_ms(std::process::id()));
    let (before, (model, own)) = (bench.usage()?, others());
    let mut sessions = HashMap::new();
    let mut took = Duration::ZERO;
    for wanted in wanted {
        let begun = Instant::now();
        sessions.extend(wave(bench, watch, wanted, args.viewers).await?);
        took += begun.elapsed();
    }
    let (after, (model_after, own_after)) = (bench.usage()?, others());
    watch.all_completed()?;
    let count = args.sessions * args.waves;
    let steps = f64::from(steps_of(bench, args.steps) * count);
    let rate = steps / took.as_secs_f64();
    let (least, cost) = targets(bench);
    report.number("sessions_per_second", f64::from(count) / took.as_secs_f64());
    report.maybe("steps_per_second", rate, least);
    report.maybe("cpu_ms_per_step", (after.cpu_ms - before.cpu_ms) / steps, cost);
    report.number(
        "cpu_ms_per_step.daemon_only",
        (after.own_cpu_ms - before.own_cpu_ms) / steps,
    );
    report.number("cpu_ms_per_step.model_server", (model_after - model) / steps);
    report.number("cpu_ms_per_step.load_tool", (own_after - own) / steps);
    Ok(Reached {
        steps_per_second: rate,
        sessions,
    })
}

/// Runs one wave, from the first request to the end of the last turn.
async fn wave(
    bench: &Bench,
    watch: &mut Watcher,
    wanted: Vec<Wanted>,
    viewers: u32,
) -> Result<HashMap<SessionId, String>> {
    let turns = watch.ended() + wanted.len() as u64;
    let created = create_all(&bench.client, wanted).await?;
    let mut looking = Vec::new();
    for session in created.keys() {
        for _ in 0..viewers {
            let mut viewer = attach(bench, *session).await?;
            looking.push(tokio::spawn(
                async move { while viewer.next().await.is_some() {} },
            ));
        }
    }
    watch.until(turns).await?;
    looking.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(created)
}

/// Measures resource usage during a wave of its own, because measuring takes time.
async fn memory(bench: &Bench, watch: &mut Watcher, args: &FleetArgs, report: &mut Report) -> Result<()> {
    let wanted = Wanted::fleet(bench, "m", args.sessions, args.steps)?;
    let turns = watch.ended() + u64::from(args.sessions);
    create_all(&bench.client, wanted).await?;
    usage(&bench.usage()?, report);
    watch.until(turns).await
}

/// Reports the peak usage of the daemon.
pub(crate) fn usage(most: &Usage, report: &mut Report) {
    report.number("rss_mb.active", most.rss_mb);
    report.number("helpers_private_mb.active", most.helpers_mb);
    report.put("helpers.active", most.helpers);
    report.put("fds.active", most.fds);
    report.put("threads.active", most.threads);
}

/// The number of steps that a session really makes: without tools there is only the answer.
pub(crate) const fn steps_of(bench: &Bench, steps: u32) -> u32 {
    match bench.args.tools {
        ToolMix::None => 1,
        _ => steps,
    }
}

const fn targets(bench: &Bench) -> (Option<Target>, Option<Target>) {
    match (bench.args.tools, bench.args.sandbox) {
        (ToolMix::Bash, Level::Confined) => (Some(Target::AtLeast(600.0)), Some(Target::AtMost(2.0))),
        (ToolMix::Bash, Level::None) => (Some(Target::AtLeast(1_000.0)), None),
        (ToolMix::Read, _) => (Some(Target::AtLeast(3_000.0)), Some(Target::AtMost(0.5))),
        _ => (None, None),
    }
}

/// Attaches to a session from its start, with deltas.
pub(crate) async fn attach(bench: &Bench, session: SessionId) -> Result<Subscription> {
    let params = AttachParams {
        session: session.to_string(),
        deltas: true,
        ..AttachParams::default()
    };
    Ok(bench.client.attach(&params).await?)
}
