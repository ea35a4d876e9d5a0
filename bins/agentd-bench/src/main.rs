//! The load tool: starts a daemon and a model server on loopback and measures. Figures go to stdout, talk to stderr.

mod daemon;
mod measure;

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
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let bench = daemon::Bench::start(args.agentd, args.model_url).await?;
    let figures = match args.mode {
        Mode::Idle { sessions, burst } => measure::idle(&bench, sessions, burst).await?,
        Mode::Fleet { sessions, steps } => measure::fleet(&bench, sessions, steps).await?,
        Mode::History {
            long_kb,
            short_kb,
            steps,
            rounds,
        } => measure::history(&bench, long_kb, short_kb, steps, rounds).await?,
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
