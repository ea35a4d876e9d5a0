//! The search of mode yolo in text that cannot be parsed with certainty: code for a shell or an interpreter, programs whose
//! names are only known when they run, broken syntax.
//!
//! Such text is split wherever a command may begin in it, and each piece is checked against the deny rules: a match is a
//! denial. Where the words of a rule only occur somewhere in the text, in order, a person is asked; built-in rules are
//! exempt from that, since their words (`su`, `format`) are too common in code. Anything that is not in the text at all (a
//! script's contents, an environment value, a decoded string) is not found: the sandbox around a command covers that.

use crate::danger::interprets;
use crate::judge::verdict;
use crate::nested::{SHELLS, base};
use crate::path::inside;
use crate::pattern::Pattern;
use crate::policy::Policy;
use crate::request::Request;
use crate::rule::{Rule, Source};
use crate::shell::Analysis;
use crate::tools::{READ, WRITE};
use crate::tree::ansi;
use crate::words::Words;
use agentd_protocol::{Verdict, VerdictKind};

/// The notice shown when yolo is switched on.
pub const YOLO_LIMITS: &str = "yolo: everything runs unless a deny rule forbids it, and deny rules see only the text \
     of a command, not words that it computes (base64, rev, printf), downloaded or started scripts, or values from its \
     environment (`agentctl help rules`)";
/// The maximum number of pieces that are checked.
const MAX_PIECES: usize = 4_096;
/// The longest text that is searched for each word.
const MAX_SEARCHED: usize = 8_192;
/// Programs that run what they read as a command.
const FEEDERS: [&str; 4] = ["xargs", "parallel", "ssh", "at"];
/// Words before a command that do not change which command it is.
const BEFORE: [&str; 10] = [
    "then", "do", "else", "if", "while", "until", "!", "exec", "time", "elif",
];

/// The part of a text that the analysis did not understand.
#[derive(Debug, Default)]
pub(crate) struct Loose {
    /// The pieces of it that may each be a command.
    pieces: Vec<Vec<String>>,
    /// All of its words.
    words: Vec<String>,
    /// The words that may be paths.
    paths: Vec<String>,
    /// Commands of a known program with words whose value is unknown.
    open: Vec<Vec<String>>,
}

impl Loose {
    /// Reads the part that the analysis leaves open.
    pub(crate) fn read(command: &str, analysis: &Analysis) -> Self {
        let unknown = |word: &str| word.contains(['$', '`']);
        let programs = || analysis.commands.iter().filter_map(|argv| argv.first());
        let shell = analysis.broken
            || analysis.unread
            || programs().any(|program| {
                let name = base(program);
                SHELLS.contains(&name)
                    || FEEDERS.contains(&name)
                    || program.contains(['$', '`', '*', '?', '[', '{'])
            });
        let code = programs().any(|program| interprets(program));
        let open: Vec<Vec<String>> = analysis
            .commands
            .iter()
            .filter(|argv| argv.iter().skip(1).any(|word| unknown(word)))
            .cloned()
            .collect();
        if !shell && !code && open.is_empty() {
            return Self::default();
        }
        let mut loose = Self {
            words: words(command),
            open,
            ..Self::default()
        };
        if shell || code {
            let joined = joined(command);
            for text in [command, &joined, &ansi(&joined)] {
                loose.take(text, shell);
            }
        }
        loose
    }

    fn take(&mut self, text: &str, shell: bool) {
        self.words.extend(words(text));
        let mut pieces: Vec<Vec<String>> = Vec::new();
        // The contents of quotes, wherever they begin: code starts other programs by a string.
        for quote in ['\'', '"', '`'] {
            pieces.extend(text.split(quote).flat_map(commands));
            if !shell {
                let quoted = |part: &str| part.starts_with(quote).then(|| list(part));
                pieces.extend(
                    text.split(['(', '[', '{', '\n', ';', '='])
                        .filter_map(|part| quoted(part.trim())),
                );
            }
        }
        if shell {
            pieces.extend(commands(text));
            pieces.extend(text.split(['\n', ';', '|', '&', '(', '{']).map(list));
            let printed: Vec<_> = pieces.iter().filter_map(|piece| printed(piece)).collect();
            pieces.extend(printed);
        } else {
            // Code outside of strings starts no program.
            pieces.retain(|piece| piece.first().is_some_and(|word| opens(text, word)));
        }
        pieces.truncate(MAX_PIECES);
        self.paths.extend(paths(text, shell));
        self.pieces
            .extend(pieces.into_iter().map(started).filter(|piece| !piece.is_empty()));
    }

