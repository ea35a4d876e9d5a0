//! The fault list, `docs/faults.md`: every row names existing tests, or the reason why it has none.

use super::tree::Tree;
use anyhow::Result;
use regex::Regex;
use std::collections::BTreeSet;

const LIST: &str = "docs/faults.md";
/// The number of rows in the list.
const ROWS: u8 = 41;
/// The start of the text in a row without a test.
const LEFT_OUT: &str = "left out: ";

/// A row of the list.
pub(crate) struct Row {
    number: u8,
    about: String,
    tests: Vec<String>,
    left_out: bool,
}

/// Parses the rows.
pub(crate) fn listed(text: &str) -> Result<Vec<Row>> {
    let line = Regex::new(r"(?m)^\| (\d+) \| ([^|]*) \| [^|]* \| ([^|]*) \|$")?;
    let name = Regex::new(r"`(\w+)`")?;
    let row = |found: regex::Captures<'_>| {
        let cell = |n: usize| found.get(n).map_or("", |cell| cell.as_str());
        let tests = name.captures_iter(cell(3)).filter_map(|test| test.get(1));
        Some(Row {
            number: cell(1).parse().ok()?,
            about: cell(2).to_owned(),
            tests: tests.map(|test| test.as_str().to_owned()).collect(),
            left_out: cell(3).starts_with(LEFT_OUT),
        })
    };
    Ok(line.captures_iter(text).filter_map(row).collect())
}

/// Reports missing rows, rows without tests, and tests that do not exist.
pub(crate) fn rows(tree: &Tree) -> Result<Vec<String>> {
    check(&tree.text(LIST)?, tree)
}

fn check(text: &str, tree: &Tree) -> Result<Vec<String>> {
    // A function, or a line of a macro that generates tests.
    let test = Regex::new(r"(?m)\bfn (\w+)\(|^ +(\w+): ")?;
    let sources = tree.sources.iter();
    let known: BTreeSet<&str> = sources
        .flat_map(|source| test.captures_iter(source.only_tests()))
        .filter_map(|found| found.get(1).or(found.get(2)))
        .map(|name| name.as_str())
        .collect();
    let listed = listed(text)?;
    let missing = (1..=ROWS)
        .filter(|number| !listed.iter().any(|row| row.number == *number))
        .map(|number| format!("{LIST}: row {number} is missing"));
    let mut findings: Vec<String> = missing.collect();
    for row in &listed {
        if row.tests.is_empty() && !row.left_out {
            findings.push(format!(
                "{LIST}: row {} names no test; name one, or say `{LEFT_OUT}why`",
                row.number
            ));
        }
        let unknown = row.tests.iter().filter(|name| !known.contains(name.as_str()));
        findings.extend(unknown.map(|name| format!("{LIST}: row {}: there is no test {name}", row.number)));
    }
    Ok(findings)
}

/// The list, one line per row.
pub(crate) fn lines(tree: &Tree) -> Result<Vec<String>> {
    let line = |row: Row| {
        let proof = match row.tests.as_slice() {
            [] => "LEFT OUT".to_owned(),
            tests => tests.join(", "),
        };
        format!("{:02} {}: {proof}", row.number, row.about)
    };
    Ok(listed(&tree.text(LIST)?)?.into_iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Source;

    fn tree(test: &str) -> Tree {
        Tree {
            sources: vec![Source {
                path: "tests/a.rs".to_owned(),
                text: test.to_owned(),
            }],
            ..Tree::default()
        }
    }

    fn list(first: &str) -> String {
        let rest = |n| format!("| {n} | a fault | holds | left out: not here |\n");
        let rest: String = (2..=ROWS).map(rest).collect();
        format!("| 1 | a fault | holds | {first} |\n{rest}")
    }

    #[test]
    fn a_row_that_names_a_missing_test_is_found() {
        let found = |first: &str, test: &str| check(&list(first), &tree(test)).unwrap();
        assert_eq!(found("`it_holds`", "fn it_holds() {}"), [""; 0]);
        assert_eq!(found("`it_holds`", "    it_holds: 1, 2;"), [""; 0]);
        assert_eq!(found("left out: no kernel has it", ""), [""; 0]);
        assert_eq!(found("`it_holds`", "fn it_held() {}").len(), 1);
        assert_eq!(found("soon", "").len(), 1);
        let short = check("| 1 | a fault | holds | `x` |\n", &tree("fn x() {}")).unwrap();
        assert_eq!(short.len(), usize::from(ROWS) - 1, "rows are missing");
    }
}
