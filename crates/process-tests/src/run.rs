//! Runs the groups of one program, each in a process of its own, and reports as libtest does.

use crate::cases::{Group, say};
use crate::options::Options;
use std::fs::{File, OpenOptions};
use std::io::{Result, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

/// The first argument of a process that runs cases. The next ones are a file, which gets a line for each case that passed,
/// and the names of the cases.
const CASES: &str = "__cases";
/// The exit code of a process whose case panicked, as libtest has it.
const PANICKED: u8 = 101;

/// The `main` of a test program: reads the arguments as libtest does, runs the cases that they choose, and reports them in
/// libtest's words. A process runs the cases of one group up to the first that fails; another one runs the rest.
#[must_use]
pub fn main(groups: &[Group]) -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let done = if words.next_if(|word| word == CASES).is_some() {
        let file = words.next().unwrap_or_default();
        here(groups, Path::new(&file), words)
    } else {
        all(groups, &Options::read(words))
    };
    done.unwrap_or_else(|error| {
        say(&format!("the cases cannot run: {error}"));
        ExitCode::FAILURE
    })
}

/// Runs the chosen cases in other processes.
fn all(groups: &[Group], options: &Options) -> Result<ExitCode> {
    let chosen: Vec<Vec<String>> = groups
        .iter()
        .map(|group| group.names().filter(|name| options.wants(name)).collect())
        .collect();
    let count = chosen.iter().flatten().count();
    if options.list {
        chosen
            .iter()
            .flatten()
            .for_each(|name| say(&format!("{name}: test")));
        say(&format!("\n{count} tests, 0 benchmarks"));
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!("\nrunning {count} tests"));
    let begun = Instant::now();
    let mut failed = Vec::new();
    for names in &chosen {
        failed.extend(apart(names)?);
    }
    if !failed.is_empty() {
        say(&format!("\nfailures:\n    {}", failed.join("\n    ")));
    }
    say(&format!(
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        count - failed.len(),
        failed.len(),
        groups.iter().flat_map(Group::names).count() - count,
        begun.elapsed().as_secs_f64()
    ));
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        PANICKED.into()
    })
}

/// Runs cases of one group, and returns those that failed.
fn apart(names: &[String]) -> Result<Vec<String>> {
    let mut failed = Vec::new();
    let mut rest = names;
    while let Some((last, _)) = rest.split_last() {
        let file = NamedTempFile::new()?;
        let ended = started(file.path(), rest)?;
        let passed = std::fs::read_to_string(file.path())?.lines().count();
        let left = rest.get(passed..).unwrap_or_default();
        if ended.success() && left.is_empty() {
            break;
        }
        // A process that fails after its last case passed fails that case.
        let case = left.first().unwrap_or(last);
        if ended.code() != Some(PANICKED.into()) {
            say(&format!("{case}: the process ended: {ended}"));
        }
        say(&format!("test {case} ... FAILED"));
        failed.push(case.clone());
        rest = left.get(1..).unwrap_or_default();
    }
    Ok(failed)
}

#[expect(clippy::disallowed_methods, reason = "a test program starts itself")]
fn started(file: &Path, names: &[String]) -> Result<ExitStatus> {
    let program = std::env::current_exe()?;
    Command::new(program).arg(CASES).arg(file).args(names).status()
}

/// Runs these cases in this process, up to the first that fails.
fn here(groups: &[Group], file: &Path, names: impl Iterator<Item = String>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut passed = OpenOptions::new().append(true).open(file)?;
    for name in names {
        if !passes(groups, &runtime, &name) {
            // What the case left running must not hold the process.
            runtime.shutdown_background();
            return Ok(PANICKED.into());
        }
        report(&mut passed, &name)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn passes(groups: &[Group], runtime: &Runtime, name: &str) -> bool {
    let Some(((_, case), within)) = groups.iter().find_map(|group| group.find(name)) else {
        say(&format!("there is no case {name}"));
        return false;
    };
    say(&format!("case {name}"));
    let timed = || runtime.block_on(async { tokio::time::timeout(within, case()).await });
    match catch_unwind(AssertUnwindSafe(timed)) {
        Ok(Ok(())) => true,
        Ok(Err(_)) => {
            say(&format!("{name} did not end within {within:?}"));
            false
        }
        // The panic has been reported.
        Err(_) => false,
    }
}

fn report(passed: &mut File, name: &str) -> Result<()> {
    say(&format!("test {name} ... ok"));
    writeln!(passed, "{name}")
}
