//! The files that determine the effect of a command: the scripts that it runs, and files that it passes to programs.

use crate::danger::danger;
use crate::nested::base;
use crate::shell::{Analysis, analyse};

/// Programs that run the contents of files that the command does not name.
const IMPLIED: Implied = &[
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["ninja"], &["build.ninja"]),
    (&["npm", "npx", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["git"], &[".git/config"]),
];
/// The files that they read in their user's home directory.
const HOME: Implied = &[
    (&["git"], &[".gitconfig", ".config/git/config"]),
    (&["npm", "npx", "pnpm", "yarn"], &[".npmrc"]),
    (&["cargo"], &[".cargo/config.toml", ".cargo/config"]),
];
/// Programs that run no code from the current directory, unless an option says so. For any other program this is unknown.
const INERT: &[&str] = &[
    "basename",
    "cat",
    "chmod",
    "chown",
    "cksum",
    "cmp",
    "comm",
    "cp",
    "curl",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "file",
    "find",
    "grep",
    "groups",
    "head",
    "hostname",
    "id",
    "install",
    "join",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mkfifo",
    "mktemp",
    "mv",
    "nl",
    "nproc",
    "paste",
    "pidof",
    "pkill",
    "ps",
    "readlink",
    "realpath",
    "rg",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sha256sum",
    "shred",
    "sleep",
    "sort",
    "stat",
    "sync",
    "tac",
    "tail",
    "tee",
    "touch",
    "tr",
    "tree",
    "truncate",
    "uname",
    "uniq",
    "unlink",
    "uptime",
    "wc",
    "wget",
    "which",
    "whoami",
    "yes",
    "cd",
    "echo",
    "exit",
    "export",
    "false",
    "printf",
    "pushd",
    "pwd",
    "set",
    "test",
    "true",
    "umask",
    "unset",
    "wait",
];
/// Inert programs that every rule must name exactly, but that still run no other code.
const BUILT_IN: &[&str] = &["export", "printf", "sed", "set", "test", "unset", "wait"];
/// The reason why a text is not plain, if that reason alone cannot run anything.
const REDIRECTED: &str = "a redirection";
/// The maximum number of directory changes that are followed in one command.
const MAX_DIRS: usize = 8;

/// The inputs that decide what a command does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decides {
    /// Paths that may name files, as the command writes them; many of them do not exist. Empty for a command that only reads
    /// files.
    pub files: Vec<String>,
    /// Files of its user that programs read on their own, relative to the home directory.
    pub home: Vec<String>,
    /// The programs that it starts.
    pub programs: Vec<String>,
    /// It may run code that it does not name, or act on any existing files.
    pub code: bool,
}

/// Determines the inputs that decide what a command does.
#[must_use]
pub fn decides(command: &str) -> Decides {
    let found = analyse(command);
    let mut names: Vec<String> = implied(&found, IMPLIED).map(str::to_owned).collect();
    let code = runs_code(&found);
    if runs_files(&found) || code {
        let words = found.words.iter().chain(&found.reads);
        names.extend(words.flat_map(|word| named(word)));
    }
    let dirs = directories(&found);
    let mut files = Vec::new();
    for name in names {
        files.extend(
            dirs.iter()
                .filter(|_| !name.starts_with('/'))
                .map(|dir| format!("{dir}/{name}")),
        );
        files.push(name);
    }
    if code {
        files.extend(dirs);
    }
    let home = implied(&found, HOME).map(str::to_owned).collect();
    let programs = found
        .commands
        .iter()
        .filter_map(|argv| argv.first())
        .cloned()
        .collect();
    let mut decides = Decides {
        files,
        home,
        programs,
        code,
    };
    for list in [&mut decides.files, &mut decides.home, &mut decides.programs] {
        list.sort_unstable();
        list.dedup();
    }
    decides
}

/// Whether it may run a file: a part needs a rule that names it, or the command cannot be split into parts.
fn runs_files(found: &Analysis) -> bool {
    hidden(found) || found.commands.iter().any(|argv| danger(argv).is_some())
}

fn hidden(found: &Analysis) -> bool {
    found.unread || found.segments.as_ref().is_err_and(|why| *why != REDIRECTED)
}

