//! A text that something may run: its words, in several readings, and the commands that may begin in it.

use crate::loose::{commands, joined, paths};
use crate::nested::{WRAPPERS, base};
use crate::tree::ansi;
use crate::words::Words;

/// The maximum number of places where a command may begin in a text.
const MAX_BEGINNINGS: usize = 1_024;
/// The maximum number of words before the command of a wrapper.
const MAX_WRAPPED: usize = 8;
/// Characters between the words of a text.
const BETWEEN: &str = "'\"`,;|&()[]{}<>=!$:#^*?\\%@";

/// A text that something may run.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// The program, then the words of the text, for each reading of it.
    readings: Vec<Vec<String>>,
    /// Word sequences that may each be a command.
    beginnings: Vec<Vec<String>>,
    paths: Vec<String>,
}

impl Text {
    /// Reads arguments. `code` says that they are in a programming language, where a command begins in quotes.
    pub(super) fn new(program: Option<&str>, args: &[&str], code: bool) -> Self {
        let mut text = Self::default();
        let mut readings = vec![args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()];
        if args.iter().any(|arg| arg.contains(['\'', '"', '\\'])) {
            let each = |reading: &dyn Fn(&str) -> String| args.iter().map(|arg| reading(arg)).collect();
            readings.push(each(&|arg| ansi(&joined(arg))));
            readings.push(each(&|arg| arg.replace(['\'', '"', '\\'], "")));
        }
        for args in &readings {
            let name = program.unwrap_or_default();
            let mut tokens = vec![name.to_owned()];
            if name.contains(['$', '`']) {
                add(&mut tokens, name);
            }
            for arg in args {
                add(&mut tokens, arg);
                text.find_paths(arg);
                // The words of the command do not have those of an input.
                text.paths.extend(program.is_none().then(|| arg.clone()));
            }
            text.readings.push(tokens);
        }
        if !code {
            for args in &readings {
                let first = args.iter().position(|arg| !arg.starts_with('-'));
                let behind = args.iter().position(|arg| arg == "--").map(|at| at + 1);
                for (at, arg) in args.iter().enumerate() {
                    let value = arg.starts_with('-') && arg.len() > 2;
                    if value || Some(at) == first || Some(at) == behind || arg.contains(char::is_whitespace) {
                        text.begin(arg);
                    }
                }
            }
        }
        text
    }

    /// Reads the value of a variable, in which only a command at the beginning of a part counts.
    pub(super) fn of_value(value: &str) -> Self {
        let mut text = Self::default();
        text.begin(value);
        text.readings = text
            .beginnings
            .iter()
            .filter_map(|argv| argv.first())
            .map(|first| vec![String::new(), first.clone()])
            .collect();
        text
    }

    /// Reads arguments of a program that runs nothing, but may open files.
    pub(super) fn of_inert(args: &[&str]) -> Self {
        let mut text = Self::default();
        for arg in args {
            text.find_paths(arg);
        }
        text
    }

    /// A single word is among the words of the command already.
    fn find_paths(&mut self, arg: &str) {
        if arg.contains(|c: char| c.is_whitespace() || BETWEEN.contains(c)) {
            self.paths.extend(paths(arg, false));
        }
    }

    /// Adds what may be a command in an argument: at its beginning, behind a mark, in quotes, as the value of an option.
    fn begin(&mut self, arg: &str) {
        let attached = arg
            .strip_prefix('-')
            .and_then(|rest| rest.get(rest.chars().next()?.len_utf8()..));
        for text in [Some(arg), attached].into_iter().flatten() {
            let parts = text
                .split(['=', ':', '!', '\'', '"'])
                .flat_map(commands)
                .map(started);
            for argv in parts.filter(|argv| !argv.is_empty()) {
                if self.beginnings.len() >= MAX_BEGINNINGS {
                    return;
                }
                let wraps = argv
                    .first()
                    .is_some_and(|program| WRAPPERS.contains(&base(program)));
                if wraps {
                    let inner =
                        (1..argv.len().min(MAX_WRAPPED)).filter_map(|at| Some(argv.get(at..)?.to_vec()));
                    self.beginnings.extend(inner);
                }
                self.beginnings.push(argv);
            }
        }
    }

    /// All words that may name a command.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let words = self.readings.iter().flatten();
        let first = self.beginnings.iter().filter_map(|argv| argv.first());
        words.chain(first).flat_map(|word| [word.as_str(), base(word)])
    }

    /// The word where the command of a rule occurs.
    pub(super) fn has(&self, words: &Words) -> Option<&str> {
        self.readings.iter().find_map(|tokens| words.found_in(tokens))
    }

    /// The same where a command may begin.
    pub(super) fn begins(&self, words: &Words) -> Option<&str> {
        let argv = self.beginnings.iter().find(|argv| words.catches(argv))?;
        argv.first().map(String::as_str)
    }

    pub(super) fn paths(&self) -> &[String] {
        &self.paths
    }
}

/// The words of a text.
pub(super) fn tokens_of(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    add(&mut tokens, text);
    tokens
}

fn add(tokens: &mut Vec<String>, arg: &str) {
    let between = |c: char| c.is_whitespace() || BETWEEN.contains(c);
    for (at, word) in arg.split(between).filter(|word| !word.is_empty()).enumerate() {
        tokens.push(word.to_owned());
        let Some(rest) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            continue;
        };
        // A rule of make that ignores errors, and a value directly behind an option.
        tokens.push(rest.to_owned());
        let value = rest.chars().next().and_then(|c| rest.get(c.len_utf8()..));
        tokens.extend(
            value
                .filter(|value| at == 0 && !value.is_empty())
                .map(str::to_owned),
        );
    }
}

/// A command without marks and words that may precede it: `!curl`, `@curl`, sed's `e curl`.
fn started(argv: Vec<String>) -> Vec<String> {
    let skipped = |word: &String| matches!(word.as_str(), "e" | "then" | "do" | "else" | "exec");
    let mut argv: Vec<String> = argv.into_iter().skip_while(skipped).collect();
    if let Some(first) = argv.first_mut() {
        *first = first
            .trim_start_matches(|c: char| !c.is_alphanumeric() && !"/.~_".contains(c))
            .to_owned();
    }
    argv
}
