//! Compares the recorded options of programs that run something with the programs of this machine. The tests of
//! `crates/policy` read the recording only, so that they need no program.

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The recording.
const RECORDING: &str = "crates/policy/src/redteam/help_texts.txt";

/// Phrases in a help text that say that an option runs something.
const RUNS: [&str; 15] = [
    "command to run",
    "run command",
    "execute ",
    "exec ",
    "as a command",
    "use program",
    "invoke ",
    "external program",
    "external diff",
    "external helper",
    "plugin",
    "=command",
    "=prog",
    "filter through",
    "another program",
];

#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Also add lines for versions that are not recorded
    #[arg(long)]
    record: bool,
}

/// A line of the recording: `PROGRAM ARGUMENTS | VERSION | OPTIONS`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    command: String,
    version: String,
    options: BTreeSet<String>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {} |", self.command, self.version)?;
        self.options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

fn line(text: &str) -> Option<Line> {
    let mut columns = text.split(" |").map(str::trim);
    Some(Line {
        command: columns.next()?.to_owned(),
        version: columns.next()?.to_owned(),
        options: columns.next()?.split_whitespace().map(str::to_owned).collect(),
    })
}

/// The result of comparing a program of this machine with the recording.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// This version is recorded with these options.
    Same,
    /// This version is not recorded; other versions have all its options.
    Version,
    /// These options are in no recording of the program.
    Options(Vec<String>),
}

/// Compares each program of the recording that is installed here, and reports the differences.
pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let file = root.join(RECORDING);
    let mut text = std::fs::read_to_string(&file).context(RECORDING)?;
    let recorded: Vec<Line> = lines(&text);
    let commands: BTreeSet<&str> = recorded.iter().map(|line| line.command.as_str()).collect();
    if commands.is_empty() {
        bail!("{RECORDING} has no lines");
    }
    let mut out = std::io::stdout().lock();
    let mut new = false;
    for command in commands {
        let Some(here) = asked(command) else {
            writeln!(out, "{command}: not installed, so not compared")?;
            continue;
        };
        let found = compared(&recorded, &here);
        match &found {
            Found::Same => writeln!(out, "{command}: as recorded ({})", here.version)?,
            Found::Version => writeln!(out, "{command}: no new options ({})", here.version)?,
            Found::Options(options) => {
                new = true;
                let options = options.join(", ");
                writeln!(out, "{command}: {options}: not recorded ({})", here.version)?;
            }
        }
        if args.record && found != Found::Same {
            text.push_str(&format!("{here}\n"));
        }
    }
    if args.record {
        std::fs::write(&file, sorted(&text)).context(RECORDING)?;
        writeln!(out, "recorded; now run the tests of agentd-policy")?;
        return Ok(ExitCode::SUCCESS);
    }
    if new {
        writeln!(out, "`cargo xtask help-texts --record` records them")?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(text: &str) -> Vec<Line> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(line).collect()
}

/// The comments, then the lines in order.
fn sorted(text: &str) -> String {
    let (comments, mut lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
    lines.sort_unstable();
    lines.dedup();
    [comments, lines, vec![""]].concat().join("\n")
}

fn compared(recorded: &[Line], here: &Line) -> Found {
    let of_program = || recorded.iter().filter(|line| line.command == here.command);
    let known: BTreeSet<&String> = of_program().flat_map(|line| &line.options).collect();
    let new = here.options.iter().filter(|option| !known.contains(option));
    let new: Vec<String> = new.cloned().collect();
    if !new.is_empty() {
        Found::Options(new)
    } else if of_program().any(|line| line.version == here.version) {
        Found::Same
    } else {
        Found::Version
    }
}

/// Asks a program for its help text. `None`: it is not installed.
fn asked(command: &str) -> Option<Line> {
    let mut words = command.split_whitespace();
    let program = words.next()?;
    let version = output(program, &["--version"])?;
    let help = output(program, &words.collect::<Vec<_>>())?;
    Some(Line {
        command: command.to_owned(),
        version: name_and_number(&version),
        options: running(&help).into_iter().collect(),
    })
}

/// The words of the first line up to the version number: curl adds those of its libraries.
fn name_and_number(version: &str) -> String {
    let line = version.lines().next().unwrap_or_default();
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        words.push(word);
        if word.contains('.') && word.contains(|c: char| c.is_ascii_digit()) {
            break;
        }
    }
    words.join(" ")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the programs' own words are what is compared"
)]
fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(args)
        .envs([("PAGER", "cat"), ("LC_ALL", "C")])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The options in a help text that run something according to it; a description may continue for some lines.
fn running(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current: Vec<String> = Vec::new();
    for line in text.lines() {
        let start = line.trim_start();
        if start.starts_with('-') {
            let named = start.split("  ").next().unwrap_or_default();
            let words = named
                .split([' ', ',', '=', '[', '<'])
                .filter(|word| word.starts_with('-') && !word.trim_start_matches('-').is_empty());
            current = words.map(str::to_owned).collect();
        } else if !line.starts_with([' ', '\t']) {
            current.clear();
        }
        let line = line.to_lowercase();
        if RUNS.iter().any(|word| line.contains(word)) {
            found.extend(current.iter().cloned());
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_runs_something_is_found() {
        let text = "  -x, --launch=CMD   command to run for each\n  -q  quiet\n\n  --late\n        execute it later\n";
        assert_eq!(running(text), ["--late", "--launch", "-x"]);
    }

    #[test]
    fn an_option_that_no_version_has_is_new() {
        let recorded = lines(
            "# Words.\nsort --help | sort 1 | -x\nsort --help | sort 2 | -y\ntar --help | tar 1 | -z\n",
        );
        assert_eq!(recorded.len(), 3);
        let found = |text| compared(&recorded, &line(text).unwrap());
        assert_eq!(found("sort --help | sort 2 | -y"), Found::Same);
        assert_eq!(found("sort --help | sort 3 | -x -y"), Found::Version);
        assert_eq!(
            found("sort --help | sort 2 | -y -z"),
            Found::Options(vec!["-z".to_owned()])
        );
    }

    #[test]
    fn a_version_has_no_libraries() {
        assert_eq!(
            name_and_number("curl 7.88.1 (x86_64) libcurl/7.88.1\nmore\n"),
            "curl 7.88.1"
        );
        assert_eq!(name_and_number("tar (GNU tar) 1.34\n"), "tar (GNU tar) 1.34");
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for text in [
            "git diff -h | git version 2.47.3 |",
            "rg --help | ripgrep 13.0.0 | --pre -p",
        ] {
            assert_eq!(line(text).unwrap().to_string(), text);
        }
        assert_eq!(line("no columns"), None);
        assert_eq!(
            sorted("# Words.\nb | 1 |\na | 1 |\nb | 1 |\n"),
            "# Words.\na | 1 |\nb | 1 |\n"
        );
    }
}
