//! Runs the test cases of one program, one after the other.

use std::io::Write as _;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

/// A case: its name and its function. It fails by panicking.
pub type Case = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// Builds a list of [`Case`]s from the names of functions.
#[macro_export]
macro_rules! cases {
    ($($name:path),* $(,)?) => {
        [$((stringify!($name), || ::std::boxed::Box::pin($name()))),*]
    };
}

/// Runs the cases whose name contains the filter (all if it is empty or an option), each for at most `within`.
#[must_use]
pub fn run(cases: &[Case], filter: &str, within: Duration) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("no runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let wanted = |name: &str| name.contains(filter) || filter.starts_with('-');
    for (name, case) in cases.iter().filter(|(name, _)| wanted(name)) {
        say(&format!("case {name}"));
        let done = runtime.block_on(async { tokio::time::timeout(within, case()).await });
        if done.is_err() {
            say(&format!("{name} did not end within {} s", within.as_secs()));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Reports a test that cannot run here, to people and to the list that CI checks.
#[expect(clippy::disallowed_methods, reason = "a skip must be seen")]
pub fn skipped(reason: &str, what: &str) {
    say(&format!("SKIPPED {what}: {reason}"));
    if let Ok(path) = std::env::var("AGENTD_SKIPS")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path)
    {
        // If the list cannot be written, the message above remains.
        let _ = writeln!(file, "{reason} ({what})");
    }
}

fn say(line: &str) {
    // If our output is closed, this message has no reader.
    let _ = writeln!(std::io::stdout(), "{line}");
}
