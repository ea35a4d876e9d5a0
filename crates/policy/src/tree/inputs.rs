//! Text that a command line gives to its programs: here-documents, here-strings, printed words, files that it writes first.

use super::source;
use super::word::word;
use crate::consumers::{reads_code, runnable};
use crate::nested::base;
use tree_sitter::Node;

/// The maximum number of written files that are compared with the commands.
const MAX_FILES: usize = 32;

/// Text that a program may interpret as code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) program: String,
    pub(crate) text: String,
}

/// Whether a text has an array subscript with a command, which the shell's built-ins run when they evaluate it.
pub(crate) fn evaluates(text: &str) -> bool {
    text.contains("[$(") || text.contains("[`")
}

/// A place of a text where data flows.
#[derive(Debug)]
pub(super) enum Span {
    /// The commands between these positions read a text, or what the first of them print.
    Flow(usize, usize, Option<String>),
    /// A redirection to a file.
    File(usize, String),
}

/// The flow that a node describes.
pub(super) fn span(node: Node<'_>, text: &str) -> Option<Span> {
    let given = |text: String| {
        let all = enclosing(node);
        Some(Span::Flow(all.start_byte(), all.end_byte(), Some(text)))
    };
    match node.kind() {
        "heredoc_body" => given(source(node, text).to_owned()),
        "herestring_redirect" => given(word(node.named_child(0)?, text, 0)),
        "pipeline" | "redirected_statement" => Some(Span::Flow(node.start_byte(), node.end_byte(), None)),
        "file_redirect" if source(node, text).contains('>') => {
            let target = node.child_by_field_name("destination")?;
            Some(Span::File(node.start_byte(), word(target, text, 0)))
        }
        _ => None,
    }
}

/// The statement around a node: its commands read one from the other.
fn enclosing(node: Node<'_>) -> Node<'_> {
    let mut all = node;
    while let Some(parent) = all.parent().filter(|parent| {
        let kind = parent.kind();
        kind.ends_with("_redirect") || matches!(kind, "command" | "pipeline" | "redirected_statement")
    }) {
        all = parent;
    }
    all
}

/// The texts that some program may interpret as code.
pub(super) fn read(commands: &[Vec<String>], starts: &[usize], spans: &[Span]) -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    if spans.is_empty() {
        return inputs;
    }
    let reads: Vec<bool> = commands.iter().map(|argv| reads_code(argv)).collect();
    let files: Vec<(usize, &str)> = spans.iter().filter_map(file).take(MAX_FILES).collect();
    for span in spans {
        let Span::Flow(from, to, given) = span else {
            continue;
        };
        // Commands are visited in the order of the text.
        let members = starts.partition_point(|at| at < from)..starts.partition_point(|at| at < to);
        let reader = members.clone().find(|index| reads.get(*index) == Some(&true));
        let reader = reader.or_else(|| {
            let mut targets = files.iter().filter(|(at, _)| (from..to).contains(&at));
            targets.find_map(|(_, file)| commands.iter().position(|argv| runs(argv, file)))
        });
        let Some(program) = reader.and_then(|index| commands.get(index)?.first()) else {
            continue;
        };
        let text = given.clone().unwrap_or_else(|| {
            let printed = members.clone().filter_map(|index| printed(commands.get(index)?));
            printed.collect::<Vec<_>>().join("\n")
        });
        let input = Input {
            program: base(program).to_owned(),
            text,
        };
        if !input.text.is_empty() && !inputs.contains(&input) {
            inputs.push(input);
        }
    }
    inputs
}

fn file(span: &Span) -> Option<(usize, &str)> {
    match span {
        Span::File(at, file) => Some((*at, file)),
        Span::Flow(..) => None,
    }
}

/// Whether a command runs a file, or may interpret it.
fn runs(argv: &[String], file: &str) -> bool {
    let same = |word: &str| {
        let word = word.trim_start_matches("./");
        word == file.trim_start_matches("./") || file.ends_with(&format!("/{word}"))
    };
    let program = argv
        .first()
        .is_some_and(|program| program.contains('/') && same(program));
    let given = runnable(argv).into_iter().filter(|found| !found.inert);
    program || given.into_iter().any(|found| found.words.into_iter().any(&same))
}

/// The words that a command prints.
fn printed(argv: &[String]) -> Option<String> {
    let (program, args) = argv.split_first()?;
    matches!(base(program), "echo" | "printf").then(|| args.join(" "))
}
