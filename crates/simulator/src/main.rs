//! `cargo run -p agentd-simulator -- --seed N` replays a run, `-- --runs N --from SEED` looks for broken ones;
//! `--nodes 3` lets three nodes share the store.

use agentd_simulator::{Options, simulate};
use clap::Parser;
use std::io::Write as _;
use std::process::ExitCode;

/// Searches simulated runs for broken invariants, and replays them.
#[derive(Debug, Parser)]
struct Arguments {
    /// The run to replay.
    #[arg(long)]
    seed: Option<u64>,
    /// Changes to its options: `fail=20,lost=0`, or the whole line that was printed.
    #[arg(long, default_value = "")]
    options: String,
    /// How many nodes share the store.
    #[arg(long, default_value_t = 1)]
    nodes: u32,
    /// Print the whole trace.
    #[arg(long)]
    trace: bool,
    /// How many runs to check.
    #[arg(long, default_value_t = 1_000)]
    runs: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Check all of them, even after a failure.
    #[arg(long)]
    keep_going: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The number of runs that broke an invariant.
fn run(arguments: &Arguments) -> Result<u64, String> {
    let mut out = std::io::stdout().lock();
    let mut say = |text: String| writeln!(out, "{text}").map_err(|error| error.to_string());
    let seeds = match arguments.seed {
        Some(seed) => seed..seed.saturating_add(1),
        None => arguments.from..arguments.from.saturating_add(arguments.runs),
    };
    let (mut broken, mut looked, mut events, mut tools) = (0, 0_u64, 0, 0);
    let (mut moved, mut refused) = (0, 0);
    for seed in seeds {
        let options = Options::of(seed)
            .changed(&format!("nodes={}", arguments.nodes.max(1)))?
            .changed(&arguments.options)?;
        let report = simulate(seed, options, arguments.trace)?;
        looked += 1;
        events += report.events;
        tools += report.ran;
        moved += report.moved;
        refused += report.refused;
        for line in report.trace.iter().flatten() {
            say(line.clone())?;
        }
        if report.violation.is_some() || arguments.seed.is_some() {
            say(report.to_string())?;
        }
        if report.violation.is_some() {
            broken += 1;
            if !arguments.keep_going {
                break;
            }
        }
    }
    if arguments.seed.is_none() {
        say(format!(
            "{looked} runs, {events} events, {tools} tool runs, {moved} takeovers, {refused} stale appends \
             refused, {broken} broken"
        ))?;
    }
    Ok(broken)
}
