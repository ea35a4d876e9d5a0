//! The files that a command writes without a redirection: `cp x .git/config`, `tee y`, `dd of=z`, `git config a b`.

use crate::nested::base;

/// The operands that a program writes.
enum Written {
    /// All of them.
    All,
    /// The last one, or the target of `-t`; also its entries with the names of the other operands.
    Last,
}

const PROGRAMS: &[(&[&str], Written)] = &[
    (
        &[
            "tee", "rm", "rmdir", "unlink", "shred", "truncate", "touch", "mkdir", "mkfifo", "mknod",
            "chmod", "chown", "chgrp", "setfacl", "chattr", "mv", "patch", "sponge", "ex", "ed",
        ],
        Written::All,
    ),
    (&["cp", "install", "ln", "link", "rsync", "scp"], Written::Last),
];
/// `NAME=` of dd and similar programs, and options whose value is a written file.
const NAMED: [&str; 9] = [
    "of=",
    "--output=",
    "--target-directory=",
    "--output-document=",
    "--directory=",
    "--file=",
    "--backup-dir=",
    "--log-file=",
    "--reference=",
];
/// Options whose value is a separate word.
const VALUED: &[(&[&str], &[&str])] = &[
    (&["curl"], &["-o", "--output", "-D", "-c"]),
    (&["wget"], &["-O", "-P", "-o"]),
    (&["cp", "mv", "install", "ln"], &["-t", "--target-directory"]),
    (
        &[
            "sort", "shuf", "tree", "gcc", "cc", "clang", "g++", "rustc", "base64",
        ],
        &["-o", "--output"],
    ),
    (&["tar", "gtar", "bsdtar"], &["-C", "--directory", "-f"]),
    (&["unzip"], &["-d"]),
];

/// The paths that a command writes, according to its operands.
pub(crate) fn written(argv: &[String]) -> Vec<String> {
    let Some((program, args)) = argv.split_first() else {
        return Vec::new();
    };
    // The terminator of find's command is not an operand.
    let args = match args.split_last() {
        Some((end, args)) if end == ";" || end == "+" => args,
        _ => args,
    };
    let name = base(program);
    let mut paths = Vec::new();
    if let Some((_, kind)) = PROGRAMS.iter().find(|(names, _)| names.contains(&name)) {
        let operands: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
        match kind {
            Written::All => paths.extend(operands.into_iter().cloned()),
            Written::Last => paths.extend(last(name, &operands, args)),
        }
    }
    if name == "sed" || name == "perl" || name == "gsed" {
        let in_place =
            |arg: &String| arg.starts_with("-i") || arg.starts_with("--in-place") || arg.starts_with("-pi");
        if args.iter().any(in_place) {
            paths.extend(args.iter().filter(|arg| !arg.starts_with('-')).cloned());
        }
    }
    if name == "git" {
        paths.extend(configured(args));
    }
    let values = VALUED.iter().filter(|(names, _)| names.contains(&name));
    for option in values.flat_map(|(_, options)| *options) {
        let behind = args.iter().skip_while(|arg| arg != option).nth(1);
        paths.extend(behind.cloned());
        // A short option and its value may form one word.
        let attached = |arg: &String| {
            arg.strip_prefix(option)
                .filter(|value| !value.is_empty())
                .map(str::to_owned)
        };
        if !option.starts_with("--") {
            paths.extend(args.iter().filter_map(attached));
        }
    }
    if !paths.is_empty() || matches!(name, "dd" | "curl" | "wget" | "sort" | "tar" | "git") {
        let named = |arg: &String| {
            NAMED
                .iter()
                .find_map(|name| arg.strip_prefix(name))
                .map(str::to_owned)
        };
        paths.extend(args.iter().filter_map(named));
    }
    paths
}

/// The targets of copies and links: the last operand, and its entries with the names of the others.
fn last(name: &str, operands: &[&String], args: &[String]) -> Vec<String> {
    let Some((target, sources)) = operands.split_last() else {
        return Vec::new();
    };
    let directory = args
        .iter()
        .position(|arg| arg == "-t")
        .and_then(|at| args.get(at + 1))
        .or(if sources.is_empty() { None } else { Some(*target) });
    let mut paths = vec![(*target).clone()];
    if let Some(directory) = directory {
        let below = operands
            .iter()
            .map(|source| format!("{directory}/{}", base(source.trim_end_matches('/'))));
        paths.extend(below);
    }
    // A write to a link goes to its target.
    if matches!(name, "ln" | "link") {
        paths.extend(sources.iter().map(|source| (*source).clone()));
    }
    paths
}

/// The file that `git config` changes.
fn configured(args: &[String]) -> Option<String> {
    let mut before = "";
    let at = args.iter().position(|arg| {
        let option = arg.starts_with('-') || matches!(before, "-C" | "-c" | "--git-dir" | "--work-tree");
        before = arg;
        !option
    })?;
    let (command, after) = args.get(at..)?.split_first()?;
    if command != "config" {
        return None;
    }
    let has = |names: &[&str]| after.iter().any(|arg| names.contains(&arg.as_str()));
    let words = after.iter().filter(|arg| !arg.starts_with('-')).count();
    let changes = [
        "--unset",
        "--unset-all",
        "--add",
        "--replace-all",
        "--edit",
        "-e",
        "set",
        "unset",
        "edit",
    ];
    let looks = has(&["-l", "--list", "list", "get"]) || after.iter().any(|arg| arg.starts_with("--get"));
    if looks || (words < 2 && !has(&changes)) {
        return None;
    }
    let file = ["-f", "--file"].iter().find_map(|option| {
        let mut rest = after.iter().skip_while(|arg| arg != option);
        rest.nth(1).cloned()
    });
    Some(match file {
        Some(file) => file,
        None if has(&["--global"]) => "~/.gitconfig".to_owned(),
        None if has(&["--system"]) => "/etc/gitconfig".to_owned(),
        None => ".git/config".to_owned(),
    })
}
