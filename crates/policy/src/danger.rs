//! Words that make a harmless-looking command run another or write a file. A prefix rule never covers such a word
//! unless the rule itself names it.

use crate::nested::{SHELLS, WRAPPERS, base};

/// How much of a command a prefix rule must name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Danger {
    /// The word at this index, and all before it.
    Word(usize),
    /// All of it: only an exact rule will do.
    Everything,
}

/// Built-ins that change what later commands mean, and programs whose first argument is a program.
const EXACT: [&str; 37] = [
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "gsed",
    "ed",
    "ex",
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
const INTERPRETERS: [&str; 29] = [
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
/// Options with which programs run others or write files.
const FLAGS: &[(&[&str], &[&str])] = &[
    (&["find"], &["-exec", "-ok", "-delete", "-fprint", "-fls"]),
    (&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
    (
        &["sort"],
        &[
            "-o",
            "--output",
            "--compress-program",
            "-T",
            "--temporary-directory",
        ],
    ),
    (
        &["shuf", "tree", "base64", "base32", "xmllint", "iconv"],
        &["-o", "--output"],
    ),
    (
        &["tar", "gtar", "bsdtar"],
        &[
            "-I",
            "-F",
            "--checkpoint-action",
            "--use-compress-program",
            "--to-command",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
        ],
    ),
    (&["rg"], &["--pre", "--hostname-bin", "-z", "--search-zip"]),
    (&["man"], &["-P", "-H", "--pager", "--html"]),
    (
        &["less", "more"],
        &["-o", "-O", "-k", "--log-file", "--LOG-FILE", "--lesskey-src"],
    ),
    (
        &["go"],
        &["-exec", "-toolexec", "-vettool", "-overlay", "-o", "-C"],
    ),
    (&["cargo"], &["--config", "-Z", "-C"]),
    (
        &["npm", "pnpm", "yarn"],
        &[
            "--script-shell",
            "--node-options",
            "--prefix",
            "-C",
            "--cwd",
            "--dir",
        ],
    ),
    (
        &["make", "gmake"],
        &[
            "-f",
            "-C",
            "-I",
            "--file",
            "--makefile",
            "--directory",
            "--eval",
            "--include-dir",
        ],
    ),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["zip"], &["-T", "-TT", "--unzip-command"]),
    (&["date"], &["-s", "--set"]),
    (&["file"], &["-C", "--compile"]),
    (&["split", "csplit"], &["--filter"]),
    (
        &["pytest", "py.test"],
        &["-p", "-c", "-o", "--rootdir", "--confcutdir", "--override-ini"],
    ),
    (
        &["git"],
        &[
            "--output",
            "--ext-diff",
            "--textconv",
            "-O",
            "--open-files-in-pager",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--template",
            "--config",
            "-c",
            "-u",
            "--no-index",
            "--separate-git-dir",
        ],
    ),
];
/// The git commands that a rule for all of git stands for; any other may be an alias, which may be anything.
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

/// The most that a rule has to name to allow this command.
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

fn interpreter(name: &str, argv: &[String]) -> Option<usize> {
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let known = |name: &str| INTERPRETERS.contains(&name) || SHELLS.contains(&name);
    if !known(name) && !known(versioned) {
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
    let of = |(names, flags): &&(&'static [&'static str], &'static [&'static str])| {
        names.contains(&name).then_some(*flags)
    };
    let dangerous: Vec<&str> = FLAGS
        .iter()
        .filter_map(|row| of(&row))
        .flatten()
        .copied()
        .collect();
    argv.iter()
        .enumerate()
        .skip(1)
        .filter(|(_, word)| dangerous.iter().any(|flag| is_flag(word, flag)))
        .map(|(at, _)| at)
        .max()
}

/// Whether a word is an option: long ones may be shortened or carry a value, short ones may be grouped.
fn is_flag(word: &str, flag: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    if let Some(long) = flag.strip_prefix("--") {
        return name
            .strip_prefix("--")
            .is_some_and(|name| !name.is_empty() && long.starts_with(name));
    }
    let Some(letters) = flag.strip_prefix('-') else {
        return false;
    };
    if letters.len() > 1 {
        return word.trim_start_matches('-').starts_with(letters) && word.starts_with('-');
    }
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

/// What only looking at several words tells.
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
        // The second file name is where the output goes.
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
        "dd" | "tee" | "install" | "split" | "csplit" => Some(argv.len() - 1),
        _ => None,
    }
}
