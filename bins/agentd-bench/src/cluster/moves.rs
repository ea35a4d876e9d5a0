//! Sessions that move: their node is killed, stopped or drained.

use super::{Cluster, ClusterArgs};
use crate::checks;
use crate::daemon::Bench;
use crate::drive::{PATIENCE, Wanted, Watcher, create_all};
use crate::report::{Report, Target};
use agentd_protocol::{FleetNode, PlaceParams, Placing, SessionId};
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// Seconds that a takeover may need after the node counts as gone.
const BEYOND_TTL: f64 = 1.5;
/// One in this many sessions of the drained node has an open turn.
const OPEN: u32 = 10;
/// The first request of a turn is not answered. The next ones are answered after a time that is usual for a model: otherwise the
/// takeover would compete with the work of the turns that go on already.
const HANGS: &str = "hang=1 hangs=1 first=4000";

/// Kills the first node (kill -9), and starts it again.
pub(super) async fn kill(cluster: &mut Cluster, args: &ClusterArgs, report: &mut Report) -> Result<()> {
    let mut open = Open::on_first(cluster, args, "k").await?;
    let node = cluster.nodes.first_mut().context("there is a node")?;
    node.kill().await?;
    let begun = Instant::now();
    open.goes_on(cluster, begun, ("kill", args), report).await?;
    let node = cluster.nodes.first_mut().context("there is a node")?;
    node.restart().await?;
    Ok(())
}

/// Stops the first node (SIGSTOP), and lets it go on when others have its sessions.
pub(super) async fn stop(cluster: &Cluster, args: &ClusterArgs, report: &mut Report) -> Result<()> {
    let mut open = Open::on_first(cluster, args, "s").await?;
    let pid = Pid::from_raw(i32::try_from(cluster.node(0)?.pid)?).context("a process id")?;
    kill_process(pid, Signal::STOP)?;
    let begun = Instant::now();
    let went_on = open.goes_on(cluster, begun, ("stop", args), report).await;
    kill_process(pid, Signal::CONT)?;
    went_on?;
    // It joins again as soon as it notices.
    until(cluster.node(1)?, "node0", |node| node.alive).await
}

/// Turns that wait for an answer which comes only when another node repeats the request.
struct Open {
    sessions: Vec<SessionId>,
    watch: Watcher,
    requests: u64,
}

impl Open {
    async fn on_first(cluster: &Cluster, args: &ClusterArgs, prefix: &str) -> Result<Self> {
        let before = cluster.model.served().await?.requests;
        let watch = Watcher::start(cluster.node(1)?).await?;
        let node = cluster.node(0)?;
        let wanted = with_words(Wanted::fleet(node, prefix, args.sessions, 1)?, HANGS);
        others(cluster, Placing::Cordoned).await?;
        let created = create_all(&node.client, wanted).await?;
        others(cluster, Placing::Open).await?;
        let requests = before + 2 * u64::from(args.sessions);
        cluster.requests(requests).await?;
        Ok(Self {
            sessions: created.into_keys().collect(),
            watch,
            requests,
        })
    }

    /// Measures the time until each request was repeated, waits for the ends of the turns, and checks the logs.
    async fn goes_on(
        &mut self,
        cluster: &Cluster,
        begun: Instant,
        (name, args): (&str, &ClusterArgs),
        report: &mut Report,
    ) -> Result<()> {
        cluster.requests(self.requests + u64::from(args.sessions)).await?;
        let took = begun.elapsed().as_secs_f64();
        let most = Target::AtMost(f64::from(args.ttl) + BEYOND_TTL);
        report.aim(format!("{name}.taken_over_seconds"), took, most);
        self.watch.until_each(&self.sessions, 1).await?;
        self.watch.all_completed()?;
        checks::logs(&cluster.node(1)?.client, &self.sessions, report).await
    }
}

fn with_words(wanted: Vec<Wanted>, words: &str) -> Vec<Wanted> {
    let more = |mut wanted: Wanted| {
        wanted.prompt = wanted.prompt.map(|plan| plan.replace(';', &format!(" {words};")));
        wanted
    };
    wanted.into_iter().map(more).collect()
}

/// Drains the first node. Some of its sessions have turns with model calls of 200 ms.
pub(super) async fn drain(cluster: &mut Cluster, args: &ClusterArgs, report: &mut Report) -> Result<()> {
    let (node, other) = (cluster.node(0)?, cluster.node(1)?);
    let open = args.sessions / OPEN;
    let idle = (open..args.sessions).map(|n| Wanted {
        name: format!("d{n}"),
        workdir: node.workdir.clone(),
        prompt: None,
    });
    others(cluster, Placing::Cordoned).await?;
    create_all(&node.client, idle).await?;
    let mut watch = Watcher::start(other).await?;
    let wanted = with_words(Wanted::fleet(node, "o", open, 20)?, "first=200");
    let created = create_all(&node.client, wanted).await?;
    others(cluster, Placing::Open).await?;
    let sessions: Vec<SessionId> = created.into_keys().collect();
    let begun = Instant::now();
    place(other, "node0", Placing::Draining).await?;
    until(other, "node0", |node| !node.alive && node.sessions == 0).await?;
    report.aim(
        "drain.seconds",
        begun.elapsed().as_secs_f64(),
        Target::AtMost(5.0),
    );
    watch.until_each(&sessions, 1).await?;
    watch.all_completed()?;
    checks::logs(&other.client, &sessions, report).await
}

async fn place(by: &Bench, node: &str, placing: Placing) -> Result<()> {
    let params = PlaceParams {
        node: node.to_owned(),
        placing,
    };
    by.client.place(&params).await?;
    Ok(())
}

/// Cordons all nodes but the first one, so that it passes no new session on to them, or opens them again. Returns when the
/// list of nodes says so.
async fn others(cluster: &Cluster, placing: Placing) -> Result<()> {
    for number in 1..cluster.nodes.len() {
        let (by, name) = (cluster.node(0)?, format!("node{number}"));
        place(by, &name, placing).await?;
        until(by, &name, |node| node.placing == placing).await?;
    }
    Ok(())
}

/// Waits until a node says this of another one.
async fn until(by: &Bench, name: &str, holds: impl Fn(&FleetNode) -> bool) -> Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let waiting = async {
        loop {
            ticks.tick().await;
            let nodes = by.client.nodes().await?;
            if nodes.iter().any(|node| node.name == name && holds(node)) {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .context("the node does not end or come back")?
}
