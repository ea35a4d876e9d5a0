//! The projects of the demo: each is one script with one bug, and its test.

/// A project: one script with one bug.
pub(super) struct Project {
    pub(super) file: &'static str,
    pub(super) before: &'static str,
    pub(super) wrong: &'static str,
    pub(super) right: &'static str,
    pub(super) after: &'static str,
    pub(super) arguments: &'static str,
    pub(super) want: &'static str,
    pub(super) cause: &'static str,
}

const PROJECTS: [Project; 3] = [
    Project {
        file: "greet.sh",
        before: "#!/bin/sh\n# Greets a person by name.\nname=${1:-world}\n",
        wrong: "printf 'Helo, %s\\n' \"$name\"",
        right: "printf 'Hello, %s!\\n' \"$name\"",
        after: "\n",
        arguments: "ada",
        want: "Hello, ada!",
        cause: "The greeting is misspelled and lacks its exclamation mark.",
    },
    Project {
        file: "sum.sh",
        before: "#!/bin/sh\n# Adds up its arguments.\n",
        wrong: "total=1",
        right: "total=0",
        after: "\nfor number in \"$@\"; do\n    total=$((total + number))\ndone\necho \"$total\"\n",
        arguments: "1 2 3",
        want: "6",
        cause: "The sum starts at one instead of zero.",
    },
    Project {
        file: "slug.sh",
        before: "#!/bin/sh\n# Turns a title into a file name.\n",
        wrong: "printf '%s\\n' \"$1\" | tr 'A-Z' 'a-z'",
        right: "printf '%s\\n' \"$1\" | tr 'A-Z ' 'a-z-'",
        after: "\n",
        arguments: "'Agents At Work'",
        want: "agents-at-work",
        cause: "Spaces are never turned into dashes.",
    },
];

pub(super) fn project(n: u32) -> &'static Project {
    let [greet, sum, slug] = &PROJECTS;
    match n % 3 {
        1 => greet,
        2 => sum,
        _ => slug,
    }
}

/// The files of session `n` (from 1): relative path and content. The test fails until the bug is fixed.
#[must_use]
pub fn project_files(n: u32) -> Vec<(String, String)> {
    let Project {
        file,
        before,
        wrong,
        after,
        arguments,
        want,
        ..
    } = project(n);
    let test = format!(
        "#!/bin/sh\n# The test of this project; it needs nothing but sh.\n\
         got=$(sh {file} {arguments})\nwant='{want}'\n\
         if [ \"$got\" = \"$want\" ]; then\n    echo \"ok: {file} printed '$got'\"\n\
         else\n    echo \"FAILED: {file} printed '$got' instead of '$want'\"\n    exit 1\nfi\n"
    );
    let readme = format!("# Demo project {n}\n\nOne script, `{file}`, and its test: `sh test.sh`.\n");
    vec![
        ((*file).to_owned(), format!("{before}{wrong}{after}")),
        ("test.sh".to_owned(), test),
        ("README.md".to_owned(), readme),
    ]
}