    /// The verdict of the deny rules on it, if they have one.
    pub(crate) fn verdict(&self, policy: &Policy, request: &Request<'_>) -> Option<Verdict> {
        if self.words.is_empty() {
            return None;
        }
        let rules = || policy.of(VerdictKind::Deny);
        let denies = |rule: &&Rule| match &rule.pattern {
            Pattern::Command(words) => rule.restricts(request.tool, Some(request.subject)) && self.has(words),
            Pattern::Path(_) => self.names(rule, policy, request),
            Pattern::Any | Pattern::Url(_) | Pattern::Version(_) => false,
        };
        if let Some(rule) = rules().find(denies) {
            return Some(verdict(
                VerdictKind::Deny,
                &rule.text,
                reason(rule, "forbids this"),
            ));
        }
        let mentions = |rule: &&Rule| match &rule.pattern {
            Pattern::Command(words) => {
                rule.source() != Source::Builtin
                    && rule.restricts(request.tool, Some(request.subject))
                    && !self.pieces.is_empty()
                    && words.occur_in(&self.words)
            }
            _ => false,
        };
        let rule = rules().find(mentions)?;
        Some(verdict(
            VerdictKind::Ask,
            "gate:not_certain",
            reason(rule, "may forbid this"),
        ))
    }

    fn has(&self, words: &Words) -> bool {
        let filled = |argv: &Vec<String>| {
            let known = |word: &&str| self.words.iter().any(|other| other == word);
            words.arguments().filter(known).any(|word| {
                (1..argv.len()).any(|at| {
                    let open = argv.get(at).is_some_and(|old| old.contains(['$', '`']));
                    let mut argv = argv.clone();
                    open && argv.get_mut(at).is_some_and(|old| {
                        word.clone_into(old);
                        true
                    }) && words.catches(&argv)
                })
            })
        };
        self.pieces.iter().any(|argv| words.catches(argv)) || self.open.iter().any(filled)
    }

    /// Whether it names a path that a rule forbids to read or write. The built-in rules forbid writing to most of the
    /// machine, which code names all the time; there the sandbox applies.
    fn names(&self, rule: &Rule, policy: &Policy, request: &Request<'_>) -> bool {
        let Pattern::Path(pattern) = &rule.pattern else {
            return false;
        };
        let reads = rule.names(READ);
        if !reads && !rule.names(WRITE) {
            return false;
        }
        let touched = |path: &String| {
            let home = policy.home();
            let absolute = crate::path::absolute(request.workdir, &crate::path::expand_home(home, path));
            let meant =
                reads || rule.source() != Source::Builtin || inside(request.workdir, &absolute).is_some();
            meant && pattern.is_touched(request.workdir, home, request.workdir, path)
        };
        self.paths.iter().any(touched)
    }
}

fn reason(rule: &Rule, what: &str) -> String {
    format!(
        "the {} rule {} {what}: its words or paths are in a part of the command that agentd cannot parse reliably; \
         write that part as a plain command",
        rule.source, rule.text
    )
}

/// Joins split strings and continued lines: `"cu" + "rl"`, `'cu''rl'`.
pub(crate) fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if matches!(c, '\'' | '"') {
            let next = rest.trim_start_matches([' ', '+', '.', '\n']);
            if let Some(behind) = next.strip_prefix(['\'', '"']) {
                rest = behind;
                continue;
            }
        }
        if c == '\\'
            && let Some(behind) = rest.strip_prefix('\n')
        {
            rest = behind;
            continue;
        }
        joined.push(c);
    }
    joined
}

/// Each part of a text as a separate command.
pub(crate) fn commands(text: &str) -> Vec<Vec<String>> {
    let parts = text.split(['\n', ';', '|', '&', '(', ')', '{', '}', '`', '<', '>']);
    parts
        .map(|part| part.split_whitespace().map(bare).collect())
        .collect()
}

/// A list of words in the syntax of a programming language: `["git", "push"]`.
fn list(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || "'\",[](){}".contains(c));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn bare(word: &str) -> String {
    word.chars().filter(|c| !"'\"\\".contains(*c)).collect()
}

/// The printed words, which a shell may read.
fn printed(piece: &[String]) -> Option<Vec<String>> {
    let (program, args) = piece.split_first()?;
    let prints = matches!(base(program), "echo" | "printf");
    prints.then(|| {
        args.iter()
            .skip_while(|arg| matches!(arg.as_str(), "-n" | "-e" | "-ne" | "-E" | "--"))
            .cloned()
            .collect()
    })
}

/// A piece without the words that may precede a command.
fn started(piece: Vec<String>) -> Vec<String> {
    let skipped =
        |word: &String| BEFORE.contains(&word.as_str()) || (word.contains('=') && !word.starts_with('='));
    piece.into_iter().skip_while(skipped).collect()
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || "'\",;|&()[]{}`<>=".contains(c));
    words.filter(|word| !word.is_empty()).map(bare).collect()
}

/// Words that may be paths. In code `item.key` is not a path, so there a name without a `/` counts only if it begins with a
/// dot or is in quotes.
pub(crate) fn paths(text: &str, shell: bool) -> Vec<String> {
    let path = |word: &String| shell || word.starts_with('.') || word.contains('/') || opens(text, word);
    words(text).into_iter().filter(path).collect()
}

/// Whether a word directly follows a quote. A long text is not searched for each of its words.
fn opens(text: &str, word: &str) -> bool {
    text.len() > MAX_SEARCHED
        || text.match_indices(word).any(|(at, _)| {
            text.get(..at)
                .is_some_and(|before| before.ends_with(['\'', '"', '`']))
        })
}
