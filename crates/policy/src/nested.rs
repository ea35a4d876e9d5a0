//! Commands inside commands: `sudo x`, `env A=b x`, `find -exec x`, `sh -c 'x'`.

use crate::consumers::{globs, is_parsed};
use crate::operands::written;
use crate::tree::{Found, Pattern, read};
use crate::variables::Values;
use std::collections::HashSet;

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
/// The maximum number of words with wildcards and variables.
const MAX_PATTERNS: usize = 1_024;
/// The maximum number of words of a wrapped command that are checked.
const LENGTH: usize = 256;
/// The maximum number of commands that are checked.
const MAX_COMMANDS: usize = 65_536;

/// The file name of a program.
pub(crate) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// How a command was found.
#[derive(Debug, Clone, Copy)]
struct Way {
    depth: u8,
    /// It is a command as a shell sees it. Otherwise it may as well be part of other words.
    whole: bool,
}

/// The commands found, plus all nested ones. `None`: there are too many to check.
pub(crate) fn unfold(found: Found, text: &str) -> Option<Found> {
    let mut all = Found {
        commands: Vec::new(),
        ..found
    };
    let way = |depth, whole| Way { depth, whole };
    let commands = found.commands.into_iter().rev();
    let mut queue: Vec<(Vec<String>, Way)> = commands.map(|words| (words, way(0, true))).collect();
    if all.broken {
        let crude = all.absorb_crude(crude(text));
        queue.extend(crude.into_iter().map(|words| (words, way(DEPTH, false))));
    }
    let mut texts = 0;
    let mut values = Values::default();
    values.learn(&all.assigned);
    while let Some((words, Way { depth, whole })) = queue.pop() {
        if all.commands.len() >= MAX_COMMANDS {
            return None;
        }
        for text in inner_texts(&words).into_iter().filter(|_| depth < DEPTH) {
            texts += 1;
            if texts > MAX_TEXTS {
                return None;
            }
            let inner = read(text)?;
            let shell = words
                .first()
                .is_some_and(|program| SHELLS.contains(&base(program)));
            let whole = whole && !inner.broken && (shell || is_parsed(text));
            values.learn(&inner.assigned);
            let commands = all.absorb(inner, whole);
            queue.extend(commands.into_iter().map(|words| (words, way(depth + 1, whole))));
        }
        if depth < DEPTH {
            let expanded = values.expand(&words).into_iter();
            queue.extend(expanded.map(|words| (words, way(DEPTH - 1, whole))));
        }
        all.writes.extend(written(&words));
        let mut inner = inner_commands(&words);
        all.writes.extend(inner.iter().flat_map(|inner| written(inner)));
        // A shell that a wrapper starts gets a text of its own.
        let shell = inner.iter().position(|argv| {
            argv.first()
                .is_some_and(|program| SHELLS.contains(&base(program)))
        });
        if let Some(at) = shell.filter(|_| depth < DEPTH) {
            queue.push((inner.swap_remove(at), way(depth + 1, whole)));
        }
        all.commands.extend(inner);
        all.words.extend(words.iter().cloned());
        if whole {
            let globs = globs(&words).iter().filter_map(|word| Pattern::of_text(word));
            all.patterns.extend(globs);
            all.whole.push(words.clone());
        }
        all.commands.push(words);
    }
    all.compute(&values);
    (all.patterns.len() <= MAX_PATTERNS).then_some(all)
}

impl Found {
    /// Adds what a nested text contains, and returns its commands.
    fn absorb(&mut self, inner: Self, whole: bool) -> Vec<Vec<String>> {
        self.writes.extend(inner.writes);
        self.reads.extend(inner.reads);
        self.patterns.extend(inner.patterns);
        self.computed.extend(inner.computed);
        self.given.extend(inner.given);
        self.assigned.extend(inner.assigned);
        if whole {
            self.inputs.extend(inner.inputs);
        }
        inner.commands
    }

    /// Notes what a shell computes in words that the grammar could not parse.
    fn absorb_crude(&mut self, crude: Vec<Vec<String>>) -> Vec<Vec<String>> {
        let is_computed =
            |argv: &&Vec<String>| argv.first().is_some_and(|name| Pattern::of_text(name).is_some());
        self.computed.extend(crude.iter().filter(is_computed).cloned());
        let patterns = crude.iter().flatten().filter_map(|word| Pattern::of_text(word));
        self.patterns.extend(patterns);
        crude
    }

    /// Fills known values into patterns, and notes which of these files are written.
    fn compute(&mut self, values: &Values) {
        let known = |name: &str| !name.contains('$');
        self.computed.retain_mut(|argv| {
            let filled = values.expand(argv);
            filled.is_empty()
                || !filled
                    .iter()
                    .all(|argv| argv.first().is_some_and(|name| known(name)))
        });
        let mut patterns = Vec::new();
        let written: HashSet<&str> = self.writes.iter().map(String::as_str).collect();
        for mut pattern in std::mem::take(&mut self.patterns) {
            pattern.writes |= written.contains(pattern.word.as_str());
            let filled = values.expand(std::slice::from_ref(&pattern.text));
            let filled = filled.into_iter().flatten().map(|text| Pattern {
                text,
                ..pattern.clone()
            });
            patterns.extend(filled);
            patterns.push(pattern);
        }
        patterns.sort_unstable();
        patterns.dedup();
        self.patterns = patterns;
    }
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
