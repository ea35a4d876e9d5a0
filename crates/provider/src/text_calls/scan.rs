//! Finds brackets and fences in linear time, even in hostile text.

use std::ops::Range;

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

/// A fenced block: its language, where its content is, and where it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fence<'a> {
    pub(crate) language: &'a str,
    pub(crate) body: Range<usize>,
    pub(crate) end: usize,
}

const MARK: &str = "```";

/// The fenced block that begins at a byte of the text. An unclosed block extends to the end.
pub(crate) fn fence(text: &str, start: usize) -> Option<Fence<'_>> {
    let from = text.get(start..)?;
    if !from.starts_with(MARK) || !begins_line(text, start) {
        return None;
    }
    let inside = from.trim_start_matches('`');
    let marks = from.get(..from.len() - inside.len())?;
    let word = inside
        .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '+'))
        .unwrap_or(inside.len());
    let (language, inside) = inside.split_at(word);
    let begin = text.len() - inside.len();
    let (length, end) = match close(inside, marks) {
        Some(length) => {
            let after = inside.get(length..).unwrap_or_default();
            (length, text.len() - after.trim_start_matches('`').len())
        }
        None => (inside.len(), text.len()),
    };
    Some(Fence {
        language,
        body: begin..begin + length,
        end,
    })
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
