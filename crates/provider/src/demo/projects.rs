//! The repository of the demo: three scripts with one bug each, and their test.

/// What one session repairs: one script with one bug.
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

/// The files of the repository: relative path and content. `sh test.sh SCRIPT` fails until the bug of that script is fixed.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let mut test =
        "#!/bin/sh\n# Tests the script that it is given; it needs nothing but sh.\ncase $1 in\n".to_owned();
    let mut readme = "# The repository of the demo\n\nThree scripts and their test:\n\n".to_owned();
    let mut files = Vec::new();
    for Project {
        file,
        before,
        wrong,
        after,
        arguments,
        want,
        ..
    } in &PROJECTS
    {
        test.push_str(&format!(
            "{file}) got=$(sh {file} {arguments}) want='{want}' ;;\n"
        ));
        readme.push_str(&format!("    sh test.sh {file}\n"));
        files.push(((*file).to_owned(), format!("{before}{wrong}{after}")));
    }
    test.push_str(
        "esac\nif [ \"$got\" = \"$want\" ]; then\n    echo \"ok: $1 printed '$got'\"\n\
         else\n    echo \"FAILED: $1 printed '$got' instead of '$want'\"\n    exit 1\nfi\n",
    );
    files.push(("test.sh".to_owned(), test));
    files.push(("README.md".to_owned(), readme));
    files
}
