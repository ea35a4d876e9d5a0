//! Many sessions on a frozen file system and some on a healthy disk. Measures the cost for the healthy ones and the latency
//! of the control plane, and checks that all sessions continue after the thaw.

use crate::checks;
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all, send};
use crate::ice::{Ice, Kind};
use crate::measure::median;
use crate::report::{Report, Target};
use agentd_client::Client;
use agentd_protocol::{BulkAction, BulkParams, CancelTurnParams, EndReason, ListParams, SessionId};
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The pause between two listings.
const PAUSE: Duration = Duration::from_millis(50);
/// The time limit of one request to the control plane.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a model takes to answer in the phases at a part of the load: without it, the healthy sessions use all processors,
/// and whatever asks for one waits, frozen file system or not.
const THINKS_MS: u32 = 250;
/// How long to measure the CPU time of a daemon without requests.
const IDLE: Duration = Duration::from_secs(5);

/// The parameters of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) frozen: u32,
    pub(crate) healthy: u32,
    pub(crate) steps: u32,
    /// Rounds of the healthy sessions in each phase.
    pub(crate) rounds: u32,
    /// Freezes that are measured, each between two phases without one.
    pub(crate) cycles: u32,
}

/// A round, or the median of several.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// Steps per second.
    rate: f64,
    /// CPU time of a step: the daemon, its helpers and their commands.
    cpu_ms: f64,
}

struct World<'a> {
    bench: &'a mut Bench,
    kind: Kind,
    load: Load,
    watch: Watcher,
    /// The healthy sessions of the current phase.
    healthy: Vec<SessionId>,
    frozen: Vec<SessionId>,
    /// Phases so far.
    phases: u32,
    /// Turns so far of each frozen session.
    frozen_turns: usize,
}

/// The rounds of one group of healthy sessions.
struct Phase {
    /// Their median.
    round: Round,
    /// The milliseconds of each listing meanwhile.
    listed: Vec<f64>,
}

/// Measures one kind of file system; the names of the figures begin with its name.
pub(crate) async fn run(bench: &mut Bench, kind: Kind, load: Load, report: &mut Report) -> Result<()> {
    let mut ice = match Ice::new(kind) {
        Ok(ice) => ice,
        Err(error) => {
            report.put(format!("{}.skipped", kind.name()), error.to_string());
            return Ok(());
        }
    };
    let watch = Watcher::start(bench).await?;
    let mut world = World {
        healthy: Vec::new(),
        frozen: Vec::new(),
        phases: 0,
        frozen_turns: 0,
        bench,
        kind,
        load,
        watch,
    };
    world.create_frozen(ice.directory()).await?;
    world.healthy = world.create_healthy().await?;
    world.round(1, 0).await?;
    let name = kind.name();
    let idle = world.idle().await?;
    report.number(format!("{name}.idle_cpu_ms_per_second.alone"), idle);
    // Phases alternate, so that a machine whose speed drifts does not favour either kind.
    let (mut go_on, mut failed) = (0, 0);
    let (mut calm, mut busy) = (vec![world.phase(0).await?], Vec::new());
    let (mut part_calm, mut part_busy) = (vec![world.phase(THINKS_MS).await?], Vec::new());
    for cycle in 1..=load.cycles {
        ice.freeze()?;
        world.send_frozen().await?;
        busy.push(world.phase(0).await?);
        part_busy.push(world.phase(THINKS_MS).await?);
        if cycle == load.cycles {
            let idle = world.idle().await?;
            report.number(format!("{name}.idle_cpu_ms_per_second.with_frozen"), idle);
            world.control(ice.directory(), report).await?;
        }
        ice.thaw()?;
        go_on = world.goes_on("thaw", &mut failed).await?;
        part_calm.push(world.phase(THINKS_MS).await?);
        calm.push(world.phase(0).await?);
    }
    compare(name, &mut calm, &mut busy, report);
    at_a_part(name, &mut part_calm, &mut part_busy, report);
    report.put(format!("{name}.go_on_after_thaw"), go_on);
    report.put(format!("{name}.failed_calls_after_thaw"), failed);
    ice.freeze()?;
    world.send_frozen().await?;
    world.stop(report).await?;
    ice.thaw()?;
    let mut failed = 0;
    let go_on = world.goes_on("restart", &mut failed).await?;
    report.put(format!("{name}.go_on_after_restart"), go_on);
    report.put(format!("{name}.failed_calls_after_restart"), failed);
    let all = world.healthy.iter().chain(&world.frozen);
    checks::logs(&world.bench.client, all, report).await
}

