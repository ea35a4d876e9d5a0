//! The table of options, compared with the help texts of the programs themselves.

use crate::danger::knows;
use std::process::{Command, Stdio};

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

/// Options whose help only seems to say that they run something; the comparison skips them.
const HARMLESS: &[(&str, &str)] = &[
    ("gcc", "--help"),
    ("gcc", "--version"),
    ("find", "-execdir"),
    ("tar", "--no-check-device"),
    ("sort", "--batch-size"),
    ("rg", "--no-pre"),
    ("git", "--no-ext-diff"),
];

#[expect(
    clippy::disallowed_methods,
    reason = "the programs' own words are what is compared"
)]
fn help(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(args)
        .env("PAGER", "cat")
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

#[test]
fn i7_the_table_knows_the_options_that_programs_say_run_something() {
    let lists: [(&str, &[&str]); 14] = [
        ("tar", &["--help"]),
        ("sort", &["--help"]),
        ("find", &["--help"]),
        ("gcc", &["--help"]),
        ("rg", &["--help"]),
        ("rsync", &["--help"]),
        ("curl", &["--help", "all"]),
        ("wget", &["--help"]),
        ("split", &["--help"]),
        ("man", &["--help"]),
        ("nm", &["--help"]),
        ("git", &["diff", "-h"]),
        ("git", &["grep", "-h"]),
        ("git", &["rebase", "-h"]),
    ];
    let mut seen = 0;
    for (program, args) in lists {
        let Some(text) = help(program, args) else {
            eprintln!("SKIPPED: {program} is not installed, so its options are not compared");
            continue;
        };
        for option in running(&text) {
            seen += 1;
            let excused = HARMLESS.contains(&(program, option.as_str())) || option.starts_with("--no-");
            assert!(
                excused || knows(program, &option),
                "{program} {args:?}: {option} is in no family of options.txt"
            );
        }
    }
    assert!(seen > 0, "no list of options was read");
}

/// The comparison fails for an option that is missing from the table.
#[test]
fn an_option_that_runs_something_and_is_not_in_the_table_is_found() {
    let text =
        "  -x, --launch=CMD   command to run for each\n  -q  quiet\n\n  --late\n        execute it later\n";
    assert_eq!(running(text), ["--late", "--launch", "-x"]);
    assert!(!knows("sort", "--launch") && knows("sort", "--compress-program"));
}
