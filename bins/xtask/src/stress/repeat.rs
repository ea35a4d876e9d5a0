//! The program between cargo and a test executable: it repeats tests under pressure.

use super::disk::BusyDisk;
use super::pressure::Place;
use super::{Outcome, Plan};
use crate::verdict::message;
use anyhow::{Context as _, Result, bail};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct RunnerArgs {
    /// The file of the plan
    plan: PathBuf,
    /// The executable and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the tests of one executable that the plan names, if it has any.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo names the package in the environment"
)]
pub(crate) fn runner(args: &RunnerArgs) -> Result<ExitCode> {
    let plan: Plan = serde_json::from_slice(&fs::read(&args.plan)?).context("the plan")?;
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    if plan.package.as_ref().is_some_and(|wanted| *wanted != package) {
        return Ok(ExitCode::SUCCESS);
    }
    let program = args.command.first().context("no executable")?;
    let names = chosen(&list(program)?, &plan.names, plan.exact);
    if names.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let until = Instant::now() + Duration::from_secs(plan.seconds);
    let mut results = File::options()
        .create(true)
        .append(true)
        .open(plan.dir.join("results.jsonl"))?;
    for percent in &plan.percent {
        for outcome in under(&plan, *percent, program, &names, until)? {
            writeln!(results, "{}", serde_json::to_string(&outcome)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The results of all executables.
pub(super) fn results(dir: &Path) -> Result<Vec<Outcome>> {
    let text = fs::read_to_string(dir.join("results.jsonl")).unwrap_or_default();
    let outcome = |line| serde_json::from_str(line).context("a result");
    text.lines().map(outcome).collect()
}

/// The names of an executable's tests.
#[expect(clippy::disallowed_methods, reason = "a development task starts tests")]
fn list(program: &OsStr) -> Result<String> {
    let output = Command::new(program).arg("--list").output();
    let output = output.context("cannot list the tests")?;
    if !output.status.success() {
        bail!("{} --list: {}", program.display(), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The tests of a list that are wanted.
fn chosen(list: &str, wanted: &[String], exact: bool) -> Vec<String> {
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let fits = |name: &&str| {
        wanted
            .iter()
            .any(|wanted| name == wanted || (!exact && name.contains(wanted.as_str())))
    };
    names.filter(fits).map(str::to_owned).collect()
}

/// Runs all tests with one share of the processor.
fn under(
    plan: &Plan,
    percent: u32,
    program: &OsStr,
    names: &[String],
    until: Instant,
) -> Result<Vec<Outcome>> {
    let share = Place::describe(percent);
    writeln!(std::io::stderr(), "stress: {} tests, {share}", names.len())?;
    let waiting = (0..plan.times).flat_map(|_| names.iter());
    let (waiting, done) = (Mutex::new(waiting), Mutex::new(Vec::new()));
    let disk = BusyDisk::start();
    let ended: Vec<Result<()>> = std::thread::scope(|scope| {
        let worker = |number| {
            let (waiting, done) = (&waiting, &done);
            scope.spawn(move || {
                let place = Place::new(percent, number)?;
                let log = plan.dir.join(format!("{percent}-{number}.log"));
                while Instant::now() < until {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(name) = next else { break };
                    let run = once(&place, program, name, &log, Duration::from_secs(plan.limit))?;
                    writeln!(std::io::stderr(), "{}", run.line(percent))?;
                    done.lock().unwrap_or_else(PoisonError::into_inner).push(run);
                }
                Ok(())
            })
        };
        let workers: Vec<_> = (0..plan.jobs).map(worker).collect();
        let ended = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended
            .map(|end| end.unwrap_or_else(|_| bail!("a worker panicked")))
            .collect()
    });
    let pressure = format!("{share}, {}", disk.end());
    ended.into_iter().collect::<Result<Vec<()>>>()?;
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = |name: &String| outcome(name, &pressure, plan.times, &done);
    Ok(names.iter().map(outcome).collect())
}

/// One run of one test.
#[derive(Debug, Clone)]
struct Run {
    name: String,
    took: Duration,
    /// Why it failed.
    failure: Option<String>,
}

impl Run {
    fn line(&self, percent: u32) -> String {
        let result = if self.failure.is_some() { "FAILED" } else { "ok" };
        let seconds = self.took.as_secs_f64();
        format!("{percent}% {} ... {result} ({seconds:.1} s)", self.name)
    }
}

/// Runs a test. Its output goes to a file: a process that it leaves behind would keep a pipe open.
fn once(place: &Place, program: &OsStr, name: &str, log: &Path, limit: Duration) -> Result<Run> {
    let output = File::create(log)?;
    let start = Instant::now();
    let mut command = place.command(program);
    command
        .args([name, "--exact"])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let mut child = command.spawn().context("cannot start the tests")?;
    let pid = child.id();
    let (tell, ended) = mpsc::channel();
    // After the limit, this message has no reader.
    std::thread::spawn(move || drop(tell.send(child.wait())));
    let status = ended.recv_timeout(limit).ok().transpose()?;
    let took = start.elapsed();
    place.clear(pid);
    let said = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let failure = match status {
        None => Some(format!("did not end within {} s", limit.as_secs())),
        Some(status) if status.success() && said.contains("test result: ok. 1 passed;") => None,
        Some(_) => {
            let kept = log.with_extension(format!("{}.failed", name.replace("::", ".")));
            fs::copy(log, kept)?;
            Some(message(&said))
        }
    };
    Ok(Run {
        name: name.to_owned(),
        took,
        failure,
    })
}

/// Sums up the runs of one test.
fn outcome(name: &str, pressure: &str, times: u32, done: &[Run]) -> Outcome {
    let own: Vec<&Run> = done.iter().filter(|run| run.name == name).collect();
    let failures: Vec<&String> = own.iter().filter_map(|run| run.failure.as_ref()).collect();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Outcome {
        name: name.to_owned(),
        pressure: pressure.to_owned(),
        runs: count(own.len()),
        missing: times.saturating_sub(count(own.len())),
        failures: count(failures.len()),
        slowest: own.iter().map(|run| run.took.as_secs_f64()).fold(0.0, f64::max),
        message: failures.first().map(|message| (*message).clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, chosen, outcome};
    use std::time::Duration;

    #[test]
    fn tests_are_chosen_by_a_part_of_their_name_or_by_all_of_it() {
        let list = "cancel::a: test\ncancel::ab: test\ncancel::b: benchmark\n\n2 tests, 1 benchmark\n";
        let wanted = ["cancel::a".to_owned()];
        assert_eq!(chosen(list, &wanted, false), ["cancel::a", "cancel::ab"]);
        assert_eq!(chosen(list, &wanted, true), ["cancel::a"]);
        assert_eq!(chosen(list, &["cancel::b".to_owned()], false), [""; 0]);
    }

    #[test]
    fn the_outcome_has_the_slowest_run_and_the_first_message() {
        let run = |name: &str, seconds, failure: Option<&str>| Run {
            name: name.to_owned(),
            took: Duration::from_secs(seconds),
            failure: failure.map(str::to_owned),
        };
        let done = [
            run("a", 3, None),
            run("b", 9, Some("other")),
            run("a", 5, Some("first")),
            run("a", 4, Some("second")),
        ];
        let a = outcome("a", "half", 10, &done);
        assert_eq!((a.runs, a.missing, a.failures), (3, 7, 2));
        assert!((a.slowest - 5.0).abs() < 0.01);
        assert_eq!(a.message.as_deref(), Some("first"));
        assert_eq!(outcome("c", "half", 10, &done).missing, 10);
    }
}
