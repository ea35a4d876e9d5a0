//! The results of a run.

use std::collections::BTreeMap;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the suite's directory, and the part of it.
    pub place: String,
    /// The difference.
    pub difference: String,
}

/// The result of one suite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The suite's name.
    pub suite: String,
    /// The number of checks that passed.
    pub passed: usize,
    /// The checks that failed.
    pub failures: Vec<Finding>,
    /// The number of skipped checks, by reason.
    pub skips: BTreeMap<String, usize>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It held.
    Passed,
    /// It did not.
    Failed(String),
    /// It does not apply here.
    Skipped(String),
}

impl Report {
    /// An empty report.
    #[must_use]
    pub fn of(suite: &str) -> Self {
        Self {
            suite: suite.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, place: &str, verdict: Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(difference) => self.failures.push(Finding {
                place: place.to_owned(),
                difference,
            }),
            Verdict::Skipped(reason) => *self.skips.entry(reason).or_default() += 1,
        }
    }

    /// The number of skipped checks.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skips.values().sum()
    }

    /// A summary on one line.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{}: {} passed, {} failed, {} skipped",
            self.suite,
            self.passed,
            self.failures.len(),
            self.skipped()
        )
    }
}
