//! Runs `cargo test`, repeats what failed, and tells bad luck from a fault: a test that passes when it runs once more, alone,
//! is flaky. A few flaky tests do not fail the run, but it names them.

mod judge;
mod relay;
mod report;

use anyhow::{Context as _, Result, bail};
use judge::{Again, First, MOST_FLAKY, Suspect, again, closing, first, passes};
use relay::relay;
pub(crate) use report::message;
use report::report;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

/// When more tests fail, the cause is not bad luck: the run fails without repeating all of them.
const MOST_REPEATED: usize = 12;

/// Where the flaky tests of the last run are kept.
const FLAKY: &str = "target/ci/flaky.txt";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The command: `cargo test --workspace --locked --no-fail-fast`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// Runs the command, and each failed test once more.
pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let flaky = root.join(FLAKY);
    fs::create_dir_all(flaky.parent().context("a file is in a directory")?)?;
    fs::write(&flaky, "").context(FLAKY)?;
    let (status, text) = relay(command(&args.command)?, true)?;
    let first = first(&report(&text)?, status.success());
    let mut repeated = Vec::new();
    for suspect in first.suspects.iter().take(MOST_REPEATED) {
        let again = repeat(&args.command, suspect)?;
        repeated.push((suspect.clone(), again));
    }
    let passed = passes(&first, &repeated);
    tell(&flaky, &first, &repeated, passed)?;
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[expect(clippy::disallowed_methods, reason = "a development task starts programs")]
fn command(words: &[String]) -> Result<Command> {
    let Some((program, args)) = words.split_first() else {
        bail!("there is no command");
    };
    let mut command = Command::new(program);
    // The colours of a terminal would be between the words.
    command.args(args).env("CARGO_TERM_COLOR", "never");
    Ok(command)
}

/// The command that runs one test, alone, in its own executable.
fn repetition(words: &[String], suspect: &Suspect) -> Vec<String> {
    let mut parts = words.splitn(2, |word| word == "--");
    let (cargo, harness) = (parts.next().unwrap_or_default(), parts.next());
    let cargo = cargo.iter().map(String::as_str);
    let harness = harness.unwrap_or_default().iter().map(String::as_str);
    let all = cargo
        .chain(suspect.options())
        .chain(["--"])
        .chain(suspect.selection())
        .chain(["--show-output"])
        .chain(harness);
    all.map(str::to_owned).collect()
}

fn repeat(words: &[String], suspect: &Suspect) -> Result<Again> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "\n=== once more, alone: {} ({})",
        suspect.name, suspect.target
    )?;
    let (_, text) = relay(command(&repetition(words, suspect))?, false)?;
    let report = report(&text)?;
    // The other executables of the target's kind have no such test.
    let own = report.executables.iter().find(|e| e.path == suspect.path);
    out.write_all(own.map_or(text.as_str(), |e| &e.text).as_bytes())?;
    Ok(again(&report, suspect))
}

fn tell(flaky: &Path, first: &First, repeated: &[(Suspect, Again)], all_good: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let verdict = if all_good { "passed" } else { "failed" };
    writeln!(out, "\n=== verdict: {verdict}")?;
    for problem in &first.problems {
        writeln!(out, "cannot be repeated: {problem}")?;
    }
    for paragraph in closing(repeated) {
        writeln!(out, "{paragraph}")?;
    }
    for suspect in first.suspects.iter().skip(repeated.len()) {
        writeln!(out, "failed: {} ({})", suspect.name, suspect.target)?;
    }
    let passed: Vec<_> = repeated.iter().filter(|(_, a)| *a == Again::Passed).collect();
    if passed.len() > MOST_FLAKY {
        writeln!(
            out,
            "{} flaky tests; at most {MOST_FLAKY} are accepted",
            passed.len()
        )?;
    }
    let kept: Vec<_> = passed.into_iter().cloned().collect();
    let text: String = closing(&kept)
        .into_iter()
        .map(|paragraph| paragraph + "\n")
        .collect();
    fs::write(flaky, text).context(FLAKY)
}

#[cfg(test)]
mod tests;
