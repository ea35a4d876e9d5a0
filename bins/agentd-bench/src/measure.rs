//! What is measured, and how.

use crate::daemon::Bench;
use agentd_client::{Push, Subscription};
use agentd_protocol::{
    AttachParams, Block, CreateParams, EndReason, Event, EventBody, ListParams, SendParams, SessionId,
    Timestamp,
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Named figures, in the order of measuring.
pub(crate) type Figures = BTreeMap<String, Value>;

/// Requests in flight while sessions are created.
const IN_FLIGHT: usize = 64;
/// A command of a plan that prints 10 KB.
const PRINT_10_KB: &str = r"head_-c_10000_/dev/zero_|_tr_'\0'_x";
/// How long a burst or a round may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Memory of idle sessions.
pub(crate) async fn idle(bench: &Bench, sessions: u32, burst: u32) -> Result<Figures> {
    let mut figures = Figures::new();
    figures.insert("rss_mb.0_empty".into(), json!(rss_mb(bench.pid)?));
    let started = Instant::now();
    create_idle(bench, sessions).await?;
    figures.insert(
        "create_per_second".into(),
        json!(rate(sessions, started.elapsed())),
    );
    cold(bench).await?;
    figures.insert("rss_mb.1_idle".into(), json!(rss_mb(bench.pid)?));
    let rows = bench
        .client
        .list(&ListParams {
            all: true,
            ..ListParams::default()
        })
        .await?;
    if rows.len() < sessions as usize {
        bail!("{} of {sessions} sessions are listed", rows.len());
    }
    figures.insert("rss_mb.2_after_ps".into(), json!(rss_mb(bench.pid)?));
    let started = Instant::now();
    burst_of(bench, burst, 10).await?;
    figures.insert(
        "burst_steps_per_second".into(),
        json!(rate(burst * 10, started.elapsed())),
    );
    figures.insert("rss_mb.3_after_burst".into(), json!(rss_mb(bench.pid)?));
    cold(bench).await?;
    figures.insert("rss_mb.4_idle_again".into(), json!(rss_mb(bench.pid)?));
    Ok(figures)
}

/// Steps per second of a fleet, and what a step costs.
pub(crate) async fn fleet(bench: &Bench, sessions: u32, steps: u32) -> Result<Figures> {
    burst_of(bench, sessions.min(10), 2).await?;
    let (cpu, started) = (cpu_ms(bench.pid)?, Instant::now());
    burst_of(bench, sessions, steps).await?;
    let all = sessions * steps;
    let mut figures = Figures::new();
    figures.insert("steps_per_second".into(), json!(rate(all, started.elapsed())));
    figures.insert(
        "daemon_cpu_ms_per_step".into(),
        json!((cpu_ms(bench.pid)? - cpu) / f64::from(all)),
    );
    figures.insert("rss_mb".into(), json!(rss_mb(bench.pid)?));
    Ok(figures)
}

/// The time of a step with a long history against one with a short history, measured in turn.
pub(crate) async fn history(
    bench: &Bench,
    long_kb: u32,
    short_kb: u32,
    steps: u32,
    rounds: u32,
) -> Result<Figures> {
    let mut long = Grown::new(bench, long_kb).await?;
    let mut short = Grown::new(bench, short_kb).await?;
    let (mut long_ms, mut short_ms) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        long_ms.push(long.steps(bench, steps).await?);
        short_ms.push(short.steps(bench, steps).await?);
    }
    let (long_ms, short_ms) = (median(long_ms), median(short_ms));
    let mut figures = Figures::new();
    figures.insert(format!("step_ms.{long_kb}_kb"), json!(long_ms));
    figures.insert(format!("step_ms.{short_kb}_kb"), json!(short_ms));
    figures.insert("ratio".into(), json!(long_ms / short_ms));
    Ok(figures)
}

/// A session with some history.
pub(crate) struct Grown {
    session: SessionId,
    viewer: Subscription,
    round: u32,
}

impl Grown {
    /// Grows a history of `kb` kilobytes out of commands that print 10 KB each.
    pub(crate) async fn new(bench: &Bench, kb: u32) -> Result<Self> {
        let session = create(bench, None).await?;
        let viewer = attach(bench, session).await?;
        let mut grown = Self {
            session,
            viewer,
            round: 0,
        };
        let mut left = kb.div_ceil(10).max(1);
        while left > 0 {
            // Short turns: the model server looks for the plan near the end of a request only.
            let steps = left.min(10);
            left -= steps;
            grown.turn(bench, steps, PRINT_10_KB).await?;
        }
        Ok(grown)
    }

