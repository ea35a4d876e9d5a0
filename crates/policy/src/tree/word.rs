//! The words of a command: their most likely values, and patterns for what a shell may compute from them.

use super::braces::alternatives;
use super::source;
use tree_sitter::Node;

/// A longer word that could not be parsed is no pattern.
const MAX_CRUDE: usize = 1_024;
/// Characters without which a shell computes nothing in a word.
const SPECIAL: [char; 8] = ['*', '?', '[', '{', '$', '`', '~', UNKNOWN];
/// Stands for an expansion whose value is unknown. A command with this character is never judged.
pub(crate) const UNKNOWN: char = '\0';

/// A word that a shell computes: `k*/a`, `$d/.env`, `~/x`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    /// The word without quotes, as in the command.
    pub(crate) word: String,
    /// Wildcards and `$name` as written, quoted special characters behind a backslash.
    pub(crate) text: String,
    /// A redirection writes the file.
    pub(crate) writes: bool,
}

impl Pattern {
    /// A word that the grammar could not parse, if it has a wildcard.
    pub(crate) fn of_text(word: &str) -> Option<Self> {
        (is_computed(word) && word.len() < MAX_CRUDE).then(|| Self {
            word: word.to_owned(),
            text: word.to_owned(),
            writes: false,
        })
    }
}

/// The pattern of a word, if a shell computes something in it.
pub(crate) fn pattern(node: Node<'_>, text: &str) -> Option<Pattern> {
    let pattern = raw(node, text, 0);
    is_computed(&pattern).then(|| Pattern {
        word: word(node, text, 0),
        text: pattern,
        writes: false,
    })
}

/// A command whose words a shell computes.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    pub(crate) patterns: Vec<Pattern>,
    /// The pattern of its name.
    pub(crate) name: Option<String>,
    /// The command that its braces make of it.
    pub(crate) words: Option<Vec<String>>,
}

/// A word of a command: its most likely value, and its pattern.
pub(super) type Written = (String, String);

/// The words of a command. The grammar splits some words; parts without anything between them are one word to a shell.
pub(super) fn written(command: Node<'_>, text: &str) -> Vec<Written> {
    let mut all: Vec<Written> = Vec::new();
    let mut end = None;
    // A continued line separates no words.
    let adjoins = |end: Option<usize>, child: Node<'_>| {
        let between = end.and_then(|end| text.get(end..child.start_byte()));
        between.is_some_and(|between| between.replace("\\\n", "").is_empty())
    };
    let mut cursor = command.walk();
    let children = command.children(&mut cursor);
    for child in children.filter(|child| is_word(command, *child)) {
        let value = word(child, text, 0);
        let plain = !source(child, text).contains(SPECIAL);
        let pattern = if plain { value.clone() } else { raw(child, text, 0) };
        match all.last_mut().filter(|_| adjoins(end, child)) {
            Some(last) => {
                last.0.push_str(&value);
                last.1.push_str(&pattern);
            }
            None => all.push((value, pattern)),
        }
        end = Some(child.end_byte());
    }
    all
}

/// The most likely values of the words.
pub(super) fn words(written: &[Written]) -> Vec<String> {
    let mut words = Vec::new();
    for (word, _) in written {
        // The one expansion whose value is known: it separates words.
        if word.contains("$IFS") || word.contains("${IFS}") {
            let spaced = word.replace("${IFS}", " ").replace("$IFS", " ");
            words.extend(spaced.split_whitespace().map(str::to_owned));
        } else {
            words.push(word.clone());
        }
    }
    words
}

/// The parts of a command's words that a shell computes.
pub(super) fn expanded(written: &[Written]) -> Expanded {
    let mut found = Expanded::default();
    if !written.iter().any(|(_, pattern)| pattern.contains(SPECIAL)) {
        return found;
    }
    let mut words = Vec::new();
    let mut braces = false;
    for (word, written) in written {
        let all = alternatives(written);
        let several = all.first() != Some(written);
        braces |= several;
        if words.is_empty() {
            found.name = all.first().filter(|text| is_computed(text)).cloned();
        }
        for one in all {
            let plain = if several { literal(&one) } else { word.clone() };
            words.push(plain.clone());
            if is_computed(&one) {
                found.patterns.push(Pattern {
                    word: plain,
                    text: one,
                    writes: false,
                });
            }
        }
    }
    found.words = braces.then_some(words);
    found
}

fn is_word(command: Node<'_>, child: Node<'_>) -> bool {
    !match child.kind() {
        "variable_assignment" => command.kind() == "command",
        "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment" => true,
        _ => false,
    }
}

