//! Rules about source files.

use super::tree::{Source, Tree};
use anyhow::Result;
use regex::Regex;

/// The most lines of a file, not counting its tests.
const MAX_LINES: usize = 400;

/// Words that carry no information in a name.
const EMPTY_WORDS: [&str; 7] = ["manager", "handler", "util", "helper", "common", "data", "info"];

pub(crate) fn file_sizes(tree: &Tree) -> Result<Vec<String>> {
    let long = |source: &Source| {
        let lines = source.without_tests().lines().count();
        (!source.is_test() && lines > MAX_LINES)
            .then(|| format!("{}: {lines} lines, at most {MAX_LINES}: split it", source.path))
    };
    Ok(tree.sources.iter().filter_map(long).collect())
}

pub(crate) fn lib_files(tree: &Tree) -> Result<Vec<String>> {
    let allowed = Regex::new(
        r"^\s*(//.*|#!?\[.*|pub use .*|(pub(\(crate\))? )?mod \w+;|extern crate self as \w+;|use .*|[\w:]+,|([\w:]+(, )?)+,?|\};?|\)\]|#\[cfg.*|reason = .*|.*::\{|.*\};)?\s*$",
    )?;
    let mut findings = Vec::new();
    for source in tree
        .sources
        .iter()
        .filter(|s| s.path.starts_with("crates/") && s.path.ends_with("src/lib.rs"))
    {
        if !source.text.starts_with("//!") {
            findings.push(format!("{}: add crate docs (`//!`) at the start", source.path));
        }
        if let Some(line) = source
            .without_tests()
            .lines()
            .find(|line| !allowed.is_match(line))
        {
            findings.push(format!("{}: move `{}` into a module", source.path, line.trim()));
        }
    }
    Ok(findings)
}

/// Each pure part of an actor: its folder and its first file, what only it may contain, and what others use.
const MACHINES: [(&str, &str, &str); 2] = [
    (
        "crates/session-loop/src/machine",
        r"\bScene \{|\bOutbox::new\b|\bwaits_for_commit\(",
        "a second loop; use `Machine`",
    ),
    (
        "crates/loop-supervisor/src/machine",
        r"\bSlot::(Hot|Loading)\b|\bWakes::|\bCrashes::",
        "a second supervisor; use `Supervisor`",
    ),
];

/// The decisions of a loop and of the supervisor exist once, and need no actor: the simulator runs what ships.
pub(crate) fn one_machine(tree: &Tree) -> Result<Vec<String>> {
    let impure = Regex::new(r"\bractor\b|\btokio\b|\basync\b|\.await\b")?;
    let shipped: Vec<&Source> = tree
        .sources
        .iter()
        .filter(|source| {
            let path = &source.path;
            !source.is_test() && path.starts_with("crates/") && !path.starts_with("crates/turn/")
        })
        .collect();
    let mut findings = Vec::new();
    for (machine, second, instead) in MACHINES {
        let second = Regex::new(second)?;
        for source in &shipped {
            let (path, text) = (&source.path, source.without_tests());
            if !path.starts_with(machine) {
                let found = second.find(text).map(|found| found.as_str());
                findings.extend(found.map(|found| format!("{path}: `{found}`: {instead}")));
            } else if let Some(found) = impure.find(text) {
                findings.push(format!(
                    "{path}: `{}` in the pure part of an actor",
                    found.as_str()
                ));
            }
        }
    }
    Ok(findings)
}

pub(crate) fn names(tree: &Tree) -> Result<Vec<String>> {
    let types = Regex::new(r"(?m)^\s*(?:pub(?:\([a-z]+\))? )?(?:struct|enum|trait|type) (\w+)")?;
    let mut findings = Vec::new();
    for source in &tree.sources {
        let stem = source
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        if stem == "mod" {
            findings.push(format!(
                "{}: use NAME.rs next to the folder instead of mod.rs",
                source.path
            ));
        }
        if stem
            .split('_')
            .any(|word| EMPTY_WORDS.contains(&word.trim_end_matches('s')))
        {
            findings.push(format!("{}: name the file after its content", source.path));
        }
        for name in types
            .captures_iter(source.without_tests())
            .filter_map(|c| c.get(1))
        {
            if words(name.as_str())
                .iter()
                .any(|word| EMPTY_WORDS.contains(&word.trim_end_matches('s')))
            {
                findings.push(format!(
                    "{}: name the type {} after what it is",
                    source.path,
                    name.as_str()
                ));
            }
        }
    }
    Ok(findings)
}

/// The words of a CamelCase name in lower case.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in name.chars() {
        match words.last_mut() {
            Some(word) if !c.is_uppercase() => word.push(c),
            _ => words.push(c.to_lowercase().to_string()),
        }
    }
    words
}

pub(crate) fn honest_tests(tree: &Tree) -> Result<Vec<String>> {
    let ignored = Regex::new(r"#\[ignore\b")?;
    let sleeps = Regex::new(r"\b(thread|time)::sleep\(")?;
    let mut findings = Vec::new();
    for source in &tree.sources {
        if ignored.is_match(&source.text) {
            findings.push(format!(
                "{}: an ignored test proves nothing: run it or delete it",
                source.path
            ));
        }
        if sleeps.is_match(source.only_tests()) {
            findings.push(format!(
                "{}: wait for an event instead of sleeping in a test",
                source.path
            ));
        }
    }
    Ok(findings)
}

pub(crate) fn invariants(tree: &Tree) -> Result<Vec<String>> {
    let named = |id: u8| {
        let needle = format!("fn i{id}_");
        tree.sources
            .iter()
            .any(|source| source.only_tests().contains(&needle))
    };
    Ok((1..=9)
        .filter(|id| !named(*id))
        .map(|id| format!("I{id}: no test is called i{id}_…"))
        .collect())
}
