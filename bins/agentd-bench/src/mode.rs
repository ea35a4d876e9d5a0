//! What can be measured.

use crate::active::{self, ActiveArgs};
use crate::attaching::{self, AttachArgs};
use crate::cluster::{self, ClusterArgs};
use crate::config::DaemonArgs;
use crate::cost::{self, CostArgs};
use crate::daemon::Bench;
use crate::fleet::{self, FleetArgs};
use crate::hostile::{self, HostileArgs};
use crate::http::{self, HttpArgs};
use crate::idle::{self, IdleArgs};
use crate::long::{self, LongArgs};
use crate::model_process::{self, MannerArgs};
use crate::report::Report;
use crate::resume::{self, ResumeArgs};
use crate::soak::{self, SoakArgs};
use crate::storm::{self, StormArgs};
use crate::terminal::{self, TerminalArgs};
use crate::viewers::{self, ViewersArgs};
use crate::workspaces::{self, WorkspacesArgs};
use crate::{attempt, cancel, decode, map_beside, measure, repo_map, sandbox, search, search_beside};
use anyhow::Result;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Mode {
    /// Throughput of N concurrent sessions; then, at 60 % of it, the overhead of a step and the time to the first text
    Fleet(FleetArgs),
    /// Memory with N idle sessions, after a full listing, and after a burst of active ones; time to start with them
    Idle(IdleArgs),
    /// Memory with N concurrent open turns
    Active(ActiveArgs),
    /// One session with many steps: the last steps compared with the first ones
    Long(LongArgs),
    /// A model server that often answers with 429, 529, 500 or a broken stream
    Storm(StormArgs),
    /// Many viewers of one busy session, some of which do not read
    Viewers(ViewersArgs),
    /// HTTP compared with the socket: the time to the first text and the steps of a session with viewers; memory of idle
    /// viewers; pages of the list of many sessions
    Http(HttpArgs),
    /// kill -9 with N open turns: time until all of them continue
    Resume(ResumeArgs),
    /// Cancels at 60 % of the maximum load
    Cancel(FleetArgs),
    /// Time to attach to the end of a very long session
    Attach(AttachArgs),
    /// agentctl full-screen: the time from a key to the screen while text streams, memory, processor time
    Terminal(TerminalArgs),
    /// Load with random faults from --seed; checks that every log is complete
    Soak(SoakArgs),
    /// The time of a step with a long history, compared with a short one
    History {
        /// Kilobytes of the long history
        #[arg(long, default_value_t = 1_000)]
        long_kb: u32,
        /// Kilobytes of the short history
        #[arg(long, default_value_t = 10)]
        short_kb: u32,
        /// Measured steps per round
        #[arg(long, default_value_t = 50)]
        steps: u32,
        /// Rounds, alternating between long and short
        #[arg(long, default_value_t = 3)]
        rounds: u32,
    },
    /// The bill of a scripted task of 30 steps in each dialect, by a simulated prompt cache
    Cost(CostArgs),
    /// Decoding of streamed answers in each dialect: speed and allocations per event; no daemon
    Decode {
        /// Events per answer
        #[arg(long, default_value_t = 10_000)]
        events: u32,
        /// Rounds; the best one counts
        #[arg(long, default_value_t = 5)]
        rounds: u32,
    },
    /// One model attempt from the conversation to the answer, at three sizes of history; no daemon
    Attempt {
        /// Measured attempts at each size
        #[arg(long, default_value_t = 200)]
        attempts: u32,
    },
    /// Ordinary sessions next to one that exhausts output, processes, files or memory, or creates a sparse file; and
    /// ordinary sessions on a healthy disk next to many sessions on a frozen file system
    Hostile(HostileArgs),
    /// Sessions with workspaces of their own: the time to create them, to record their files and to fetch
    /// their work, compared with plain git; disk and memory
    Workspaces(WorkspacesArgs),
    /// The map of a source tree: time cold and warm, memory, whether it contains wanted definitions; then the steps of a
    /// fleet while the daemon makes such maps, compared with no maps
    RepoMap {
        /// The tree; default: the sources of all crates on this machine
        dir: Option<PathBuf>,
    },
    /// The search index of a source tree: time, size, memory, whether it finds 50 definitions; then the steps of a fleet
    /// while the daemon indexes the tree, compared with no indexing
    Search {
        /// The tree; default: the sources of all crates on this machine
        dir: Option<PathBuf>,
    },
    /// Several nodes on a PostgreSQL server that this program starts: throughput compared with SQLite, the takeover of the
    /// sessions of a killed and of a stopped node, a drain, viewers at another node
    Cluster(ClusterArgs),
    /// `bash -c true` at each sandbox level that works here, compared with a plain spawn; no daemon
    Sandbox {
        /// Commands at each level
        #[arg(long, default_value_t = 300)]
        runs: u32,
    },
    #[command(name = model_process::SERVE, hide = true)]
    ServeModel,
}