/// A word as written, with quoted special characters behind a backslash.
fn raw(node: Node<'_>, text: &str, depth: u8) -> String {
    let written = source(node, text);
    match node.kind() {
        "word" | "number" | "brace_expression" => written.to_owned(),
        // A keyword.
        _ if !node.is_named() => written.to_owned(),
        "raw_string" | "ansi_c_string" => escaped(&word(node, text, depth)),
        "simple_expansion" if is_name(written.get(1..).unwrap_or_default()) => written.to_owned(),
        "expansion" => {
            let name = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            match name.filter(|name| is_name(name)) {
                Some(_) => written.to_owned(),
                None => UNKNOWN.to_string(),
            }
        }
        "string" | "translated_string" | "command_name" | "concatenation" if depth < 8 => {
            let quoted = node.kind().ends_with("string");
            parts(node, text, depth, quoted)
        }
        "variable_assignment" | "variable_name" | "string_content" => escaped(&unescape(written)),
        _ => UNKNOWN.to_string(),
    }
}

/// The parts of a word, and the text between them.
fn parts(node: Node<'_>, text: &str, depth: u8, quoted: bool) -> String {
    let mut all = String::new();
    let mut at = node.start_byte();
    let between = |from: usize, to: usize| {
        let gap = text.get(from..to).unwrap_or_default();
        let gap = if quoted { gap.trim_matches(['"', '$']) } else { gap };
        if quoted {
            escaped(&unescape(gap))
        } else {
            gap.to_owned()
        }
    };
    let mut cursor = node.walk();
    for child in node.children(&mut cursor).filter(Node::is_named) {
        all.push_str(&between(at, child.start_byte()));
        all.push_str(&raw(child, text, depth + 1));
        at = child.end_byte();
    }
    all.push_str(&between(at, node.end_byte()));
    all
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn escaped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        if "*?[]{},$\\~".contains(c) {
            all.push('\\');
        }
        all.push(c);
    }
    all
}

/// The text of a pattern without its backslashes.
pub(crate) fn literal(pattern: &str) -> String {
    unescape(pattern)
}

/// Whether a shell computes something in a pattern.
fn is_computed(pattern: &str) -> bool {
    let mut before = None;
    pattern.starts_with("~+")
        || pattern.chars().any(|c| {
            let special = before != Some('\\') && matches!(c, '*' | '?' | '[' | '$' | UNKNOWN);
            before = if before == Some('\\') { None } else { Some(c) };
            special
        })
}

/// The most likely value of a word: quotes and escapes removed, expansions left as written.
pub(super) fn word(node: Node<'_>, text: &str, depth: u8) -> String {
    let raw = source(node, text);
    match node.kind() {
        "word" | "number" => unescape(raw),
        "raw_string" => raw.trim_matches('\'').to_owned(),
        "ansi_c_string" => ansi(
            raw.strip_prefix("$'")
                .and_then(|raw| raw.strip_suffix('\''))
                .unwrap_or(raw),
        ),
        "string" => unescape(
            raw.strip_prefix('"')
                .and_then(|raw| raw.strip_suffix('"'))
                .unwrap_or(raw),
        ),
        "command_name" | "concatenation" | "translated_string" if depth < 8 => {
            let mut cursor = node.walk();
            let parts: String = node
                .children(&mut cursor)
                .map(|child| word(child, text, depth + 1))
                .collect();
            if node.child_count() == 0 {
                unescape(raw)
            } else {
                parts
            }
        }
        _ => raw.to_owned(),
    }
}

fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next().filter(|c| *c != '\n')),
            c => text.push(c),
        }
    }
    text
}

/// Decodes the escapes of `$'…'` that denote characters.
pub(crate) fn ansi(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if c != '\\' {
            text.push(c);
            continue;
        }
        let Some(kind) = rest.chars().next() else { break };
        let (skip, radix, most) = match kind {
            'x' => (1, 16, 2),
            'u' => (1, 16, 4),
            'U' => (1, 16, 8),
            '0'..='7' => (0, 8, 3),
            _ => (0, 0, 0),
        };
        let digits = rest.get(skip..).unwrap_or_default();
        let length = digits
            .chars()
            .take(most)
            .take_while(|c| c.is_digit(radix.max(2)))
            .count();
        let code = u32::from_str_radix(digits.get(..length).unwrap_or_default(), radix.max(2)).ok();
        match code.filter(|_| radix > 0).and_then(char::from_u32) {
            Some(c) => {
                text.push(c);
                rest = digits.get(length..).unwrap_or_default();
            }
            None => {
                text.push(match kind {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
                rest = rest.get(kind.len_utf8()..).unwrap_or_default();
            }
        }
    }
    text
}
