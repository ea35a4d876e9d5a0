//! Several nodes on one PostgreSQL server: throughput compared with SQLite, takeover, drain, viewers at another node.

mod moves;
mod views;

use crate::config::{DaemonArgs, Member};
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all};
use crate::model_process::{MannerArgs, ModelProcess};
use crate::report::{Report, Target};
use agentd_process_tests::Postgres;
use anyhow::{Context as _, Result};
use clap::Args;
use futures_util::future::try_join_all;
use std::time::{Duration, Instant};

/// The load.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Nodes
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..))]
    nodes: u32,
    /// Open turns of the node that is killed, then of one that is stopped; sessions of the node that is drained
    #[arg(long, default_value_t = 1_000)]
    sessions: u32,
    /// Concurrent sessions of the throughput
    #[arg(long, default_value_t = 50)]
    active: u32,
    /// Steps of each of these
    #[arg(long, default_value_t = 50)]
    steps: u32,
    /// Waves of these on SQLite, at one node and at all nodes in turn; all count together
    #[arg(long, default_value_t = 3)]
    waves: u32,
    /// Sessions of one node that are followed at another
    #[arg(long, default_value_t = 100)]
    followed: u32,
    /// Seconds without a sign of life after which a node counts as gone
    #[arg(long, default_value_t = 10)]
    ttl: u32,
    /// Idle sessions, shared by the nodes; 0: none
    #[arg(long, default_value_t = 0)]
    idle: u32,
}

/// The nodes, and what they share. The server ends last.
#[derive(Debug)]
struct Cluster {
    nodes: Vec<Bench>,
    model: ModelProcess,
    _server: Postgres,
}

impl Cluster {
    async fn start(daemon: &DaemonArgs, manner: MannerArgs, args: &ClusterArgs) -> Result<Self> {
        let server = Postgres::start(&[]).context("PostgreSQL is not installed")?;
        let url = server.create("fleet").url;
        let model = ModelProcess::start(manner).await?;
        let mut nodes = Vec::new();
        for number in 0..args.nodes {
            let daemon = DaemonArgs {
                model_url: Some(model.url().to_owned()),
                member: Some(Member {
                    store: url.clone(),
                    name: format!("node{number}"),
                    ttl: args.ttl,
                }),
                ..daemon.clone()
            };
            nodes.push(Bench::start(&daemon, manner).await?);
        }
        Ok(Self {
            nodes,
            model,
            _server: server,
        })
    }

    fn node(&self, number: usize) -> Result<&Bench> {
        self.nodes.get(number).context("there are two nodes at least")
    }

    /// Waits until the model server has had this many requests.
    async fn requests(&self, wanted: u64) -> Result<()> {
        self.model.requests(wanted).await
    }
}

pub(crate) async fn run(daemon: &DaemonArgs, manner: MannerArgs, args: &ClusterArgs) -> Result<Report> {
    let mut report = Report::default();
    let alone = Bench::start(daemon, manner).await?;
    let mut cluster = Cluster::start(daemon, manner, args).await?;
    throughput(&alone, &cluster, args, &mut report).await?;
    drop(alone);
    views::behind(&cluster, args.followed, &mut report).await?;
    moves::kill(&mut cluster, args, &mut report).await?;
    moves::stop(&cluster, args, &mut report).await?;
    if args.idle > 0 {
        views::idle(&cluster, args.idle, &mut report).await?;
    }
    // Last, because the node ends.
    moves::drain(&mut cluster, args, &mut report).await?;
    Ok(report)
}

/// Steps per second on SQLite, of one node and of all. Their waves take turns, because the machine's speed changes.
async fn throughput(alone: &Bench, cluster: &Cluster, args: &ClusterArgs, report: &mut Report) -> Result<()> {
    let first = cluster.node(0)?;
    // Not at the first: a viewer of other nodes takes more work than a local one, and should take as much in both cases.
    let viewed = cluster.nodes.last().context("there are two nodes at least")?;
    let (mut at_alone, mut at_viewed) = (Watcher::start(alone).await?, Watcher::start(viewed).await?);
    let mut sqlite = Throughput::of("sqlite", vec![alone]);
    let mut one = Throughput::of("one", vec![first]);
    let mut all = Throughput::of("all", cluster.nodes.iter().collect());
    for wave in 0..=args.waves {
        sqlite.wave(wave, args, &mut at_alone).await?;
        one.wave(wave, args, &mut at_viewed).await?;
        all.wave(wave, args, &mut at_viewed).await?;
    }
    at_alone.all_completed()?;
    at_viewed.all_completed()?;
    let (sqlite, one, all) = (sqlite.per_second(), one.per_second(), all.per_second());
    report.number("steps_per_second.sqlite", sqlite);
    report.number("steps_per_second.one_node", one);
    report.aim("one_node_to_sqlite", one / sqlite, Target::AtLeast(0.7));
    report.number("steps_per_second.all_nodes", all);
    report.aim("all_nodes_to_one", all / one, Target::AtLeast(1.0));
    Ok(())
}

/// What sessions that are spread over some nodes get done.
struct Throughput<'a> {
    name: &'static str,
    nodes: Vec<&'a Bench>,
    steps: u32,
    took: Duration,
}

impl<'a> Throughput<'a> {
    const fn of(name: &'static str, nodes: Vec<&'a Bench>) -> Self {
        Self {
            name,
            nodes,
            steps: 0,
            took: Duration::ZERO,
        }
    }

    /// The first wave is short, warms up and does not count.
    async fn wave(&mut self, wave: u32, args: &ClusterArgs, watch: &mut Watcher) -> Result<()> {
        let share = args.active / u32::try_from(self.nodes.len())?;
        let steps = if wave == 0 { 2 } else { args.steps };
        let wanted = self
            .nodes
            .iter()
            .enumerate()
            .map(|(n, node)| Wanted::fleet(node, &format!("{}.{wave}.{n}.", self.name), share, steps))
            .collect::<Result<Vec<_>>>()?;
        let sessions = wanted.iter().map(|wanted| wanted.len() as u64).sum::<u64>();
        let turns = watch.ended() + sessions;
        let begun = Instant::now();
        let creating = self.nodes.iter().zip(wanted);
        try_join_all(creating.map(|(node, wanted)| create_all(&node.client, wanted))).await?;
        watch.until(turns).await?;
        if wave > 0 {
            self.took += begun.elapsed();
            self.steps += u32::try_from(sessions)? * steps;
        }
        Ok(())
    }

    fn per_second(&self) -> f64 {
        f64::from(self.steps) / self.took.as_secs_f64()
    }
}
