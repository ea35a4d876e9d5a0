//! The grammar's view of a command: every command found anywhere in it, as lists of words.

mod braces;
mod inputs;
mod word;

pub(crate) use braces::alternatives;
pub(crate) use inputs::{Input, evaluates};
pub(crate) use word::{Pattern, UNKNOWN, ansi, literal};

use inputs::span;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree, TreeCursor};
use word::{expanded, pattern, words};

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
    /// Those of them that are commands as a shell sees them; set when nested ones are added.
    pub(crate) whole: Vec<Vec<String>>,
    /// The words of all commands, each once.
    pub(crate) words: Vec<String>,
    /// Files that a redirection writes.
    pub(crate) writes: Vec<String>,
    /// Files that a redirection reads.
    pub(crate) reads: Vec<String>,
    /// Variable assignments, in the order of the text.
    pub(crate) assigned: Vec<(String, String)>,
    /// Those of them that are in the environment of one command.
    pub(crate) given: Vec<(String, String)>,
    /// Words whose value a shell computes.
    pub(crate) patterns: Vec<Pattern>,
    /// Commands whose name a shell computes; the first word is its pattern.
    pub(crate) computed: Vec<Vec<String>>,
    /// Text that programs read from their input and may interpret.
    pub(crate) inputs: Vec<Input>,
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
    let (mut starts, mut spans) = (Vec::new(), Vec::new());
    loop {
        visit(cursor.node(), text, &mut found);
        starts.resize(found.commands.len(), cursor.node().start_byte());
        spans.extend(span(cursor.node(), text));
        if found.bytes > MAX_BYTES {
            return None;
        }
        if cursor.goto_first_child() {
            continue;
        }
        if !next(&mut cursor) {
            found
                .inputs
                .extend(inputs::read(&found.commands, &starts, &spans));
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
        "command" | "declaration_command" | "unset_command" => command(node, text, found),
        "variable_assignment" => found.assigned.extend(assignment(node, text)),
        "for_statement" => {
            let name = node
                .child_by_field_name("variable")
                .map_or("", |name| source(name, text));
            let mut cursor = node.walk();
            for value in node.children_by_field_name("value", &mut cursor) {
                found.assigned.push((name.to_owned(), word::word(value, text, 0)));
                found.patterns.extend(pattern(value, text));
            }
        }
        "file_redirect" => redirect(node, text, found),
        "test_command" if inputs::evaluates(source(node, text)) => found.inputs.push(Input {
            program: "test".to_owned(),
            text: source(node, text).to_owned(),
        }),
        _ => {}
    }
}

fn assignment(node: Node<'_>, text: &str) -> Option<(String, String)> {
    let name = node.child_by_field_name("name")?;
    let value = node.child_by_field_name("value")?;
    Some((source(name, text).to_owned(), word::word(value, text, 0)))
}

fn command(node: Node<'_>, text: &str, found: &mut Found) {
    if node.kind() == "command" {
        let mut cursor = node.walk();
        let settings = node
            .children(&mut cursor)
            .filter(|child| child.kind() == "variable_assignment");
        found
            .given
            .extend(settings.filter_map(|setting| assignment(setting, text)));
    }
    let written = word::written(node, text);
    let words = words(&written);
    found.bytes += words.iter().map(String::len).sum::<usize>();
    if words.is_empty() {
        return;
    }
    let expanded = expanded(&written);
    if let Some(name) = expanded.name {
        let args = words.iter().skip(1).cloned();
        found.computed.push(std::iter::once(name).chain(args).collect());
    }
    found.patterns.extend(expanded.patterns);
    found.commands.push(words);
    if let Some(words) = expanded.words {
        found.bytes += words.iter().map(String::len).sum::<usize>();
        found.commands.push(words);
    }
}

fn redirect(node: Node<'_>, text: &str, found: &mut Found) {
    let writes = source(node, text).contains('>');
    let Some(target) = node.child_by_field_name("destination") else {
        return;
    };
    found
        .patterns
        .extend(pattern(target, text).map(|pattern| Pattern { writes, ..pattern }));
    let target = word::word(target, text, 0);
    if writes {
        found.writes.push(target);
    } else {
        found.reads.push(target);
    }
}

fn source<'a>(node: Node<'_>, text: &'a str) -> &'a str {
    text.get(node.byte_range()).unwrap_or_default()
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
