//! What `cargo test` printed, as data: pure functions of its text.

use anyhow::Result;
use regex::Regex;

/// The most of a message that is repeated at the end of a run.
const MESSAGE_LINES: usize = 12;
const MESSAGE_COLUMNS: usize = 400;

/// A failed test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its name within its executable.
    pub(crate) name: String,
    /// Why it failed.
    pub(crate) message: String,
}

/// One test executable, or the doc tests of one crate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Executable {
    /// Its path, or `doc tests of CRATE`.
    pub(crate) path: String,
    /// What selects its target, in cargo's words: `-p agentd-api --lib`. Known only of an executable that failed.
    pub(crate) target: Option<String>,
    /// The number of its `test result:` lines.
    pub(crate) results: usize,
    /// The number of tests that passed.
    pub(crate) passed: usize,
    /// The tests that failed.
    pub(crate) failures: Vec<Failure>,
    /// Contradictions in its output.
    pub(crate) problems: Vec<String>,
    /// All that it printed.
    pub(crate) text: String,
}

/// The whole output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// In the order in which they ran.
    pub(crate) executables: Vec<Executable>,
    /// The number of failed executables, as cargo sums it up at the end.
    pub(crate) failed_targets: Option<usize>,
}

/// Reads the output of `cargo test --no-fail-fast`.
pub(crate) fn report(text: &str) -> Result<Report> {
    let mut reader = Reader {
        words: Words::new()?,
        report: Report::default(),
        sections: Vec::new(),
        at: At::Elsewhere,
        named: Vec::new(),
    };
    for line in text.lines() {
        reader.line(line);
    }
    Ok(reader.report)
}

/// The lines that matter.
struct Words {
    executable: Regex,
    doc_tests: Regex,
    section: Regex,
    result: Regex,
    target: Regex,
    targets: Regex,
}

impl Words {
    fn new() -> Result<Self> {
        Ok(Self {
            executable: Regex::new(r"^ +Running .+ \((\S*deps/\S+-[0-9a-f]{16})\)$")?,
            doc_tests: Regex::new(r"^ +Doc-tests (\S+)$")?,
            section: Regex::new(r"^---- (.+) stdout ----$")?,
            // Something without an end of line can stand before it: what a program printed that a test started.
            result: Regex::new(
                r"test result: (?:ok|FAILED)\. ([0-9]+) passed; ([0-9]+) failed; [0-9]+ ignored; ",
            )?,
            target: Regex::new(r"^error: (?:test|doctest) failed, to rerun pass `(.+)`$")?,
            targets: Regex::new(r"^error: ([0-9]+) targets? failed:$")?,
        })
    }
}

/// Where the reader is within the output of an executable.
enum At {
    Elsewhere,
    /// In the captured output of a test, the last of the sections.
    Section,
    /// In the list of the names of failed tests.
    Names,
}

struct Reader {
    words: Words,
    report: Report,
    /// Captured outputs by test.
    sections: Vec<(String, String)>,
    at: At,
    named: Vec<String>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let group = |regex: &Regex| Some(regex.captures(line)?.get(1)?.as_str().to_owned());
        if let Some(path) = group(&self.words.executable) {
            self.start(path);
        } else if let Some(name) = group(&self.words.doc_tests) {
            self.start(format!("doc tests of {name}"));
        } else if let Some(count) = group(&self.words.targets) {
            self.report.failed_targets = count.parse().ok();
        } else if let Some(captures) = self.words.result.captures(line) {
            let count = |at| captures.get(at).and_then(|found| found.as_str().parse().ok());
            if let (Some(passed), Some(failed)) = (count(1), count(2)) {
                self.result(passed, failed);
            }
        } else if let (Some(target), Some(last)) =
            (group(&self.words.target), self.report.executables.last_mut())
        {
            last.target = Some(target);
        } else {
            self.within(line);
        }
        if let Some(last) = self.report.executables.last_mut() {
            last.text.push_str(line);
            last.text.push('\n');
        }
    }

    fn start(&mut self, path: String) {
        self.report.executables.push(Executable {
            path,
            ..Executable::default()
        });
        self.sections.clear();
        self.named.clear();
        self.at = At::Elsewhere;
    }

    fn within(&mut self, line: &str) {
        if let Some(name) = self.words.section.captures(line).and_then(|found| found.get(1)) {
            self.sections.push((name.as_str().to_owned(), String::new()));
            self.at = At::Section;
        } else if line == "failures:" {
            self.named.clear();
            self.at = At::Names;
        } else if line == "successes:" {
            self.at = At::Elsewhere;
        } else if let (At::Section, Some((_, text))) = (&self.at, self.sections.last_mut()) {
            text.push_str(line);
            text.push('\n');
        } else if let (At::Names, Some(name)) = (&self.at, line.strip_prefix("    ")) {
            self.named.push(name.to_owned());
        }
    }

    fn result(&mut self, passed: usize, failed: usize) {
        let named = std::mem::take(&mut self.named);
        let Some(last) = self.report.executables.last_mut() else {
            return;
        };
        last.results += 1;
        last.passed += passed;
        if named.len() != failed {
            last.problems
                .push(format!("{failed} tests failed, and it names {}", named.len()));
        }
        for name in named {
            let said = self.sections.iter().find(|(of, _)| *of == name);
            let message = message(said.map_or("", |(_, text)| text));
            last.failures.push(Failure { name, message });
        }
        self.at = At::Elsewhere;
    }
}

/// A line without the number of the thread that panicked, which differs each time.
fn without_thread(line: &str) -> String {
    let number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    match line.split_once(") panicked at ") {
        Some((before, after)) => match before.rsplit_once(" (") {
            Some((thread, id)) if number(id) => format!("{thread} panicked at {after}"),
            _ => line.to_owned(),
        },
        None => line.to_owned(),
    }
}

/// Why a test failed: its first panic, or all that it printed; bounded.
pub(crate) fn message(captured: &str) -> String {
    let lines: Vec<&str> = captured.lines().collect();
    let from = lines.iter().position(|line| line.contains("panicked at "));
    let lines = lines.into_iter().skip(from.unwrap_or_default());
    let told = lines
        .take_while(|line| !line.starts_with("note: ") && !line.starts_with("stack backtrace:"))
        .skip_while(|line| line.trim().is_empty())
        .take(MESSAGE_LINES);
    let cut = |line: String| line.chars().take(MESSAGE_COLUMNS).collect::<String>();
    told.map(without_thread)
        .map(cut)
        .collect::<Vec<_>>()
        .join("\n")
        .trim_end()
        .to_owned()
}
