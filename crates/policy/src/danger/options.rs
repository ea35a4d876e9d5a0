//! The table of options that run a program, write a file or load code: `options.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

static TABLE: LazyLock<HashMap<&'static str, Vec<Family>>> =
    LazyLock::new(|| read(include_str!("options.txt")));

/// The options of a family of programs.
#[derive(Debug, Clone)]
pub(super) struct Family {
    /// Options that run a program or load code, write the file that they name, or load configuration.
    flags: Vec<&'static str>,
    /// Subcommands for which these options are harmless.
    unless: Vec<&'static str>,
}

impl Family {
    /// Its options when the first word after the program is `first`.
    pub(super) fn flags(&self, first: &str) -> &[&'static str] {
        if self.unless.contains(&first) {
            &[]
        } else {
            &self.flags
        }
    }
}

/// The families of a program; ignores a version at the end of its name (`gcc-13`).
pub(super) fn of(name: &str) -> impl Iterator<Item = &'static Family> {
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    TABLE
        .get(name)
        .or_else(|| TABLE.get(versioned))
        .into_iter()
        .flatten()
}

fn read(text: &'static str) -> HashMap<&'static str, Vec<Family>> {
    let mut table: HashMap<_, Vec<Family>> = HashMap::new();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    for (programs, options) in rows.filter_map(|line| line.split_once(" : ")) {
        let mut columns = options.split(" | ");
        let family = Family {
            flags: columns.by_ref().take(3).flat_map(str::split_whitespace).collect(),
            unless: columns.flat_map(str::split_whitespace).collect(),
        };
        for program in programs.split_whitespace() {
            table.entry(program).or_default().push(family.clone());
        }
    }
    table
}
