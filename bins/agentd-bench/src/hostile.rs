//! One session that consumes resources without limit, or many on a frozen file system, next to ordinary ones. Measures
//! the daemon's memory and the steps of the other sessions.

use crate::daemon::Bench;
use crate::frozen::{self, Load};
use crate::ice::Kind;
use crate::measure::{Figures, Grown, attach, create, median, rss_mb};
use crate::report::Report;
use agentd_client::Push;
use agentd_protocol::{Block, Event, EventBody, SendParams, SessionId};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use futures_util::future::{OptionFuture, join, join_all};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The attacks: a name and a command.
const ATTACKS: [(&str, &str); 5] = [
    ("output", "head -c 1000000000 /dev/zero | tr '\\0' x"),
    ("processes", "b() { b | b & }; b; sleep 600"),
    (
        "files",
        "mkdir -p many; cd many; perl -e 'for (1 .. 1000000) { open my $f, \">\", $_ }'; sleep 600",
    ),
    ("sparse", "exec truncate -s 100G big"),
    ("memory", "perl -e 'my @a; push @a, \"x\" x (1 << 20) while 1'"),
];

/// The pause between two samples of the daemon's memory.
const LOOK: Duration = Duration::from_millis(20);

/// The load.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostileArgs {
    /// Only these cases: output, processes, files, sparse, memory, frozen, fsfreeze
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Ordinary sessions next to one attack
    #[arg(long, default_value_t = 4)]
    sessions: u32,
    /// Sessions on the frozen file system
    #[arg(long, default_value_t = 200)]
    frozen: u32,
    /// Ordinary sessions next to them
    #[arg(long, default_value_t = 50)]
    healthy: u32,
    /// Steps of each turn of an ordinary session
    #[arg(long, default_value_t = 20)]
    steps: u32,
    /// Turns of each ordinary session in a phase with or without a frozen file system
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Freezes to measure, each between two phases without one
    #[arg(long, default_value_t = 3)]
    cycles: u32,
}

pub(crate) async fn run(bench: &mut Bench, args: &HostileArgs) -> Result<Report> {
    let kinds = [Kind::Silent, Kind::NoWrites];
    let known = |case: &str| {
        ATTACKS.iter().any(|(name, _)| *name == case) || kinds.iter().any(|kind| kind.name() == case)
    };
    if let Some(unknown) = args.cases.iter().find(|case| !known(case)) {
        bail!("unknown case `{unknown}`; see --help");
    }
    let wanted = |case: &str| args.cases.is_empty() || args.cases.iter().any(|name| name == case);
    let attacks: Vec<_> = ATTACKS.into_iter().filter(|(name, _)| wanted(name)).collect();
    let mut report = Report::from(beside(bench, &attacks, args.sessions, args.steps).await?);
    let load = Load {
        frozen: args.frozen,
        healthy: args.healthy,
        steps: args.steps,
        rounds: args.rounds,
        cycles: args.cycles,
    };
    for kind in kinds {
        if wanted(kind.name()) {
            frozen::run(bench, kind, load, &mut report).await?;
        }
    }
    Ok(report)
}

/// Runs each attack next to `sessions` ordinary sessions with turns of `steps` steps.
async fn beside(bench: &Bench, attacks: &[(&str, &str)], sessions: u32, steps: u32) -> Result<Figures> {
    let mut figures = Figures::new();
    if attacks.is_empty() {
        return Ok(figures);
    }
    let mut others = Vec::new();
    for _ in 0..sessions.max(1) {
        others.push(Grown::new(bench, 10).await?);
    }
    for (name, script) in attacks {
        let file = format!("{name}.sh");
        std::fs::write(std::path::Path::new(&bench.workdir).join(&file), script)?;
        let (calm, _) = together(
            bench,
            &mut others,
            steps,
            None::<std::future::Ready<Result<String>>>,
        )
        .await?;
        let session = create(bench, None).await?;
        // One step first, so that its warden is running.
        step(bench, session, "true", 1).await?;
        let before = rss_mb(bench.pid)?;
        let most = Arc::new(Mutex::new(before));
        let watch = tokio::spawn(watch(bench.pid, Arc::clone(&most)));
        let command = format!("bash_{file}");
        let attack = step(bench, session, &command, 2);
        let (busy, said) = together(bench, &mut others, steps, Some(attack)).await?;
        watch.abort();
        let grown = *most.lock().unwrap_or_else(PoisonError::into_inner) - before;
        figures.insert(format!("{name}.0_step_ms_calm"), json!(round(calm)));
        figures.insert(format!("{name}.1_step_ms_beside"), json!(round(busy)));
        figures.insert(format!("{name}.2_ratio"), json!(round(busy / calm)));
        figures.insert(format!("{name}.3_daemon_grew_mb"), json!(round(grown.max(0.0))));
        figures.insert(format!("{name}.4_told"), json!(said.unwrap_or_default()));
    }
    Ok(figures)
}

/// Records the peak memory.
async fn watch(pid: u32, most: Arc<Mutex<f64>>) {
    let mut ticks = tokio::time::interval(LOOK);
    while let Ok(mb) = rss_mb(pid) {
        note(&most, mb);
        ticks.tick().await;
    }
}

fn note(most: &Mutex<f64>, mb: f64) {
    let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
    *most = most.max(mb);
}

/// Runs a turn of every ordinary session concurrently. Returns the median time of a step, and the attack's last output.
async fn together(
    bench: &Bench,
    others: &mut [Grown],
    steps: u32,
    attack: Option<impl Future<Output = Result<String>>>,
) -> Result<(f64, Option<String>)> {
    let turns = join_all(others.iter_mut().map(|other| other.steps(bench, steps)));
    let (times, said) = join(turns, OptionFuture::from(attack)).await;
    let times: Vec<f64> = times.into_iter().collect::<Result<_>>()?;
    Ok((median(times), said.transpose()?))
}

/// Runs the session's turn with this number, of one step. Returns the last line of its result.
async fn step(bench: &Bench, session: SessionId, command: &str, number: u32) -> Result<String> {
    let mut viewer = attach(bench, session).await?;
    let text = format!("plan:{command} steps=1 command={command};");
    let params = SendParams {
        session: session.to_string(),
        content: vec![Block::text(text)],
        ..SendParams::default()
    };
    bench.client.send(&params).await?;
    let mut said = String::new();
    let mut ended = 0;
    loop {
        let push = tokio::time::timeout(Duration::from_secs(600), viewer.next())
            .await
            .context("the attack did not end in time")?;
        let Push::Event(stored) = push.context("the viewer ended early")? else {
            continue;
        };
        let event: Event = serde_json::from_slice(&stored.json)?;
        match event.body {
            EventBody::ToolFinished(finished) => {
                said = finished
                    .outcome
                    .llm_text
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .chars()
                    .take(160)
                    .collect();
            }
            EventBody::TurnFinished(_) => ended += 1,

            _ => {}
        }
        if ended == number {
            return Ok(said);
        }
    }
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
