//! Finds JSON in text in linear time, even in hostile text.

/// The deepest nesting of brackets; no real JSON is deeper.
const DEEPEST: usize = 100;

/// The index after the bracket that closes the one at `start`. Brackets inside strings do not count. None if there is
/// no bracket at `start`.
pub(crate) fn closed(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes().get(start..)?;
    if !matches!(bytes.first(), Some(b'{' | b'[')) {
        return None;
    }
    let mut depth = 0_usize;
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > DEEPEST {
                    return None;
                }
            }
            b'}' | b']' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(start + at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Prose between the fenced blocks.
    Prose(&'a str),
    /// A fenced block: its language and its content.
    Fenced { language: &'a str, body: &'a str },
}

const FENCE: &str = "```";

/// Splits a text at its fenced blocks. An unclosed block extends to the end.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = fence(rest) {
        let (prose, from) = rest.split_at(open);
        parts.push(Part::Prose(prose));
        let inside = from.trim_start_matches('`');
        let ticks = from.len() - inside.len();
        let word = inside
            .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '+'))
            .unwrap_or(inside.len());
        let (language, inside) = inside.split_at(word);
        let marks = from.get(..ticks).unwrap_or(FENCE);
        let (body, after) = match close(inside, marks) {
            Some(end) => (
                inside.get(..end).unwrap_or_default(),
                inside.get(end..).unwrap_or_default().trim_start_matches('`'),
            ),
            None => (inside, ""),
        };
        parts.push(Part::Fenced { language, body });
        rest = after;
    }
    parts.push(Part::Prose(rest));
    parts
}

/// Finds an opening fence: at the beginning of a line.
fn fence(text: &str) -> Option<usize> {
    text.match_indices(FENCE)
        .map(|(at, _)| at)
        .find(|at| begins_line(text, *at))
}

/// Finds the closing fence: at the beginning of a line, or at the end of the opening line.
fn close(inside: &str, marks: &str) -> Option<usize> {
    let line = inside.find('\n').unwrap_or(inside.len());
    let first = inside.get(..line).unwrap_or_default().trim_end();
    if !first.trim_end_matches('`').trim().is_empty() && first.ends_with(marks) {
        return Some(first.trim_end_matches('`').len());
    }
    inside
        .match_indices(marks)
        .map(|(at, _)| at)
        .find(|at| *at > line && begins_line(inside, *at))
}

fn begins_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let indent = before.len() - before.trim_end_matches([' ', '\t']).len();
    indent <= 8
        && matches!(
            before.trim_end_matches([' ', '\t']).chars().next_back(),
            None | Some('\n')
        )
}
