//! Measures the time of a step against the length of its history; helpers for other modes.

use crate::daemon::Bench;
use agentd_client::{Push, Subscription};
use agentd_protocol::{
    AttachParams, Block, CreateParams, EndReason, Event, EventBody, SendParams, SessionId, Timestamp,
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Named figures, sorted by name.
pub(crate) type Figures = BTreeMap<String, Value>;

/// A plan's command that prints 10 KB.
const PRINT_10_KB: &str = r"head_-c_10000_/dev/zero_|_tr_'\0'_x";
/// How long a burst or a round may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Compares the time of a step with a long and with a short history, in alternating rounds.
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
    /// Grows a history of `kb` kilobytes from commands that print 10 KB each.
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
            // Short turns, because the model server searches for the plan only near the end of a request.
            let steps = left.min(10);
            left -= steps;
            grown.turn(bench, steps, PRINT_10_KB).await?;
        }
        Ok(grown)
    }

    /// The mean milliseconds of a step over `steps` steps, by the log's timestamps.
    pub(crate) async fn steps(&mut self, bench: &Bench, steps: u32) -> Result<f64> {
        let ms = self.turn(bench, steps, "true").await?;
        Ok(f64::from(u32::try_from(ms)?) / f64::from(steps))
    }

    /// Runs a turn of `steps` commands. Returns its milliseconds.
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

/// Waits for the end of a turn. Returns when it began and ended.
async fn turn(viewer: &mut Subscription) -> Result<(Timestamp, Timestamp)> {
    let mut began = None;
    loop {
        let push = tokio::time::timeout(PATIENCE, viewer.next())
            .await
            .context("the turn did not end in time")?;
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

/// Creates a session, optionally with a first prompt.
pub(crate) async fn create(bench: &Bench, prompt: Option<&str>) -> Result<SessionId> {
    create_in(bench, Path::new(&bench.workdir), prompt).await
}

/// Creates a session in a directory.
pub(crate) async fn create_in(bench: &Bench, workdir: &Path, prompt: Option<&str>) -> Result<SessionId> {
    let params = CreateParams {
        prompt: prompt.map(|text| vec![Block::text(text)]),
        workdir: workdir.to_string_lossy().into_owned(),
        ..CreateParams::default()
    };
    Ok(bench.client.create(&params).await?.session)
}

/// Attaches to a session from its start.
pub(crate) async fn attach(bench: &Bench, session: SessionId) -> Result<Subscription> {
    let params = AttachParams {
        session: session.to_string(),
        ..AttachParams::default()
    };
    Ok(bench.client.attach(&params).await?)
}

/// The median.
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
