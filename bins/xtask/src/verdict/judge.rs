//! Judges a run and its repetitions: pure functions of reports.

use super::report::{Executable, Report};

/// The most tests that may be flaky in a run that passes.
pub(crate) const MOST_FLAKY: usize = 3;

/// A test that failed, and may only have been unlucky.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// Its name within its executable.
    pub(crate) name: String,
    /// The path of its executable.
    pub(crate) path: String,
    /// What selects the target, in cargo's words.
    pub(crate) target: String,
    /// Why it failed.
    pub(crate) message: String,
}

impl Suspect {
    /// The options that select the target in the whole workspace: a package among the options would make cargo select
    /// other features, and so compile again.
    pub(crate) fn options(&self) -> Vec<&str> {
        let mut words = self.target.split_whitespace();
        let mut options = Vec::new();
        while let Some(word) = words.next() {
            if word == "-p" {
                words.next();
            } else {
                options.push(word);
            }
        }
        options
    }

    /// The arguments for the executable that select the test. Those of rustdoc cannot contain spaces, as the names of doc
    /// tests do, so all doc tests of its file run.
    pub(crate) fn selection(&self) -> Vec<&str> {
        if self.is_doc_test() {
            self.name.split_whitespace().take(1).collect()
        } else {
            vec![&self.name, "--exact"]
        }
    }

    fn is_doc_test(&self) -> bool {
        self.target.ends_with("--doc")
    }
}

/// The meaning of the first run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// The tests that failed.
    pub(crate) suspects: Vec<Suspect>,
    /// Problems that a repetition cannot resolve: an executable that died, or an output that makes no sense.
    pub(crate) problems: Vec<String>,
}

/// Judges the first run; `success` is cargo's exit code.
pub(crate) fn first(report: &Report, success: bool) -> First {
    let mut first = First {
        suspects: Vec::new(),
        problems: Vec::new(),
    };
    for executable in &report.executables {
        first.add(executable);
    }
    let failed = report.executables.iter().filter(|e| e.target.is_some()).count();
    let told = report.failed_targets.unwrap_or_default();
    if told != failed || success != (failed == 0) {
        let ended = if success { "succeeded" } else { "failed" };
        first.problems.push(format!(
            "cargo {ended} and counts {told} failed test executables; its output shows {failed}"
        ));
    }
    if report.executables.iter().all(|e| e.passed == 0) && first.suspects.is_empty() {
        first.problems.push("no test ran".to_owned());
    }
    first
}

impl First {
    fn add(&mut self, executable: &Executable) {
        let path = &executable.path;
        let problems = executable.problems.iter();
        self.problems
            .extend(problems.map(|problem| format!("{path}: {problem}")));
        if executable.results == 0 {
            self.problems.push(format!(
                "{path} ended without a test result: {}",
                executable.end()
            ));
            return;
        }
        let Some(target) = &executable.target else {
            if !executable.failures.is_empty() {
                let problem = format!("{path}: tests failed, and cargo does not say so");
                self.problems.push(problem);
            }
            return;
        };
        if executable.failures.is_empty() {
            let end = executable.end();
            self.problems
                .push(format!("{path} failed without a failed test: {end}"));
        }
        self.suspects
            .extend(executable.failures.iter().map(|failure| Suspect {
                name: failure.name.clone(),
                path: path.clone(),
                target: target.clone(),
                message: failure.message.clone(),
            }));
    }
}

impl Executable {
    /// The last lines that it printed.
    fn end(&self) -> String {
        let lines: Vec<&str> = self.text.lines().filter(|line| !line.is_empty()).collect();
        let from = lines.len().saturating_sub(4);
        lines.into_iter().skip(from).collect::<Vec<_>>().join("\n")
    }
}

/// The result of a test that was repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Again {
    /// It passed: it is flaky.
    Passed,
    /// It failed again, or did not run.
    Failed(String),
}

/// Judges the repetition of a test.
pub(crate) fn again(report: &Report, suspect: &Suspect) -> Again {
    let executable = report.executables.iter().find(|e| e.path == suspect.path);
    let Some(executable) = executable else {
        return Again::Failed("its executable did not run again".to_owned());
    };
    let named = |line: &str| line == format!("test {} ... ok", suspect.name);
    match (executable.failures.as_slice(), executable.passed) {
        _ if executable.results == 0 => Again::Failed(format!("it died: {}", executable.end())),
        _ if !executable.problems.is_empty() => Again::Failed(executable.problems.join("; ")),
        ([], 1) if executable.target.is_none() && !suspect.is_doc_test() => Again::Passed,
        (_, 1..) if suspect.is_doc_test() && executable.text.lines().any(named) => Again::Passed,
        ([], _) => Again::Failed(format!("it did not run alone: {}", executable.end())),
        ([failure, ..], _) => Again::Failed(failure.message.clone()),
    }
}

/// Whether a run passes whose failed tests ended like this in their repetitions.
pub(crate) fn passes(first: &First, repeated: &[(Suspect, Again)]) -> bool {
    let all_passed = repeated.iter().all(|(_, again)| *again == Again::Passed);
    first.problems.is_empty()
        && first.suspects.len() == repeated.len()
        && all_passed
        && repeated.len() <= MOST_FLAKY
}

/// The closing lines about failed tests, one paragraph for each.
pub(crate) fn closing(repeated: &[(Suspect, Again)]) -> Vec<String> {
    let line = |(suspect, again): &(Suspect, Again)| {
        let (name, target) = (&suspect.name, &suspect.target);
        let first = indented(&suspect.message);
        match again {
            Again::Passed => format!("flaky: {name} ({target})\n{first}"),
            Again::Failed(message) if *message == suspect.message => {
                format!("failed twice: {name} ({target})\n{first}")
            }
            Again::Failed(message) => {
                let second = indented(message);
                format!("failed twice: {name} ({target})\n{first}\n  and then:\n{second}")
            }
        }
    };
    repeated.iter().map(line).collect()
}

fn indented(message: &str) -> String {
    let lines = message.lines().map(|line| format!("    {line}"));
    lines.collect::<Vec<_>>().join("\n")
}
