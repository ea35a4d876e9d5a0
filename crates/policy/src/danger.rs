//! Words that make a harmless-looking command run another program or write a file. A prefix rule never covers such a word
//! unless the rule itself names it.

mod options;

use crate::nested::{SHELLS, WRAPPERS, base};
use options::Family;

/// How much of a command a prefix rule must name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Danger {
    /// The word at this index, and all words before it.
    Word(usize),
    /// All of it: only an exact rule suffices.
    Everything,
}

/// Built-ins that change the meaning of later commands, and programs whose first argument is a program.
const EXACT: [&str; 54] = [
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "gsed",
    "ed",
    "ex",
    "screen",
    "tmux",
    "dc",
    "m4",
    "scp",
    "sftp",
    "crontab",
    "at",
    "batch",
    "ftp",
    "telnet",
    "socat",
    "gdbserver",
    "valgrind",
    "perf",
    "java",
    "jshell",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "gdb",
    "trap",
    "export",
    "typeset",
    "declare",
    "local",
    "readonly",
    "alias",
    "unalias",
    "set",
    "unset",
    "shopt",
    "enable",
    "hash",
    "bind",
    "complete",
    "read",
    "mapfile",
    "readarray",
    "let",
    "coproc",
    "test",
    "wait",
    "printf",
    "getopts",
];
/// Programs whose first argument decides what runs.
const INTERPRETERS: [&str; 49] = [
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "irb",
    "julia",
    "R",
    "Rscript",
    "guile",
    "groovy",
    "scala",
    "swift",
    "ghci",
    "ocaml",
    "erl",
    "elixir",
    "iex",
    "bundle",
    "rake",
    "gradle",
    "mvn",
    "ant",
    "tox",
    "nox",
    "wish",
    "expect",
    "osascript",
    "pwsh",
    "powershell",
    "npx",
    "bunx",
    "pnpx",
    "uvx",
    "pipx",
    "make",
    "gmake",
    "ninja",
    "just",
];
/// The git commands that a rule for all of git covers; any other may be an alias, which can run anything.
const GIT: [&str; 33] = [
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "grep",
    "branch",
    "tag",
    "rev-parse",
    "rev-list",
    "ls-files",
    "ls-tree",
    "cat-file",
    "describe",
    "shortlog",
    "add",
    "commit",
    "restore",
    "reset",
    "rm",
    "mv",
    "stash",
    "switch",
    "checkout",
    "merge",
    "cherry-pick",
    "revert",
    "init",
    "fetch",
    "pull",
    "push",
    "clone",
    "remote",
];

/// The part of this command that a rule must name to allow it.
pub(crate) fn danger(argv: &[String]) -> Option<Danger> {
    let program = argv.first()?;
    let name = base(program);
    if EXACT.contains(&name) || WRAPPERS.contains(&name) {
        return Some(Danger::Everything);
    }
    let in_place = if program.contains('/') { Some(0) } else { None };
    in_place
        .max(interpreter(name, argv))
        .max(flags(name, argv))
        .max(words(name, argv))
        .map(Danger::Word)
}

/// Whether a program is a shell or an interpreter, in any version.
pub(crate) fn interprets(program: &str) -> bool {
    let name = base(program);
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let known = |name: &str| INTERPRETERS.contains(&name) || SHELLS.contains(&name);
    known(name) || known(versioned)
}

fn interpreter(name: &str, argv: &[String]) -> Option<usize> {
    if !interprets(name) {
        return None;
    }
    let decides = |word: &String| {
        !word.starts_with('-') || ["-c", "-e", "-m", "-E", "-r", "-p", "-f"].contains(&word.as_str())
    };
    Some(
        argv.iter()
            .skip(1)
            .position(decides)
            .map_or(argv.len() - 1, |at| at + 1),
    )
}

