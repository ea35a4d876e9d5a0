//! The load tool: starts a daemon and a model server on loopback and measures; or measures the model layer by itself. Figures go to stdout, talk to stderr.

mod attempt;
mod daemon;
mod decode;
mod hostile;
mod map_beside;
mod measure;
mod repo_map;
mod sandbox;
mod search;
mod search_beside;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(about = "Measures agentd: memory of idle sessions, steps per second, the cost of a step")]
struct Args {
    /// Print the figures as one JSON object
    #[arg(long, global = true)]
    json: bool,
    /// Use this model server instead of our own (it must play Anthropic and follow our plans to be comparable)
    #[arg(long, global = true, value_name = "URL")]
    model_url: Option<String>,
    /// Use this daemon instead of building one
    #[arg(long, global = true, value_name = "PATH")]
    agentd: Option<PathBuf>,
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Clone, Subcommand)]
enum Mode {
    /// Memory: N idle sessions, after a full listing, after a burst of active ones
    Idle {
        /// Idle sessions
        #[arg(long, default_value_t = 10_000)]
        sessions: u32,
        /// Sessions of the burst
        #[arg(long, default_value_t = 200)]
        burst: u32,
    },
    /// Throughput: N sessions at once, each some steps with one command
    Fleet {
        /// Sessions at once
        #[arg(long, default_value_t = 50)]
        sessions: u32,
        /// Steps of each
        #[arg(long, default_value_t = 10)]
        steps: u32,
    },
    /// The time of a step with a long history against one with a short history
    History {
        /// Kilobytes of the long history
        #[arg(long, default_value_t = 1_000)]
        long_kb: u32,
        /// Kilobytes of the short history
        #[arg(long, default_value_t = 10)]
        short_kb: u32,
        /// Measured steps a round
        #[arg(long, default_value_t = 50)]
        steps: u32,
        /// Rounds, long and short in turn
        #[arg(long, default_value_t = 3)]
        rounds: u32,
    },
    /// Decoding of streamed answers in each dialect: speed and allocations per event; no daemon
    Decode {
        /// Events of an answer
        #[arg(long, default_value_t = 10_000)]
        events: u32,
        /// Rounds, of which the best counts
        #[arg(long, default_value_t = 5)]
        rounds: u32,
    },
    /// One model attempt from the conversation to the answer, at three sizes of history; no daemon
    Attempt {
        /// Measured attempts at each size
        #[arg(long, default_value_t = 200)]
        attempts: u32,
    },
    /// A session without measure (output, processes, files, a sparse file, memory) beside ordinary ones
    Hostile {
        /// Ordinary sessions
        #[arg(long, default_value_t = 4)]
        sessions: u32,
        /// Steps of each of their turns
        #[arg(long, default_value_t = 20)]
        steps: u32,
    },
    /// The map of a source tree: cold, warm, memory, whether it shows the definitions that are asked for; then the steps of
    /// a fleet while a daemon makes such maps, and without that
    RepoMap {
        /// The tree; the sources of all crates on this machine if it is left out
        dir: Option<PathBuf>,
    },
    /// The search index of a source tree: time, size, memory, whether 50 definitions are found; then the steps of a fleet
    /// while a daemon indexes the tree, and without that
    Search {
        /// The tree; the sources of all crates on this machine if it is left out
        dir: Option<PathBuf>,
    },
    /// `bash -c true` at each level of the sandbox that works here, beside a plain spawn; no daemon
    Sandbox {
        /// Commands at each level
        #[arg(long, default_value_t = 300)]
        runs: u32,
    },
}

fn main() -> Result<ExitCode> {
    // This program is its own warden when it measures the sandbox; that must come before any thread.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|arg| arg == agentd_sandbox::WARDEN_ARG)
    {
        return Ok(agentd_sandbox::warden_main());
    }
    work(Args::parse())
}

#[tokio::main]
async fn work(args: Args) -> Result<ExitCode> {
    let figures = match args.mode {
        Mode::Decode { events, rounds } => decode::run(events, rounds)?,
        Mode::Attempt { attempts } => attempt::run(attempts).await?,
        Mode::Sandbox { runs } => sandbox::run(runs).await?,
        Mode::RepoMap { dir } => {
            let dir = repo_map::tree(dir, cargo_home())?;
            let mut figures = repo_map::run(&dir)?;
            let bench = daemon::Bench::start(args.agentd, args.model_url).await?;
            figures.extend(map_beside::run(&bench, &dir).await?);
            figures
        }
        Mode::Search { dir } => {
            let dir = repo_map::tree(dir, cargo_home())?;
            let mut figures = search::run(&dir)?;
            let (agentd, model) = (args.agentd, args.model_url);
            let bench = daemon::Bench::start_with(agentd, model, search_beside::CONFIG).await?;
            figures.extend(search_beside::run(&bench, &dir).await?);
            figures
        }
        mode => with_daemon(mode, args.agentd, args.model_url).await?,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&figures)?)?;
    } else {
        for (name, value) in &figures {
            writeln!(out, "{name:<40} {value}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where cargo keeps the sources of crates.
#[expect(clippy::disallowed_methods, reason = "a binary reads its environment")]
fn cargo_home() -> Option<PathBuf> {
    let variable = |name| std::env::var(name).ok().map(PathBuf::from);
    variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo")))
}

async fn with_daemon(
    mode: Mode,
    agentd: Option<PathBuf>,
    model_url: Option<String>,
) -> Result<measure::Figures> {
    let bench = daemon::Bench::start(agentd, model_url).await?;
    match mode {
        Mode::Idle { sessions, burst } => measure::idle(&bench, sessions, burst).await,
        Mode::Hostile { sessions, steps } => hostile::run(&bench, sessions, steps).await,
        Mode::Fleet { sessions, steps } => measure::fleet(&bench, sessions, steps).await,
        Mode::History {
            long_kb,
            short_kb,
            steps,
            rounds,
        } => measure::history(&bench, long_kb, short_kb, steps, rounds).await,
        Mode::Decode { .. }
        | Mode::Attempt { .. }
        | Mode::Sandbox { .. }
        | Mode::RepoMap { .. }
        | Mode::Search { .. } => Ok(measure::Figures::new()),
    }
}