/// Reports the phases of each kind and the ratio of their speeds: each frozen phase against the mean of its neighbours.
fn compare(name: &str, calm: &mut [Phase], busy: &mut [Phase], report: &mut Report) {
    let ratios = busy.iter().zip(calm.windows(2)).map(|(busy, around)| {
        let around: f64 = around.iter().map(|phase| phase.round.rate).sum();
        2.0 * busy.round.rate / around
    });
    let ratio = median(ratios.collect());
    for (kind, phases) in [("alone", calm), ("with_frozen", busy)] {
        let of = |figure: fn(&Round) -> f64| phases.iter().map(|phase| figure(&phase.round)).collect();
        let rates: Vec<f64> = of(|round| round.rate.round());
        report.put(format!("{name}.phases.{kind}"), rates);
        report.number(
            format!("{name}.steps_per_second.{kind}"),
            median(of(|round| round.rate)),
        );
        report.number(
            format!("{name}.cpu_ms_per_step.{kind}"),
            median(of(|round| round.cpu_ms)),
        );
        report.percentiles(
            &format!("{name}.ps_ms.{kind}"),
            &mut listed(phases),
            None::<Target>,
        );
    }
    report.aim(format!("{name}.ratio"), ratio, Target::AtLeast(0.9));
}

/// Reports the phases at a part of the load.
fn at_a_part(name: &str, calm: &mut [Phase], busy: &mut [Phase], report: &mut Report) {
    for (kind, phases) in [("alone", calm), ("with_frozen", busy)] {
        let rate = median(phases.iter().map(|phase| phase.round.rate).collect());
        report.number(format!("{name}.part.steps_per_second.{kind}"), rate);
        let name = format!("{name}.part.ps_ms.{kind}");
        report.percentiles(&name, &mut listed(phases), Some(Target::AtMost(100.0)));
    }
}

/// The milliseconds of all listings.
fn listed(phases: &mut [Phase]) -> Vec<f64> {
    phases
        .iter_mut()
        .flat_map(|phase| phase.listed.drain(..))
        .collect()
}

