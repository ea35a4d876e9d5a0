//! What a run found.

use std::collections::BTreeMap;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, below the suite's directory, and what of it.
    pub place: String,
    /// What is different.
    pub difference: String,
}

/// The result of one suite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The suite's name.
    pub suite: String,
    /// Checks that held.
    pub passed: usize,
    /// Checks that did not.
    pub failures: Vec<Finding>,
    /// What was not checked, by reason.
    pub skips: BTreeMap<String, usize>,
}

/// What became of one check.
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

    /// How many checks were skipped.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skips.values().sum()
    }

    /// The line that sums it up.
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