impl Mode {
    /// Measures; the model server has nothing to report.
    pub(crate) async fn run(self, daemon: &DaemonArgs, manner: MannerArgs) -> Result<Option<Report>> {
        let figures = match self {
            Self::ServeModel => {
                model_process::serve(manner).await?;
                return Ok(None);
            }
            Self::Cost(args) => return cost::run(daemon, &args).await.map(Some),
            Self::Cluster(args) => return cluster::run(daemon, manner, &args).await.map(Some),
            Self::Decode { events, rounds } => decode::run(events, rounds)?,
            Self::Attempt { attempts } => attempt::run(attempts).await?,
            Self::Sandbox { runs } => sandbox::run(runs).await?,
            Self::RepoMap { dir } => {
                let dir = repo_map::tree(dir, cargo_home())?;
                let mut figures = repo_map::run(&dir)?;
                let bench = Bench::start(daemon, manner).await?;
                figures.extend(map_beside::run(&bench, &dir).await?);
                figures
            }
            Self::Search { dir } => {
                let dir = repo_map::tree(dir, cargo_home())?;
                let mut figures = search::run(&dir)?;
                let daemon = DaemonArgs {
                    more: search_beside::CONFIG,
                    ..daemon.clone()
                };
                let bench = Bench::start(&daemon, manner).await?;
                figures.extend(search_beside::run(&bench, &dir).await?);
                figures
            }
            Self::Http(args) => {
                let daemon = DaemonArgs {
                    more: http::CONFIG,
                    ..daemon.clone()
                };
                let bench = Bench::start(&daemon, manner).await?;
                return http::run(&bench, &args).await.map(Some);
            }
            mode => return mode.with_daemon(daemon, manner).await.map(Some),
        };
        Ok(Some(figures.into()))
    }

    async fn with_daemon(self, daemon: &DaemonArgs, manner: MannerArgs) -> Result<Report> {
        let manner = match self {
            Self::Terminal(_) => manner.or_gap(terminal::GAP_MS),
            Self::Storm(_) => manner.or_troubles(0.1, 0.1, 0.05, 0.05),
            Self::Soak(_) => manner.or_troubles(0.01, 0.01, 0.01, 0.01),
            _ => manner,
        };
        let mut bench = Bench::start(daemon, manner).await?;
        match self {
            Self::Fleet(args) => fleet::run(&bench, &args).await,
            Self::Idle(args) => idle::run(&mut bench, &args).await,
            Self::Active(args) => active::run(&bench, &args).await,
            Self::Long(args) => long::run(&bench, &args).await,
            Self::Storm(args) => storm::run(&bench, &args).await,
            Self::Viewers(args) => viewers::run(&bench, &args).await,
            Self::Resume(args) => resume::run(&mut bench, &args).await,
            Self::Cancel(args) => cancel::run(&bench, &args).await,
            Self::Attach(args) => attaching::run(&mut bench, &args).await,
            Self::Terminal(args) => terminal::run(&bench, &args).await,
            Self::Soak(args) => soak::run(&mut bench, &args, manner.seed).await,
            Self::Hostile(args) => hostile::run(&mut bench, &args).await,
            Self::Workspaces(args) => workspaces::run(&bench, &args, manner).await,
            Self::History {
                long_kb,
                short_kb,
                steps,
                rounds,
            } => measure::history(&bench, long_kb, short_kb, steps, rounds)
                .await
                .map(Report::from),
            Self::Cost(_)
            | Self::Cluster(_)
            | Self::Http(_)
            | Self::Decode { .. }
            | Self::Attempt { .. }
            | Self::Sandbox { .. }
            | Self::RepoMap { .. }
            | Self::Search { .. }
            | Self::ServeModel => Ok(Report::default()),
        }
    }
}

/// Where cargo keeps the sources of crates.
#[expect(clippy::disallowed_methods, reason = "a binary reads its environment")]
fn cargo_home() -> Option<PathBuf> {
    let variable = |name| std::env::var(name).ok().map(PathBuf::from);
    variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo")))
}
