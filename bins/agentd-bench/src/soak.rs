//! Minutes of load with random faults: kills of the daemon and its helpers, cancels, stalled viewers, a failing model
//! server. Checks that every turn ends and that every log is intact.

use crate::checks;
use crate::daemon::Bench;
use crate::drive::{PATIENCE, Wanted, create_all};
use crate::report::Report;
use crate::strike::strike;
use crate::viewers::stall;
use agentd_bench::model_server::fraction;
use agentd_protocol::{CancelTurnParams, ListParams, SessionId};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;

/// How long and how much.
#[derive(Debug, Clone, Args)]
pub(crate) struct SoakArgs {
    /// Seconds; the running round is completed
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// Sessions per round
    #[arg(long, default_value_t = 50)]
    sessions: u32,
    /// Steps per session
    #[arg(long, default_value_t = 10)]
    steps: u32,
}

/// The random numbers of one seed.
struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    fn throw(&mut self) -> f64 {
        self.thrown += 1;
        fraction(self.seed, self.thrown)
    }
}

pub(crate) async fn run(bench: &mut Bench, args: &SoakArgs, seed: u64) -> Result<Report> {
    let mut report = Report::default();
    let mut counts = BTreeMap::new();
    let mut dice = Dice { seed, thrown: 0 };
    let begun = Instant::now();
    let mut rounds = 0_u32;
    let mut ids = Vec::new();
    while rounds == 0 || begun.elapsed() < Duration::from_secs(args.seconds) {
        ids = round(bench, args, rounds, &mut dice, &mut counts)
            .await
            .with_context(|| format!("in round {rounds} of seed {seed}"))?;
        rounds += 1;
    }
    report.put("rounds", rounds);
    report.put("seed", seed);
    for (name, count) in &counts {
        report.put(name, *count);
    }
    report.number("rss_mb", bench.usage()?.rss_mb);
    report.put("fds", bench.usage()?.fds);
    checks::logs(&bench.client, &ids, &mut report).await?;
    Ok(report)
}

async fn round(
    bench: &mut Bench,
    args: &SoakArgs,
    number: u32,
    dice: &mut Dice,
    counts: &mut BTreeMap<String, u32>,
) -> Result<Vec<SessionId>> {
    let wanted = Wanted::fleet(bench, &format!("k{number}."), args.sessions, args.steps)?;
    let created = create_all(&bench.client, wanted).await?;
    let mut ids: Vec<SessionId> = created.into_keys().collect();
    ids.sort_unstable();
    let mut stalled: Vec<UnixStream> = Vec::new();
    for session in &ids {
        let thrown = dice.throw();
        if thrown < 0.1 {
            let params = CancelTurnParams {
                session: session.to_string(),
                ..CancelTurnParams::default()
            };
            // The turn may have ended already.
            let cancelled = bench.client.cancel_turn(&params).await.is_ok();
            *counts.entry("cancelled".to_owned()).or_default() += u32::from(cancelled);
        } else if thrown < 0.2 {
            stalled.push(stall(bench, *session).await?);
            *counts.entry("stalled_viewers".to_owned()).or_default() += 1;
        }
    }
    if dice.throw() < 0.5 {
        tokio::time::sleep(Duration::from_secs_f64(dice.throw())).await;
        // The daemon dies alone, or together with some helpers, or only helpers die.
        let (helpers, daemon) = (dice.throw() < 0.7, dice.throw() < 0.8);
        let family = helpers
            .then(|| strike(bench.pid, || dice.throw(), counts))
            .transpose()?;
        if daemon || !helpers {
            bench.kill().await?;
            bench.restart().await?;
            *counts.entry("kills".to_owned()).or_default() += 1;
            // The new daemon is ready and its sessions continue, so no process of the old one may still run.
            let left = family.map_or_else(Vec::new, |family| family.left());
            ensure!(
                left.is_empty(),
                "processes outlived the daemon and the start of the next one: {left:?}"
            );
        }
    }
    quiet(bench).await?;
    *counts.entry("turns".to_owned()).or_default() += args.sessions;
    checks::logs(&bench.client, &ids, &mut Report::default()).await?;
    Ok(ids)
}

/// Waits until no session has an open turn.
async fn quiet(bench: &Bench) -> Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    let params = ListParams::default();
    let waiting = async {
        loop {
            ticks.tick().await;
            let rows = bench.client.list(&params).await?;
            if rows.iter().all(|row| row.turn.is_none()) {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .context("turns did not end in time")?
}