impl World<'_> {
    async fn create_healthy(&self) -> Result<Vec<SessionId>> {
        let prefix = format!("{}-healthy{}", self.kind.name(), self.phases);
        let mut wanted = Wanted::fleet(self.bench, &prefix, self.load.healthy, 0)?;
        for wanted in &mut wanted {
            wanted.prompt = None;
        }
        Ok(create_all(&self.bench.client, wanted)
            .await?
            .into_keys()
            .collect())
    }

    async fn create_frozen(&mut self, ice: &Path) -> Result<()> {
        let mut wanted = Vec::new();
        for n in 0..self.load.frozen {
            let workdir = ice.join(format!("w{n}"));
            std::fs::create_dir(&workdir)?;
            std::fs::write(workdir.join("bench.txt"), "a line\n".repeat(100))?;
            wanted.push(Wanted {
                name: format!("{}-{n}", self.kind.name()),
                workdir: workdir.to_string_lossy().into_owned(),
                prompt: None,
            });
        }
        self.frozen = create_all(&self.bench.client, wanted)
            .await?
            .into_keys()
            .collect();
        Ok(())
    }

    /// The CPU time per second without requests.
    async fn idle(&self) -> Result<f64> {
        let before = self.bench.usage()?.cpu_ms;
        tokio::time::sleep(IDLE).await;
        Ok((self.bench.usage()?.cpu_ms - before) / IDLE.as_secs_f64())
    }

    /// Runs a turn of each healthy session, their `turn`th, with a model that thinks so long.
    async fn round(&mut self, turn: usize, thinks_ms: u32) -> Result<Round> {
        let key = format!("phase{}.round{turn}", self.phases);
        let plan = self.bench.args.tools.plan(&key, self.load.steps);
        let plan = plan.replace(" steps=", &format!(" first={thinks_ms} steps="));
        let (begun, cpu) = (Instant::now(), self.bench.usage()?.cpu_ms);
        for session in &self.healthy {
            send(&self.bench.client, *session, &plan).await?;
        }
        self.watch.until_each(&self.healthy, turn).await?;
        let steps = f64::from(self.load.steps * self.load.healthy);
        Ok(Round {
            rate: steps / begun.elapsed().as_secs_f64(),
            cpu_ms: (self.bench.usage()?.cpu_ms - cpu) / steps,
        })
    }

    /// Replaces the healthy sessions by new ones, since a step costs more in a longer session, and runs their rounds.
    async fn phase(&mut self, thinks_ms: u32) -> Result<Phase> {
        let earlier = BulkParams {
            action: Some(BulkAction::Delete),
            sessions: self.healthy.iter().map(ToString::to_string).collect(),
            force: true,
            ..BulkParams::default()
        };
        let deleted = self.bench.client.bulk(&earlier).await?;
        ensure!(
            deleted.outcomes.iter().all(|outcome| outcome.fault.is_none()),
            "cannot delete the sessions of the last phase"
        );
        self.phases += 1;
        self.healthy = self.create_healthy().await?;
        let listing = listing(self.bench.connect().await?);
        let mut rounds = Vec::new();
        for turn in 1..=self.load.rounds as usize {
            rounds.push(self.round(turn, thinks_ms).await?);
        }
        listing.stop.send_replace(true);
        let listed = tokio::time::timeout(PATIENCE, listing.task)
            .await
            .context("a listing did not end in time")???;
        let round = Round {
            rate: median(rounds.iter().map(|round| round.rate).collect()),
            cpu_ms: median(rounds.iter().map(|round| round.cpu_ms).collect()),
        };
        Ok(Phase { round, listed })
    }

    async fn send_frozen(&mut self) -> Result<()> {
        self.frozen_turns += 1;
        for (n, session) in self.frozen.iter().enumerate() {
            let plan = self.kind.plan(n, &format!("ice{}", self.frozen_turns));
            send(&self.bench.client, *session, &plan).await?;
        }
        Ok(())
    }

    /// What an operator may do while the file system is frozen.
    async fn control(&mut self, ice: &Path, report: &mut Report) -> Result<()> {
        let name = self.kind.name();
        let client = &self.bench.client;
        let create = |title: &str, workdir: String| Wanted {
            name: title.to_owned(),
            workdir,
            prompt: None,
        };
        let (took, created) = timed(create("healthy", self.bench.workdir.clone()).create(client)).await?;
        let fresh = created.context("cannot create a session on a healthy disk")?;
        report.number(format!("{name}.create_ms.with_frozen"), took);
        // Its first command needs a warden, which the shared fork server starts.
        send(client, fresh, "plan:fresh steps=1 command=true;").await?;
        let (took, ended) = timed(self.watch.until_each(&[fresh], 1)).await?;
        ended?;
        report.number(format!("{name}.first_command_ms"), took);
        let (took, created) =
            timed(create("in_frozen", ice.to_string_lossy().into_owned()).create(client)).await?;
        report.number(format!("{name}.create_ms.in_frozen"), took);
        report.put(
            format!("{name}.create.in_frozen"),
            created.map_or_else(|error| error.to_string(), |_| "created".to_owned()),
        );
        let hanging = client.status().await?.hanging;
        let calls: u64 = hanging.iter().map(|system| system.calls).sum();
        report.put(format!("{name}.calls_that_hang"), calls);
        let ended = |session: &SessionId| self.watch.with(|seen| seen.ends.get(session).map_or(0, Vec::len));
        let open: Vec<_> = self
            .frozen
            .iter()
            .copied()
            .filter(|session| ended(session) < self.frozen_turns)
            .collect();
        report.put(format!("{name}.turns_open"), open.len());
        let (begun, mut cancels) = (Instant::now(), Vec::new());
        for session in &open {
            let params = CancelTurnParams {
                session: session.to_string(),
                ..CancelTurnParams::default()
            };
            // A turn that has just ended cannot be cancelled; turns that do not end are found below.
            let (took, _) = timed(client.cancel_turn(&params)).await?;
            cancels.push(took);
        }
        let ending = self.watch.until_each(&open, self.frozen_turns);
        tokio::time::timeout(PATIENCE, ending)
            .await
            .context("a cancelled turn did not end in time")??;
        let ended = begun.elapsed().as_secs_f64() * 1_000.0;
        report.number(format!("{name}.all_cancelled_ms"), ended);
        report.percentiles(&format!("{name}.cancel_ms"), &mut cancels, None::<Target>);
        Ok(())
    }

    /// Checks that every turn ends, and that each frozen session can then make a step. Returns how many did; adds the calls
    /// of that step that failed.
    async fn goes_on(&mut self, after: &str, failed: &mut u64) -> Result<usize> {
        let frozen = self.frozen.clone();
        timed(self.watch.until_each(&frozen, self.frozen_turns))
            .await?
            .1?;
        let before = self.watch.with(|seen| seen.failed_tools);
        self.send_frozen().await?;
        timed(self.watch.until_each(&frozen, self.frozen_turns))
            .await?
            .1?;
        let completed = self.watch.with(|seen| {
            let last = |session| seen.ends.get(session).and_then(|ends| ends.last());
            frozen
                .iter()
                .filter(|session| last(*session) == Some(&EndReason::Completed))
                .count()
        });
        *failed += self.watch.with(|seen| seen.failed_tools) - before;
        ensure!(
            completed == frozen.len(),
            "some sessions did not continue after the {after}"
        );
        Ok(completed)
    }

    /// Stops the daemon and starts the next one on the same data while the file system is frozen.
    async fn stop(&mut self, report: &mut Report) -> Result<()> {
        let begun = Instant::now();
        self.bench.client.drain().await?;
        let _first = self.bench.take_over().await?;
        let took = begun.elapsed().as_secs_f64() * 1_000.0;
        report.number(format!("{}.stop_ms", self.kind.name()), took);
        self.watch = Watcher::since(self.bench, Some(0)).await?;
        Ok(())
    }
}

struct Listing {
    stop: tokio::sync::watch::Sender<bool>,
    task: JoinHandle<Result<Vec<f64>>>,
}

/// Lists all sessions repeatedly, as `ps` does, until `stop`.
fn listing(client: Client) -> Listing {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let task = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(PAUSE);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut times = Vec::new();
        while !*stopped.borrow() {
            ticks.tick().await;
            let begun = Instant::now();
            client.list(&ListParams::default()).await?;
            client.status().await?;
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        }
        Ok(times)
    });
    Listing { stop, task }
}

/// The duration in milliseconds, and the result.
async fn timed<T>(what: impl Future<Output = T>) -> Result<(f64, T)> {
    let begun = Instant::now();
    let done = tokio::time::timeout(PATIENCE, what).await.context("no answer")?;
    Ok((begun.elapsed().as_secs_f64() * 1_000.0, done))
}