fn flags(name: &str, argv: &[String]) -> Option<usize> {
    let first = argv.get(1).map(String::as_str).unwrap_or_default();
    let families: Vec<&Family> = options::of(name).collect();
    let dangerous = |word: &str| {
        let mut flags = families.iter().flat_map(|family| family.flags(first));
        flags.any(|flag| is_flag(word, flag))
    };
    argv.iter()
        .enumerate()
        .skip(1)
        .filter(|(_, word)| dangerous(word))
        .map(|(at, _)| at)
        .max()
}

/// Whether a word is an option: long options may be abbreviated or carry a value, short ones may be grouped; `*` at the
/// end of a flag matches any ending.
fn is_flag(word: &str, flag: &str) -> bool {
    if let Some(beginning) = flag.strip_suffix('*') {
        return word.starts_with(beginning);
    }
    let name = word.split('=').next().unwrap_or_default();
    if let Some(long) = flag.strip_prefix("--") {
        return name
            .strip_prefix("--")
            .is_some_and(|name| !name.is_empty() && long.starts_with(name));
    }
    let Some(letters) = flag.strip_prefix('-') else {
        return word.starts_with(flag);
    };
    if letters.len() > 1 {
        return word.trim_start_matches('-').starts_with(letters) && word.starts_with('-');
    }
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

/// Whether the table has this option for a program and its sub-command.
pub(crate) fn is_dangerous(name: &str, command: &str, word: &str) -> bool {
    options::of(name).any(|family| family.flags(command).iter().any(|flag| is_flag(word, flag)))
}

/// Whether the table has an option of a program. For the tests against the programs' own lists.
#[cfg(test)]
pub(crate) fn knows(program: &str, option: &str) -> bool {
    options::of(program).any(|family| family.flags("").iter().any(|flag| is_flag(option, flag)))
}

/// Dangers that depend on several words.
fn words(name: &str, argv: &[String]) -> Option<usize> {
    let at = |found: &dyn Fn(&str) -> bool| {
        argv.iter()
            .enumerate()
            .skip(1)
            .filter(|(_, word)| found(word))
            .map(|(at, _)| at)
            .max()
    };
    let first = argv.get(1).map(String::as_str).unwrap_or_default();
    match name {
        "git" => {
            let command = if GIT.contains(&first) || argv.len() < 2 {
                None
            } else {
                Some(argv.len().min(2) - 1)
            };
            let options = argv
                .iter()
                .skip(1)
                .take_while(|word| word.starts_with('-'))
                .count();
            let options = if options > 0 {
                Some((options + 1).min(argv.len() - 1))
            } else {
                None
            };
            command.max(options).max(at(&|word| word.contains("::")))
        }
        // The second file name is the output file.
        "uniq" => argv
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, word)| !word.starts_with('-') || *word == "-")
            .nth(1)
            .map(|(at, _)| at),
        "xxd" => argv
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, word)| !word.starts_with('-'))
            .nth(1)
            .map(|(at, _)| at),
        "tar" | "gtar" | "bsdtar" if !first.starts_with('-') && first.contains(['I', 'F']) => Some(1),
        "npm" | "pnpm" | "yarn" | "bun" => {
            at(&|word| ["exec", "x", "dlx", "explore", "create", "init"].contains(&word))
        }
        "make" | "gmake" => at(&|word| word.contains('=')),
        "go" => at(&|word| ["run", "generate", "tool"].contains(&word)),
        "docker" | "podman" | "kubectl" | "nerdctl" if argv.len() > 1 => Some(1),
        "sqlite3" => at(&|word| {
            word.starts_with('.')
                || word.contains("load_extension")
                || word.contains("readfile")
                || word.contains("writefile")
        }),
        "cmake" | "ctest" => at(&|word| word.starts_with("-D") || word.starts_with("--build")),
        "openssl" => at(&|word| word == "engine" || word == "s_server"),
        "dd" | "tee" | "install" | "split" | "csplit" => Some(argv.len() - 1),
        _ => None,
    }
}
