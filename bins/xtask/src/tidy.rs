//! The house rules. Each rule is a function from the tree to findings; a finding names the file and the remedy.

mod dependencies;
mod documents;
mod faults;
mod layers;
mod redteam;
mod sources;
mod targets;
mod tree;

use anyhow::Result;
pub(crate) use documents::OPENAPI;
use std::path::Path;
use tree::Tree;

type Rule = fn(&Tree) -> Result<Vec<String>>;

/// Every rule by name.
pub(crate) const RULES: [(&str, Rule); 18] = [
    (
        "a crate depends only on strictly lower layers",
        layers::strictly_downwards,
    ),
    (
        "a crate is named after its folder and says what it is",
        layers::named_and_described,
    ),
    (
        "dependencies comply with deny.toml",
        dependencies::licences_and_bans,
    ),
    (
        "agentctl links nothing that only a daemon needs",
        dependencies::small_program,
    ),
    (
        "a library has `doctest = false` exactly if its documentation has no example",
        targets::documentation_tests,
    ),
    (
        "a package has one program of integration tests at most",
        targets::one_test_program,
    ),
    ("a file fits on a few screens", sources::file_sizes),
    ("lib.rs holds docs, modules and re-exports", sources::lib_files),
    ("names say what a thing is", sources::names),
    ("there is one loop, and its machine is pure", sources::one_machine),
    ("a test neither sleeps nor is ignored", sources::honest_tests),
    ("every invariant is named by a test", sources::invariants),
    (
        "every row of the red-team list has a test or a reason",
        redteam::rows,
    ),
    ("every row of the fault list has a test or a reason", faults::rows),
    ("every configuration key is documented", documents::config_keys),
    ("docs/openapi.json is the code's", documents::openapi),
    (
        "every path in ARCHITECTURE.md exists",
        documents::architecture_paths,
    ),
    (
        "documents name the newest version of a SQL function",
        documents::sql_functions,
    ),
];

/// The red-team list, one line per row, with the tests that prove it; omitted rows with the reason.
pub(crate) fn redteam(root: &Path) -> Result<Vec<String>> {
    let line = |row: redteam::Covered| {
        let proof = match (row.left_out, row.tests.as_slice()) {
            (Some(why), _) => format!("LEFT OUT: {why}"),
            (None, []) => "MISSING".to_owned(),
            (None, tests) => tests.join(", "),
        };
        format!("{:02} {}: {proof}", row.row, row.about)
    };
    let rows = redteam::covered(&Tree::read(root)?)?;
    Ok(rows.into_iter().map(line).collect())
}

/// The fault list, one line per row, with the tests that prove it.
pub(crate) fn faults(root: &Path) -> Result<Vec<String>> {
    faults::lines(&Tree::read(root)?)
}

/// Applies every rule.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let tree = Tree::read(root)?;
    let mut findings = Vec::new();
    for (name, rule) in RULES {
        findings.extend(
            rule(&tree)?
                .into_iter()
                .map(|finding| format!("{finding} ({name})")),
        );
    }
    Ok(findings)
}

#[cfg(test)]
mod tests;
