//! The search of mode yolo in what the analysis does not model: arguments that a program may run, environments, text that
//! a program reads, and commands whose name the shell computes.
//!
//! A command that a deny rule names may stand anywhere in such a text, so a word of it is a match. The built-in rules have
//! common words (`su`, `halt`), so they match only where a command may begin in a text of several words.

mod text;

use crate::computed::{has_letters, is_unknown};
use crate::consumers::runnable;
use crate::danger::interprets;
use crate::judge::verdict;
use crate::meet::Items;
use crate::nested::base;
use crate::path::{absolute, expand_home, inside};
use crate::pattern::Pattern;
use crate::policy::Policy;
use crate::request::Request;
use crate::rule::{Rule, Source};
use crate::shell::Analysis;
use crate::tools::{READ, WRITE};
use crate::tree::evaluates;
use crate::words::Words;
use agentd_protocol::{Verdict, VerdictKind};
use std::collections::HashSet;
use std::fmt;
use text::Text;

/// Where such a text stands, worded to follow "occurs in".
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Argument(String),
    Input(String),
    Variable(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |name: &str| name.chars().take(40).collect::<String>();
        match self {
            Self::Argument(program) => write!(f, "an argument of {}, which may run it", short(program)),
            Self::Input(program) => write!(f, "the input of {}, which may run it", short(program)),
            Self::Variable(name) => write!(f, "the variable {}, which a program may run", short(name)),
        }
    }
}

/// The parts of a command that its analysis does not model.
#[derive(Debug, Default)]
pub(crate) struct Unmodelled {
    texts: Vec<(Place, Text)>,
    /// Commands whose name a shell computes.
    computed: Vec<Vec<String>>,
    /// All words of the command, if there are such names.
    words: Vec<String>,
}

impl Unmodelled {
    pub(crate) fn read(command: &str, analysis: &Analysis) -> Self {
        let mut texts = Vec::new();
        for argv in &analysis.whole {
            for found in runnable(argv) {
                let place = Place::Argument(found.program.to_owned());
                let text = if found.inert {
                    Text::of_inert(&found.words)
                } else {
                    Text::new(Some(found.program), &found.words, interprets(found.program))
                };
                texts.push((place, text));
            }
        }
        for (name, value) in &analysis.given {
            texts.push((
                Place::Variable(name.clone()),
                Text::new(None, &[value.as_str()], false),
            ));
        }
        for input in &analysis.inputs {
            let code = interprets(&input.program);
            let text = Text::new(None, &[input.text.as_str()], code);
            texts.push((Place::Input(input.program.clone()), text));
        }
        // Such a variable may be one of the environment already, so other programs see it.
        let shared = |name: &str| {
            name.chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        };
        for (name, value) in &analysis.assigned {
            let text = match value.as_str() {
                value if evaluates(value) => Text::new(None, &[value], false),
                value if shared(name) => Text::of_value(value),
                _ => continue,
            };
            texts.push((Place::Variable(name.clone()), text));
        }
        let words = if analysis.computed.is_empty() {
            Vec::new()
        } else {
            text::tokens_of(command)
        };
        Self {
            texts,
            computed: analysis.computed.clone(),
            words,
        }
    }

