//! The load tool: starts a daemon and a model server on loopback and measures them, or measures single parts. Prints
//! figures to stdout, everything else to stderr.

mod active;
mod attaching;
mod attempt;
mod cancel;
mod checks;
mod cluster;
mod config;
mod cost;
mod daemon;
mod decode;
mod drive;
mod fleet;
mod frozen;
mod hostile;
mod http;
mod ice;
mod idle;
mod long;
mod map_beside;
mod measure;
mod mode;
mod model_process;
mod open_loop;
mod played_fleet;
mod probe;
mod pty;
mod recorded;
mod repo_map;
mod report;
mod resume;
mod sandbox;
mod search;
mod search_beside;
mod soak;
mod store;
mod storm;
mod strike;
mod terminal;
mod tree;
mod viewers;
mod workspaces;

use anyhow::Result;
use clap::Parser;
use config::DaemonArgs;
use mode::Mode;
use model_process::MannerArgs;
use std::io::Write as _;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(
    about = "Measures agentd: throughput, latency and memory under load; prints the figures with their targets"
)]
struct Args {
    /// Print the figures as one JSON object
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(flatten)]
    manner: MannerArgs,
    #[command(subcommand)]
    mode: Mode,
}

fn main() -> Result<ExitCode> {
    // To measure the sandbox, this program is its own warden. This must happen before any thread starts.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|arg| arg == agentd_sandbox::WARDEN_ARG)
    {
        return Ok(agentd_sandbox::warden_main());
    }
    let args = Args::parse();
    let mut runtime = match args.mode {
        // One thread: a second one would only compete with the daemon.
        Mode::ServeModel => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(work(args))
}

async fn work(args: Args) -> Result<ExitCode> {
    let Some(report) = args.mode.run(&args.daemon, args.manner).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", report.json())?;
    } else {
        out.write_all(report.table().as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
