//! `cargo xtask stress NAME...`: runs tests many times while they get little of the processor and the disk is busy, as on a
//! slow machine that others share. A test that waits for events passes; one that assumes times does not.
//!
//! Cargo starts the test executable, so that it finds what it finds in a usual run, but with this program between (`runner` in
//! cargo's configuration), which repeats the tests.

mod disk;
mod hierarchy;
mod pressure;
mod repeat;

use crate::check::{cargo, runner_option};
use anyhow::{Context as _, Result, bail};
pub(crate) use repeat::{RunnerArgs, runner};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names of tests, or parts of names
    #[arg(required = true)]
    names: Vec<String>,
    /// The names are whole names
    #[arg(long)]
    exact: bool,
    /// The test executable: the name of a file or folder in `tests` of a package
    #[arg(long, value_name = "NAME", default_value = "suite")]
    test: String,
    /// Unit tests of libraries instead of `--test`
    #[arg(long)]
    lib: bool,
    /// Only executables of this package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// How often each test runs with each share of the processor
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    /// How many runs share the machine, each with its own share of a core
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    jobs: u32,
    /// The shares, in percent of one core
    #[arg(long, value_delimiter = ',', default_values_t = [50, 20], value_parser = clap::value_parser!(u32).range(5..=100))]
    percent: Vec<u32>,
    /// How many seconds one run may take
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=3600))]
    limit: u64,
    /// No run starts later than this many minutes after the first
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
}

/// The task of the program between cargo and the test executables.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Plan {
    names: Vec<String>,
    exact: bool,
    package: Option<String>,
    times: u32,
    jobs: u32,
    percent: Vec<u32>,
    limit: u64,
    seconds: u64,
    /// The directory of outputs and results.
    dir: PathBuf,
}

/// The results of the runs of one test with one share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Outcome {
    name: String,
    /// The share in words.
    pressure: String,
    runs: u32,
    /// The runs for which there was no time.
    missing: u32,
    failures: u32,
    /// The slowest run, in seconds.
    slowest: f64,
    /// Why the first failed run failed.
    message: Option<String>,
}

/// Runs the tests, and prints what became of them.
pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    let dir = root.join("target/stress");
    // The outputs of the last time are of no use.
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).context("target/stress")?;
    let mut target = cargo(root);
    target.args(["test", "--quiet", "--workspace", "--locked", "--no-fail-fast"]);
    if args.lib {
        target.arg("--lib");
    } else {
        target.args(["--test", &args.test]);
    }
    if !args.lib && args.test == "suite" {
        target.env("AGENTD_TEST_PROGRAMS", programs(root)?);
    }
    let plan = Plan {
        names: args.names.clone(),
        exact: args.exact,
        package: args.package.clone(),
        times: args.times,
        jobs: args.jobs,
        percent: args.percent.clone(),
        limit: args.limit,
        seconds: args.minutes * 60,
        dir: dir.clone(),
    };
    let file = dir.join("plan.json");
    fs::write(&file, serde_json::to_vec(&plan)?).context("the plan")?;
    let file = file.to_str().context("the path of the plan is no text")?;
    let status = target.args(runner_option("stressed", file)?).status();
    if !status.context("cannot start cargo")?.success() {
        bail!("the tests could not be repeated; see above");
    }
    let outcomes = repeat::results(&dir)?;
    if outcomes.is_empty() {
        bail!("no test has a name with {}", args.names.join(" or "));
    }
    summary(&outcomes, start)
}

/// Builds the programs that the end-to-end tests start, once and without pressure; returns their directory.
fn programs(root: &Path) -> Result<PathBuf> {
    let status = cargo(root)
        .args(["build", "--quiet", "--locked", "--workspace", "--profile", "test"])
        .args(["--test", "suite"])
        .args([
            "--bin",
            "agentd",
            "--bin",
            "agentctl",
            "--bin",
            "agentd-bench",
            "--bin",
            "agentd-tags",
        ])
        .status();
    if !status.context("cannot start cargo")?.success() {
        bail!("the programs do not build");
    }
    Ok(root.join("target/debug"))
}

fn summary(outcomes: &[Outcome], start: Instant) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n=== stress, {} s", start.elapsed().as_secs())?;
    for outcome in outcomes {
        writeln!(out, "{}", line(outcome))?;
    }
    let good = outcomes.iter().all(|o| o.failures == 0 && o.missing == 0);
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn line(outcome: &Outcome) -> String {
    let Outcome {
        name,
        pressure,
        runs,
        failures,
        ..
    } = outcome;
    let mut text = format!("{name}, {pressure}: {runs} runs, {failures} failed");
    if *runs > 0 {
        text.push_str(&format!(", slowest {:.1} s", outcome.slowest));
    }
    if outcome.missing > 0 {
        text.push_str(&format!(", NO TIME for {} runs", outcome.missing));
    }
    for line in outcome.message.iter().flat_map(|message| message.lines()) {
        text.push_str(&format!("\n    {line}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Outcome, line};

    #[test]
    fn the_summary_of_a_test_has_the_first_message() {
        let mut outcome = Outcome {
            name: "cancel::a".into(),
            pressure: "20% of a core".into(),
            runs: 10,
            missing: 0,
            failures: 0,
            slowest: 12.34,
            message: None,
        };
        assert_eq!(
            line(&outcome),
            "cancel::a, 20% of a core: 10 runs, 0 failed, slowest 12.3 s"
        );
        outcome.failures = 2;
        outcome.missing = 3;
        outcome.message = Some("panicked at a.rs:1:\nno".into());
        assert_eq!(
            line(&outcome),
            "cancel::a, 20% of a core: 10 runs, 2 failed, slowest 12.3 s, NO TIME for 3 runs\n    panicked at a.rs:1:\n    no"
        );
    }
}