    /// The verdict of the deny rules on it, if they have one: a denial where the text shows a match, a question where a
    /// command is only known when it runs.
    pub(crate) fn verdict(&self, policy: &Policy, request: &Request<'_>) -> Option<Verdict> {
        if self.texts.is_empty() && self.computed.is_empty() {
            return None;
        }
        let known: HashSet<&str> = self.texts.iter().flat_map(|(_, text)| text.names()).collect();
        let rules = || policy.of(VerdictKind::Deny);
        let found = rules().find_map(|rule| {
            let why = match &rule.pattern {
                Pattern::Command(words) if rule.restricts(request.tool, Some(request.subject)) => self
                    .finds(rule, words, &known)
                    .or_else(|| self.computes(rule, words)),
                Pattern::Path(_) => self.names(rule, policy, request),
                _ => None,
            };
            Some((rule, why?))
        });
        if let Some((rule, why)) = found {
            let reason = format!("the {} rule {} forbids this: {why}", rule.source, rule.text);
            return Some(verdict(VerdictKind::Deny, &rule.text, reason));
        }
        let (rule, name) = rules().find_map(|rule| match &rule.pattern {
            Pattern::Command(words)
                if rule.source() != Source::Builtin
                    && rule.restricts(request.tool, Some(request.subject)) =>
            {
                Some((rule, self.may_compute(words)?))
            }
            _ => None,
        })?;
        let reason = format!(
            "the {} rule {} may forbid this: only the shell knows which command {} is; write its name",
            rule.source,
            rule.text,
            shown(name)
        );
        Some(verdict(VerdictKind::Ask, "gate:not_certain", reason))
    }

    /// Where a command of a rule occurs.
    fn finds(&self, rule: &Rule, words: &Words, known: &HashSet<&str>) -> Option<String> {
        if words.name().is_some_and(|name| !known.contains(name)) {
            return None;
        }
        let builtin = rule.source() == Source::Builtin;
        self.texts.iter().find_map(|(place, text)| {
            let word = if builtin {
                text.begins(words)
            } else {
                text.has(words)
            }?;
            Some(format!("`{}` occurs in {place}", shown(word)))
        })
    }

    /// Whether the shell may compute the command of a rule: its pattern fits, or is anything and the text has the words.
    fn computes(&self, rule: &Rule, words: &Words) -> Option<String> {
        let argv = self.computed.iter().find(|argv| {
            let name = argv.first().map_or("", String::as_str);
            let last = name.rsplit('/').next().unwrap_or_default();
            if has_letters(last) {
                words.with_name(argv).is_some_and(|argv| words.catches(&argv))
                    && words.name_meets(&Items::word(last))
            } else {
                rule.source() != Source::Builtin && words.occur_in(&self.words)
            }
        })?;
        let name = argv.first().map_or("", String::as_str);
        Some(format!("the command {} may be it", shown(name)))
    }

    /// The name of a command that nothing in the text shows.
    fn may_compute(&self, words: &Words) -> Option<&str> {
        let argv = self.computed.iter().find(|argv| {
            let name = argv.first().map_or("", String::as_str);
            let anything = !has_letters(name.rsplit('/').next().unwrap_or_default());
            let open = argv.iter().skip(1).any(|word| is_unknown(word));
            anything && (open || words.with_name(argv).is_some_and(|argv| words.catches(&argv)))
        })?;
        argv.first().map(String::as_str)
    }

    /// Where a path occurs that a rule forbids to read or write. The built-in rules forbid writing to most of the machine,
    /// which code names all the time; there the sandbox applies.
    fn names(&self, rule: &Rule, policy: &Policy, request: &Request<'_>) -> Option<String> {
        let Pattern::Path(pattern) = &rule.pattern else {
            return None;
        };
        let reads = rule.names(READ);
        if !reads && !rule.names(WRITE) {
            return None;
        }
        let home = policy.home();
        let touched = |path: &&String| {
            let full = || absolute(request.workdir, &expand_home(home, path));
            let meant =
                reads || rule.source() != Source::Builtin || inside(request.workdir, &full()).is_some();
            meant && pattern.is_touched(request.workdir, home, request.workdir, path)
        };
        self.texts.iter().find_map(|(place, text)| {
            let path = text.paths().iter().find(touched)?;
            Some(format!("`{}` occurs in {place}", shown(path)))
        })
    }
}

/// A word for a message.
fn shown(word: &str) -> String {
    let word: String = word
        .chars()
        .map(|c| if c == crate::tree::UNKNOWN { '…' } else { c })
        .collect();
    base(&word).chars().take(60).collect()
}
