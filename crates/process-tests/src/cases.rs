//! Test cases by name, and what a case does when it cannot run.

use std::io::Write as _;
use std::pin::Pin;
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

/// Cases that share a process: they run one after the other.
#[derive(Debug, Clone)]
pub struct Group {
    name: &'static str,
    within: Duration,
    cases: Vec<Case>,
}

impl Group {
    /// Cases of a module, each of which may take as long as `within`. A case is called `NAME::CASE`; without a name, `CASE`.
    #[must_use]
    pub fn new(name: &'static str, within: Duration, cases: &[Case]) -> Self {
        let cases = cases.to_vec();
        Self { name, within, cases }
    }

    /// The full names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.cases.iter().map(|(case, _)| self.full(case))
    }

    /// The case with this full name, and its time.
    pub(crate) fn find(&self, name: &str) -> Option<(&Case, Duration)> {
        let found = self.cases.iter().find(|(case, _)| self.full(case) == name)?;
        Some((found, self.within))
    }

    fn full(&self, case: &str) -> String {
        if self.name.is_empty() {
            case.to_owned()
        } else {
            format!("{}::{case}", self.name)
        }
    }
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

pub(crate) fn say(line: &str) {
    // If our output is closed, this message has no reader.
    let _ = writeln!(std::io::stdout(), "{line}");
}