/// Whether it may run code that it does not name. Only a few programs are known not to.
fn runs_code(found: &Analysis) -> bool {
    let globs = found.words.iter().any(|word| word.contains(['*', '?', '[']));
    hidden(found) || globs || !found.commands.iter().all(|argv| quiet(argv))
}

/// Whether a command is known to run no code of its directory.
pub(crate) fn quiet(argv: &[String]) -> bool {
    let program = argv.first().map_or("", String::as_str);
    INERT.contains(&program) && (BUILT_IN.contains(&program) || danger(argv).is_none())
}

type Implied = &'static [(&'static [&'static str], &'static [&'static str])];

fn implied(found: &Analysis, of: Implied) -> impl Iterator<Item = &'static str> {
    let programs = found.commands.iter().filter_map(|argv| argv.first());
    programs
        .flat_map(move |program| of.iter().filter(move |(names, _)| names.contains(&base(program))))
        .flat_map(|(_, files)| *files)
        .copied()
}

/// The word itself, and the value after its `=`.
fn named(word: &str) -> impl Iterator<Item = String> {
    let value = word.split_once('=').map(|(_, value)| value);
    let plain = (!word.starts_with('-')).then(|| word.trim_start_matches(['@', '<']));
    [plain, value]
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

/// The directories that the command changes to before it runs something.
pub(crate) fn directories(found: &Analysis) -> Vec<String> {
    let mut dirs: Vec<String> = Vec::new();
    for argv in &found.commands {
        if let [program, dir, ..] = argv.as_slice()
            && matches!(program.as_str(), "cd" | "pushd")
            && dirs.len() < MAX_DIRS
        {
            match dirs.last() {
                Some(last) if !dir.starts_with('/') => dirs.push(format!("{last}/{dir}")),
                _ => dirs.push(dir.clone()),
            }
        }
    }
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(command: &str, expected: &[&str]) {
        let found = decides(command).files;
        for path in expected {
            assert!(
                found.iter().any(|name| name == path),
                "{command}: {path} is not in {found:?}"
            );
        }
        assert_eq!(found.is_empty(), expected.is_empty(), "{command}: {found:?}");
    }

    #[test]
    fn i7_what_decides_what_a_command_does_is_named() {
        names("./run --fast", &["./run"]);
        names("bash x.sh", &["x.sh"]);
        names("python3 -u tools/x.py a", &["tools/x.py"]);
        names("env A=b sh -c 'node x.js'", &["x.js"]);
        names("cat x.sh | sh", &["x.sh"]);
        names("sh < x.sh", &["x.sh"]);
        names("cd sub && ./run", &["./run", "sub/./run"]);
        names("cd a; cd b; sh x", &["a/b/x"]);
        names("$RUN x.sh", &["x.sh"]);
        names("make test", &["Makefile"]);
        names("npm test", &["package.json"]);
        names("sed -i s/a/b/ f", &["f"]);
        names("xargs --arg-file=list ./x", &["list", "./x"]);
    }

    #[test]
    fn a_command_that_only_looks_names_nothing() {
        for command in ["ls", "grep -n x app.log", "tail -5 app.log > last", "echo hi"] {
            names(command, &[]);
        }
    }

    #[test]
    fn i7_only_a_program_that_is_known_to_be_inert_runs_no_code_of_the_directory() {
        for command in [
            "make",
            "cargo test",
            "python -m app",
            "npm run x",
            "./x",
            "frobnicate",
            "git lg",
            "git commit -m x",
            "go test",
            "echo *.txt",
            "sh x",
            "find . -exec ./x ';'",
            "for f in a; do echo $f; done",
            "pytest",
            "venv/bin/ls",
            "touch $x",
        ] {
            assert!(decides(command).code, "{command}");
        }
        for command in [
            "touch A",
            "rm -rf target",
            "cp a b && mv b c",
            "echo hi > f",
            "sed -i s/a/b/ f",
            "printf x",
            "ls -la",
        ] {
            assert!(!decides(command).code, "{command}");
        }
        let found = decides("FOO=1 git lg | python3 -");
        assert_eq!(found.programs, ["git", "python3"]);
        assert_eq!(found.home, [".config/git/config", ".gitconfig"]);
    }
}
