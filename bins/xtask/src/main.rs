//! Development tasks. `cargo xtask tidy` checks the house rules that no compiler checks; `cargo xtask conformance`
//! compares the real code with recorded traffic.

mod check;
mod cluster;
mod conformance;
mod help_texts;
mod stress;
mod tidy;
mod verdict;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Development tasks of agentd")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Checks the house rules: layers, sizes, names, invariants named by tests, documented keys, paths in ARCHITECTURE.md
    Tidy,
    /// Prints the red-team list: the tests that prove each row, and the omitted rows with the reasons
    Redteam,
    /// Prints the fault list: the tests that prove each row of docs/faults.md
    Faults,
    /// Writes docs/openapi.json, the description of the HTTP API, from the code
    Openapi,
    /// Compares the options that programs of this machine say run something with the recorded ones
    HelpTexts(help_texts::Args),
    /// Runs a PostgreSQL server and several nodes on it, to play with
    Cluster(cluster::Args),
    /// Runs the suites of recorded traffic and scenarios in a directory
    Conformance(conformance::Args),
    /// Checks what the changes since the main line concern: format, house rules, lints, unit tests
    Check(check::Args),
    /// For cargo: runs a test executable if it is one of the packages
    #[command(hide = true)]
    Only(check::RunnerArgs),
    /// Runs tests many times with little of the processor and a busy disk
    Stress(stress::Args),
    /// For cargo: runs the tests of an executable under pressure
    #[command(hide = true)]
    Stressed(stress::RunnerArgs),
    /// Runs `cargo test`, and each test that fails once more, alone: what passes then is flaky
    Verdict(verdict::Args),
}

fn main() -> Result<ExitCode> {
    let root = workspace_root()?;
    match Args::parse().task {
        Task::Cluster(args) => cluster::run(&root, &args),
        Task::Conformance(args) => conformance::run(&args),
        Task::HelpTexts(args) => help_texts::run(&root, &args),
        Task::Check(args) => check::run(&root, &args),
        Task::Only(args) => check::runner(&args),
        Task::Stress(args) => stress::run(&root, &args),
        Task::Stressed(args) => stress::runner(&args),
        Task::Verdict(args) => verdict::run(&root, &args),
        Task::Redteam => print(&tidy::redteam(&root)?),
        Task::Faults => print(&tidy::faults(&root)?),
        Task::Openapi => {
            let file = root.join(tidy::OPENAPI);
            std::fs::write(file, agentd_http::openapi()).context(tidy::OPENAPI)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Tidy => {
            let findings = tidy::check(&root)?;
            let mut out = std::io::stdout().lock();
            for finding in &findings {
                writeln!(out, "tidy: {finding}")?;
            }
            writeln!(
                out,
                "tidy: {} rules, {} findings",
                tidy::RULES.len(),
                findings.len()
            )?;
            Ok(if findings.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
    }
}

fn print(rows: &[String]) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for row in rows {
        writeln!(out, "{row}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn workspace_root() -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(manifest
        .ancestors()
        .nth(2)
        .context("xtask lives two levels below the workspace root")?
        .to_path_buf())
}
