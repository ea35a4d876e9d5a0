//! The grammar's view of a command: every command found anywhere in it, as lists of words.

use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree, TreeCursor};

/// How many progress reports the parser may make before it is stopped. Ordinary commands need a few dozen.
const MAX_PROGRESS: u32 = 20_000;

/// Tokens for which the parser's time is quadratic in their number, and how many a text may have.
const SLOW: [(&str, usize); 3] = [("|", 256), ("<<", 64), ("(", 1_024)];
/// The maximum total size of the words.
const MAX_BYTES: usize = 1 << 20;

/// Node kinds of the plain language.
const PLAIN: [&str; 13] = [
    "program",
    "list",
    "pipeline",
    "command",
    "command_name",
    "word",
    "number",
    "string",
    "string_content",
    "raw_string",
    "concatenation",
    "redirected_statement",
    "file_redirect",
];

/// The contents of the syntax tree.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Every command, in the order of the text.
    pub(crate) commands: Vec<Vec<String>>,
    /// The words of all commands, each once.
    pub(crate) words: Vec<String>,
    /// Files that a redirection writes.
    pub(crate) writes: Vec<String>,
    /// Files that a redirection reads.
    pub(crate) reads: Vec<String>,
    /// Variable assignments, in the order of the text.
    pub(crate) assigned: Vec<(String, String)>,
    /// The total size of the words; each nesting level counts its contents again.
    pub(crate) bytes: usize,
    /// The text has errors, so there may be more commands than were found.
    pub(crate) broken: bool,
    /// It has only nodes of the plain language.
    pub(crate) plain: bool,
}

/// Parses a command; `None` when it cannot be parsed in bounded time.
pub(crate) fn read(text: &str) -> Option<Found> {
    if SLOW
        .iter()
        .any(|(token, most)| text.matches(token).count() > *most)
    {
        return None;
    }
    let tree = parse(text)?;
    let mut found = Found {
        broken: tree.root_node().has_error(),
        plain: true,
        ..Found::default()
    };
    let mut cursor = tree.walk();
    loop {
        visit(cursor.node(), text, &mut found);
        if found.bytes > MAX_BYTES {
            return None;
        }
        if cursor.goto_first_child() {
            continue;
        }
        if !next(&mut cursor) {
            return Some(found);
        }
    }
}

fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let mut reports = 0_u32;
    let mut progress = |_: &ParseState| {
        reports = reports.saturating_add(1);
        if reports > MAX_PROGRESS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let ascii = ascii(text);
    let mut input = |at: usize, _| ascii.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut input, None, Some(options))
}

/// The text as given to the grammar, with all byte positions kept: its scanner looks other characters up in tables of the C
/// library that end where ASCII does, and a crash there would crash the daemon. A shell treats them as letters.
fn ascii(text: &str) -> Vec<u8> {
    text.bytes()
        .map(|byte| if byte.is_ascii() { byte } else { b'x' })
        .collect()
}

/// Moves to the node after the whole subtree.
fn next(cursor: &mut TreeCursor<'_>) -> bool {
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

fn visit(node: Node<'_>, text: &str, found: &mut Found) {
    if !node.is_named() {
        return;
    }
    found.plain &= PLAIN.contains(&node.kind()) || node.kind() == "file_descriptor";
    match node.kind() {
        "command" | "declaration_command" | "unset_command" => {
            let words = words(node, text);
            found.bytes += words.iter().map(String::len).sum::<usize>();
            if !words.is_empty() {
                found.commands.push(words);
            }
        }
        "variable_assignment" => {
            let part = |field| node.child_by_field_name(field);
            if let (Some(name), Some(value)) = (part("name"), part("value")) {
                found
                    .assigned
                    .push((source(name, text).to_owned(), word(value, text, 0)));
            }
        }
        "file_redirect" => {
            let raw = source(node, text);
            let target = node
                .child_by_field_name("destination")
                .map(|target| word(target, text, 0))
                .unwrap_or_default();
            if raw.contains('>') {
                found.writes.push(target);
            } else {
                found.reads.push(target);
            }
        }
        _ => {}
    }
}

fn source<'a>(node: Node<'_>, text: &'a str) -> &'a str {
    text.get(node.byte_range()).unwrap_or_default()
}

fn words(command: Node<'_>, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut cursor = command.walk();
    for child in command.children(&mut cursor) {
        match child.kind() {
            "variable_assignment" if command.kind() == "command" => {}
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment" => {}
            _ => {
                let word = word(child, text, 0);
                // The one expansion whose value is known: it separates words.
                if word.contains("$IFS") || word.contains("${IFS}") {
                    let spaced = word.replace("${IFS}", " ").replace("$IFS", " ");
                    words.extend(spaced.split_whitespace().map(str::to_owned));
                } else {
                    words.push(word);
                }
            }
        }
    }
    words
}

/// The most likely value of a word: quotes and escapes removed, expansions left as written.
fn word(node: Node<'_>, text: &str, depth: u8) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&[&str]]) {
        assert_eq!(read(text).unwrap().commands, expected, "{text}");
    }

    #[test]
    fn commands_are_found_wherever_they_hide() {
        check("a 'b c' && d", &[&["a", "b c"], &["d"]]);
        check("echo $(curl x)", &[&["echo", "$(curl x)"], &["curl", "x"]]);
        check("A=b curl x > y", &[&["curl", "x"]]);
        check("f() { curl x; }; f", &[&["curl", "x"], &["f"]]);
        check(
            "cu\"\"rl x; c\\url y; $'\\x63url' z",
            &[&["curl", "x"], &["curl", "y"], &["curl", "z"]],
        );
        check("curl${IFS}x", &[&["curl", "x"]]);
        check("export A=b", &[&["export", "A=b"]]);
    }

    #[test]
    fn redirections_are_found() {
        let found = read("a > /etc/x < '.env' 2>>y").unwrap();
        assert_eq!(
            (found.writes, found.reads),
            (vec!["/etc/x".to_owned(), "y".to_owned()], vec![".env".to_owned()])
        );
    }
}