    /// Milliseconds of a step, the mean of `steps`, by the log's own clock.
    pub(crate) async fn steps(&mut self, bench: &Bench, steps: u32) -> Result<f64> {
        let ms = self.turn(bench, steps, "true").await?;
        Ok(f64::from(u32::try_from(ms)?) / f64::from(steps))
    }

    /// A turn of `steps` commands; its milliseconds.
    async fn turn(&mut self, bench: &Bench, steps: u32, command: &str) -> Result<u64> {
        self.round += 1;
        let text = format!("plan:round{} steps={steps} command={command};", self.round);
        let params = SendParams {
            session: self.session.to_string(),
            content: vec![Block::text(text)],
            ..SendParams::default()
        };
        bench.client.send(&params).await?;
        let (from, to) = turn(&mut self.viewer).await?;
        Ok(to.since_ms(from))
    }
}

/// Waits for the end of a turn; when it began and ended.
async fn turn(viewer: &mut Subscription) -> Result<(Timestamp, Timestamp)> {
    let mut began = None;
    loop {
        let push = tokio::time::timeout(PATIENCE, viewer.next())
            .await
            .context("the turn takes too long")?;
        let Push::Event(stored) = push.context("the viewer ended early")? else {
            continue;
        };
        let event: Event = serde_json::from_slice(&stored.json)?;
        match event.body {
            EventBody::TurnStarted(_) => began = Some(event.at),
            EventBody::TurnFinished(end) if end.reason == EndReason::Completed => {
                return Ok((began.unwrap_or(event.at), event.at));
            }
            EventBody::TurnFinished(end) => bail!("the turn ended with {:?}: {:?}", end.reason, end.error),
            _ => {}
        }
    }
}

/// A session, with a first prompt or without.
pub(crate) async fn create(bench: &Bench, prompt: Option<&str>) -> Result<SessionId> {
    create_in(bench, Path::new(&bench.workdir), prompt).await
}

/// A session in a directory.
pub(crate) async fn create_in(bench: &Bench, workdir: &Path, prompt: Option<&str>) -> Result<SessionId> {
    let params = CreateParams {
        prompt: prompt.map(|text| vec![Block::text(text)]),
        workdir: workdir.to_string_lossy().into_owned(),
        ..CreateParams::default()
    };
    Ok(bench.client.create(&params).await?.session)
}

/// Sees what happens in a session from its beginning.
pub(crate) async fn attach(bench: &Bench, session: SessionId) -> Result<Subscription> {
    let params = AttachParams {
        session: session.to_string(),
        ..AttachParams::default()
    };
    Ok(bench.client.attach(&params).await?)
}

async fn create_idle(bench: &Bench, sessions: u32) -> Result<()> {
    let mut running = JoinSet::new();
    for n in 0..sessions {
        if running.len() >= IN_FLIGHT {
            running.join_next().await.transpose()?.transpose()?;
        }
        let client = bench.client.clone();
        let workdir = bench.workdir.clone();
        running.spawn(async move {
            let params = CreateParams {
                title: Some(format!("idle {n}")),
                workdir,
                ..CreateParams::default()
            };
            client.create(&params).await.map(drop)
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(())
}

/// `sessions` at once, each a turn of `steps` steps.
async fn burst_of(bench: &Bench, sessions: u32, steps: u32) -> Result<()> {
    let mut viewers = Vec::new();
    for n in 0..sessions {
        let session = create(bench, Some(&format!("plan:b{n} steps={steps} command=true;"))).await?;
        viewers.push(attach(bench, session).await?);
    }
    for viewer in &mut viewers {
        turn(viewer).await?;
    }
    Ok(())
}

/// Waits until no session has an actor.
async fn cold(bench: &Bench) -> Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    let deadline = Instant::now() + PATIENCE;
    loop {
        ticks.tick().await;
        let hot = bench.client.status().await?.hot;
        if hot == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{hot} sessions stay in memory");
        }
        write!(std::io::stderr(), "\r{hot} sessions in memory   ")?;
    }
}

fn rate(things: u32, took: Duration) -> f64 {
    (f64::from(things) / took.as_secs_f64()).round()
}

/// The one in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Resident memory in megabytes (10^6 bytes).
pub(crate) fn rss_mb(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .context("no VmRSS")?;
    let kib: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok((kib * 1_024.0 / 100_000.0).round() / 10.0)
}

/// CPU time of the daemon and of the children it waited for, in milliseconds.
fn cpu_ms(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .context("no command name")?
        .1
        .split_whitespace()
        .collect();
    // utime, stime, cutime, cstime are fields 14 to 17 of proc(5), in ticks of 10 ms.
    let ticks: f64 = fields
        .iter()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    Ok(ticks * 10.0)
}
