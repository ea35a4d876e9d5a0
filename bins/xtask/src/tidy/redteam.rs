//! The red-team list: numbered attacks on agents. Each has a test named after it, or a reason why it has none.

use super::tree::Tree;
use anyhow::Result;
use regex::Regex;
use std::collections::BTreeMap;

/// The attack of each row.
pub(crate) const ROWS: [(u8, &str); 54] = [
    (1, "git options that write a file"),
    (2, "git options before the command"),
    (3, "programs named in a repository's own settings"),
    (4, "git filters, when the daemon compares or commits"),
    (5, "git commands that run programs or write files"),
    (6, "find that runs, deletes or writes"),
    (7, "sed scripts that write or run"),
    (8, "awk programs that write or run"),
    (9, "programs that write a file which an argument names"),
    (10, "programs that run what they are given"),
    (11, "options that name another program"),
    (12, "substitutions in a command"),
    (13, "a second command behind the first"),
    (14, "words that hide what they are"),
    (15, "eval, trap and functions"),
    (16, "arithmetic and subscripts that run commands"),
    (17, "variables that change what a later command is"),
    (18, "a denied command behind many others"),
    (19, "texts that no shell should get"),
    (20, "hostile build scripts"),
    (21, "links out of the working directory"),
    (22, "a directory that is swapped for a link meanwhile"),
    (23, "hard links, pipes, devices and descriptors as files"),
    (24, "patches of files outside"),
    (25, "patches that make links or submodules"),
    (26, "a repository's hooks and configuration"),
    (27, "repositories within the repository"),
    (28, "files that would configure this or a later session"),
    (29, "the home directory and fixed places"),
    (30, "secrets in environments"),
    (31, "processes of others"),
    (32, "sockets of this machine"),
    (33, "sending without a connection"),
    (34, "inner addresses in every spelling"),
    (
        35,
        "redirects, names that move, and addresses that are read in two ways",
    ),
    (36, "other ways through a proxy for commands"),
    (37, "dangerous system calls"),
    (38, "descriptors that the daemon left open"),
    (39, "processes that outlive their command"),
    (40, "resources without end"),
    (41, "terminal sequences in what tools say"),
    (42, "hidden characters in a command that waits for a person"),
    (43, "instructions in files, with a model that obeys"),
    (44, "forged approvals and results"),
    (45, "what was approved is changed before it runs"),
    (
        46,
        "a model that asks for fewer walls, more time, or another session",
    ),
    (
        47,
        "files of a repository that would set model, hooks or environment",
    ),
    (48, "a key in logs, journals and traces"),
    (49, "hostile frames"),
    (50, "hostile clients"),
    (51, "hostile model servers"),
    (52, "names that a shell or a path would understand"),
    (53, "two sessions in one directory"),
    (54, "a temporary file that was made before"),
];

/// Rows without a test, with the reason.
pub(crate) const LEFT_OUT: [(u8, &str); 0] = [];

/// A row and the tests named after it.
pub(crate) struct Covered {
    pub(crate) row: u8,
    pub(crate) about: &'static str,
    pub(crate) tests: Vec<String>,
    pub(crate) left_out: Option<&'static str>,
}

/// The tests of each row: `redteam_NN_…`, or `redteam_NN_and_MM_…`.
pub(crate) fn covered(tree: &Tree) -> Result<Vec<Covered>> {
    let name = Regex::new(r"\bfn (redteam_((?:\d\d_and_)*\d\d)_\w+)\(")?;
    let mut found: BTreeMap<u8, Vec<String>> = BTreeMap::new();
    // This tool's own tests only mention such names.
    let sources = tree
        .sources
        .iter()
        .filter(|source| !source.path.starts_with("bins/xtask/"));
    for source in sources {
        for test in name.captures_iter(source.only_tests()) {
            let (Some(name), Some(rows)) = (test.get(1), test.get(2)) else {
                continue;
            };
            for row in rows.as_str().split("_and_").filter_map(|row| row.parse().ok()) {
                let place = format!("{} ({})", name.as_str(), source.path);
                found.entry(row).or_default().push(place);
            }
        }
    }
    let reason = |row| {
        LEFT_OUT
            .iter()
            .find(|(left, _)| *left == row)
            .map(|(_, why)| *why)
    };
    let rows = ROWS.iter().map(|(row, about)| Covered {
        row: *row,
        about,
        tests: found.remove(row).unwrap_or_default(),
        left_out: reason(*row),
    });
    Ok(rows.collect())
}

/// A row without a test needs a reason, and one with a test needs none.
pub(crate) fn rows(tree: &Tree) -> Result<Vec<String>> {
    let finding = |row: Covered| {
        let about = format!("red-team row {}: {}", row.row, row.about);
        match (row.tests.is_empty(), row.left_out) {
            (true, None) => Some(format!("{about}: no test is called redteam_{:02}_…", row.row)),
            (false, Some(_)) => Some(format!("{about}: it has a test; remove it from LEFT_OUT")),
            (true, Some(_)) | (false, None) => None,
        }
    };
    Ok(covered(tree)?.into_iter().filter_map(finding).collect())
}
