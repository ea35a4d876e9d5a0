//! Commands inside commands: `sudo x`, `env A=b x`, `find -exec x`, `sh -c 'x'`.

use crate::operands::written;
use crate::tree::{Found, read};
use crate::variables::Values;

/// Programs that run the command in their arguments.
pub(crate) const WRAPPERS: [&str; 33] = [
    "sudo",
    "doas",
    "su",
    "env",
    "xargs",
    "nohup",
    "nice",
    "ionice",
    "time",
    "timeout",
    "setsid",
    "stdbuf",
    "command",
    "builtin",
    "exec",
    "watch",
    "parallel",
    "chroot",
    "unshare",
    "nsenter",
    "strace",
    "ltrace",
    "busybox",
    "toybox",
    "flock",
    "chrt",
    "taskset",
    "script",
    "ssh",
    "runuser",
    "systemd-run",
    "entr",
    "unbuffer",
];
/// Shells, and the built-ins that read text as a command.
pub(crate) const SHELLS: [&str; 14] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "eval", "source", ".",
];
/// The maximum depth of nested texts that is read.
const DEPTH: u8 = 4;
/// The maximum number of possible starts that are tried inside one wrapped command.
const STARTS: usize = 64;
/// The maximum number of nested texts.
const MAX_TEXTS: usize = 256;
/// The maximum number of words of a wrapped command that are checked.
const LENGTH: usize = 256;
/// The maximum number of commands that are checked.
const MAX_COMMANDS: usize = 65_536;

/// The file name of a program.
pub(crate) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The commands found, plus all nested ones. `None`: there are too many to check.
pub(crate) fn unfold(found: Found, text: &str) -> Option<Found> {
    let mut all = Found {
        commands: Vec::new(),
        ..found
    };
    let mut queue: Vec<(Vec<String>, u8)> =
        found.commands.into_iter().rev().map(|words| (words, 0)).collect();
    if all.broken {
        queue.extend(crude(text).into_iter().map(|words| (words, DEPTH)));
    }
    let mut texts = 0;
    let mut values = Values::default();
    values.learn(&all.assigned);
    while let Some((words, depth)) = queue.pop() {
        if all.commands.len() >= MAX_COMMANDS {
            return None;
        }
        for inner in inner_texts(&words).into_iter().filter(|_| depth < DEPTH) {
            texts += 1;
            if texts > MAX_TEXTS {
                return None;
            }
            let inner = read(inner)?;
            all.writes.extend(inner.writes);
            all.reads.extend(inner.reads);
            values.learn(&inner.assigned);
            queue.extend(inner.commands.into_iter().map(|words| (words, depth + 1)));
        }
        if depth < DEPTH {
            queue.extend(values.expand(&words).into_iter().map(|words| (words, DEPTH - 1)));
        }
        all.writes.extend(written(&words));
        let inner = inner_commands(&words);
        all.writes.extend(inner.iter().flat_map(|inner| written(inner)));
        all.commands.extend(inner);
        all.words.extend(words.iter().cloned());
        all.commands.push(words);
    }
    Some(all)
}

/// Commands inside another command's arguments.
fn inner_commands(words: &[String]) -> Vec<Vec<String>> {
    let program = words.first().map(|word| base(word)).unwrap_or_default();
    let suffixes = |starts: Vec<usize>| {
        let suffix = |start: usize| {
            words
                .get(start..)
                .map(|rest| rest.get(..LENGTH).unwrap_or(rest).to_vec())
        };
        starts
            .into_iter()
            .take(STARTS)
            .filter_map(suffix)
            .filter(|rest| !rest.is_empty())
            .collect()
    };
    if WRAPPERS.contains(&program) || SHELLS.contains(&program) {
        return suffixes((1..words.len()).collect());
    }
    let runs = [
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-x",
        "-X",
        "--exec",
        "--exec-batch",
    ];
    if ["find", "fd", "fdfind"].contains(&program) {
        let starts = words
            .iter()
            .enumerate()
            .filter(|(_, word)| runs.contains(&word.as_str()))
            .map(|(at, _)| at + 1);
        return suffixes(starts.collect());
    }
    Vec::new()
}

/// Arguments that are interpreted as shell text.
fn inner_texts(words: &[String]) -> Vec<&str> {
    let program = words.first().map(|word| base(word)).unwrap_or_default();
    if !WRAPPERS.contains(&program) && !SHELLS.contains(&program) {
        return Vec::new();
    }
    let text = |word: &&String| word.contains([' ', '\t', '\n', ';', '|', '&', '$', '`']);
    words
        .iter()
        .skip(1)
        .filter(text)
        .take(STARTS)
        .map(String::as_str)
        .collect()
}

/// The words of a text that the grammar could not parse, split wherever a command might begin.
pub(crate) fn crude(text: &str) -> Vec<Vec<String>> {
    text.split(|c: char| "\n;&|(){}`<>$'\"".contains(c))
        .map(|part| part.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .take(MAX_COMMANDS)
        .collect()
}
