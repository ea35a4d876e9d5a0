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
    #[arg(long, default_value_t = 10)]
    steps: u32,
    /// Waves of these; all count together
    #[arg(long, default_value_t = 5)]
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
    let sqlite = steps_per_second(&[&alone], args).await?;
    report.number("steps_per_second.sqlite", sqlite);
    drop(alone);
    let mut cluster = Cluster::start(daemon, manner, args).await?;
    let one = steps_per_second(&[cluster.node(0)?], args).await?;
    let all = cluster.nodes.iter().collect::<Vec<_>>();
    let together = steps_per_second(&all, args).await?;
    report.number("steps_per_second.one_node", one);
    report.aim("one_node_to_sqlite", one / sqlite, Target::AtLeast(0.7));
    report.number("steps_per_second.all_nodes", together);
    report.aim("all_nodes_to_one", together / one, Target::AtLeast(1.0));
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

/// Throughput of sessions that are spread over these nodes, after a short wave to warm up.
async fn steps_per_second(nodes: &[&Bench], args: &ClusterArgs) -> Result<f64> {
    let first = *nodes.first().context("there is a node")?;
    let mut watch = Watcher::start(first).await?;
    let share = args.active / u32::try_from(nodes.len())?;
    let mut took = Duration::ZERO;
    for wave in 0..=args.waves {
        let steps = if wave == 0 { 2 } else { args.steps };
        let prefix = format!("of{}.{wave}.", nodes.len());
        let wanted = nodes
            .iter()
            .enumerate()
            .map(|(n, node)| Wanted::fleet(node, &format!("{prefix}{n}."), share, steps))
            .collect::<Result<Vec<_>>>()?;
        let turns = watch.ended() + wanted.iter().map(|wanted| wanted.len() as u64).sum::<u64>();
        let begun = Instant::now();
        let creating = nodes.iter().zip(wanted);
        try_join_all(creating.map(|(node, wanted)| create_all(&node.client, wanted))).await?;
        watch.until(turns).await?;
        if wave > 0 {
            took += begun.elapsed();
        }
    }
    watch.all_completed()?;
    let steps = share * u32::try_from(nodes.len())? * args.steps * args.waves;
    Ok(f64::from(steps) / took.as_secs_f64())
}
