//! Compares the steps of a running fleet with and without the daemon making maps of a source tree.

use crate::daemon::Bench;
use crate::measure::{Figures, attach, create};
use agentd_client::{Push, Subscription};
use agentd_protocol::{Block, CreateParams, Event, EventBody, Preset, SendParams, SessionId};
use anyhow::{Context as _, Result, ensure};
use futures_util::future::join_all;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Sessions of the fleet.
const SESSIONS: u32 = 20;
/// Steps per turn.
const STEPS: u32 = 20;
/// Rounds of each kind, alternating: without a map and during one.
const ROUNDS: u32 = 5;
/// How long a turn may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Measures both kinds of rounds. For each map, it creates a session of the preset react, whose prompt contains one.
pub(crate) async fn run(bench: &Bench, dir: &Path) -> Result<Figures> {
    let mut fleet = Fleet::new(bench).await?;
    let (mut calm, mut beside, mut maps) = (Vec::new(), Vec::new(), 0);
    for n in 0..ROUNDS {
        calm.extend(fleet.round(bench, 2 * n + 1).await?);
        let steps = fleet.round(bench, 2 * n + 2);
        tokio::pin!(steps);
        loop {
            tokio::select! {
                biased;
                steps = &mut steps => {
                    beside.extend(steps?);
                    break;
                }
                made = map(bench, dir) => {
                    made?;
                    maps += 1;
                }
            }
        }
    }
    let mut figures = Figures::new();
    for (name, times) in [("calm", &mut calm), ("beside", &mut beside)] {
        ensure!(!times.is_empty(), "no step was measured");
        times.sort_unstable();
        figures.insert(format!("repo_map.step_ms_p50_{name}"), json!(at(times, 50)));
        figures.insert(format!("repo_map.step_ms_p99_{name}"), json!(at(times, 99)));
    }
    figures.insert("repo_map.maps_beside".into(), json!(maps));
    figures.insert("repo_map.steps_of_each".into(), json!(calm.len()));
    Ok(figures)
}

async fn map(bench: &Bench, dir: &Path) -> Result<()> {
    let params = CreateParams {
        workdir: dir.to_string_lossy().into_owned(),
        preset: Some(Preset::React),
        ..CreateParams::default()
    };
    bench.client.create(&params).await?;
    Ok(())
}

/// Sessions with concurrent turns.
pub(crate) struct Fleet(Vec<(SessionId, Subscription)>);

impl Fleet {
    /// Sessions that have had one turn each, so that wardens and connections exist.
    pub(crate) async fn new(bench: &Bench) -> Result<Self> {
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            let session = create(bench, None).await?;
            sessions.push((session, attach(bench, session).await?));
        }
        let mut fleet = Self(sessions);
        fleet.round(bench, 0).await?;
        Ok(fleet)
    }

    /// Runs a turn of every session concurrently. Returns the milliseconds of their steps by the log's timestamps.
    pub(crate) async fn round(&mut self, bench: &Bench, number: u32) -> Result<Vec<u64>> {
        let turns = self
            .0
            .iter_mut()
            .map(|(session, viewer)| turn(bench, *session, viewer, number));
        let mut all = Vec::new();
        for times in join_all(turns).await {
            all.extend(times?);
        }
        Ok(all)
    }
}

async fn turn(bench: &Bench, session: SessionId, viewer: &mut Subscription, number: u32) -> Result<Vec<u64>> {
    let text = format!("plan:r{number} steps={STEPS} command=true;");
    let params = SendParams {
        session: session.to_string(),
        content: vec![Block::text(text)],
        ..SendParams::default()
    };
    bench.client.send(&params).await?;
    let (mut times, mut last) = (Vec::new(), None);
    loop {
        let push = tokio::time::timeout(PATIENCE, viewer.next())
            .await
            .context("the turn did not end in time")?;
        let Push::Event(stored) = push.context("the viewer ended early")? else {
            continue;
        };
        let event: Event = serde_json::from_slice(&stored.json)?;
        match event.body {
            EventBody::ModelStarted(_) => {
                times.extend(last.map(|last| event.at.since_ms(last)));
                last = Some(event.at);
            }
            EventBody::TurnFinished(_) => return Ok(times),
            _ => {}
        }
    }
}

/// A percentile of sorted times.
pub(crate) fn at(sorted: &[u64], percent: usize) -> u64 {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or_default()
}
