//! The places in a text where calls stand.

use super::scan::{closed, fence};
use super::shape::{Call, MOST_CALLS, Names, Shaped, begins_call, shape};
use super::tagged::{openers, tagged};
use agentd_lenient_json::{Ending, Repairs, value_at};

/// The most failed attempts before the search gives up; each may cost one pass over the text.
const FAILURES: usize = 16;

/// How the messages begin that only agentd writes.
const MADE_UP: [&str; 2] = ["[tool result", "[tool error"];

/// How a call is marked as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Not at all: an object by itself.
    Bare,
    /// By a fenced block of data.
    Fenced,
    /// By the tags of a template.
    Tagged,
}

/// Calls with their repairs, or what is wrong with them.
pub(crate) type Found = Result<(Vec<Call>, Repairs), String>;

/// A place where calls stand, or something that was meant as one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) mark: Mark,
    pub(crate) found: Found,
}

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) tools: &'a [String],
    /// How names are taken in objects that nothing else marks as calls.
    pub(crate) names: Names,
    pub(crate) ending: Ending,
}

impl Search<'_> {
    /// All places, from `from` on, and where the answer ends. Code, other objects and quoted calls are skipped whole, so
    /// a call inside one of them is not found. Some models go on after a call and make up its result: that is no part of
    /// the answer.
    pub(crate) fn places(&self, text: &str, from: usize) -> (Vec<Place>, usize) {
        let (mut places, mut at, mut failures) = (Vec::new(), from, 0);
        while let Some(start) = next_opener(text, at) {
            if failures > FAILURES || places.len() > MOST_CALLS {
                return (Vec::new(), text.len());
            }
            let (place, next) = self.place(text, start);
            at = next.unwrap_or_else(|| {
                failures += 1;
                text.ceil_char_boundary(start + 1)
            });
            failures += usize::from(place.as_ref().is_some_and(|place| place.found.is_err()));
            let Some(place) = place else { continue };
            places.push(place);
            let after = skip_between(text, at);
            let rest = text.get(after..).unwrap_or_default();
            if MADE_UP.iter().any(|mark| rest.starts_with(mark)) {
                return (places, after);
            }
        }
        (places, text.len())
    }

    /// The place that begins here, if any, and where the search continues; none: nothing that begins here ends.
    fn place(&self, text: &str, start: usize) -> (Option<Place>, Option<usize>) {
        if let Some(block) = fence(text, start) {
            let tool = self.tools.iter().find(|tool| *tool == block.language);
            let body = text.get(..block.body.end).unwrap_or_default();
            let found = match tool {
                Some(tool) => self.arguments_of(tool, body, block.body.start),
                None if is_data(block.language) => self.only(body, block.body.start),
                None => None,
            };
            let place = found.map(|found| Place {
                start,
                end: block.end,
                mark: Mark::Fenced,
                found,
            });
            return (place, Some(block.end));
        }
        let alone = stands_alone(text, start);
        let place = |(found, end), mark| {
            let place = Place {
                start,
                end,
                mark,
                found,
            };
            (Some(place), Some(end))
        };
        if alone && let Some(tagged) = self.tagged(text, start) {
            return place(tagged, Mark::Tagged);
        }
        if !text.get(start..).is_some_and(|rest| rest.starts_with(['{', '['])) {
            return (None, Some(start + 1));
        }
        if alone && let Some(bare) = self.bare(text, start) {
            return place(bare, Mark::Bare);
        }
        (None, closed(text, start))
    }

    fn tagged(&self, text: &str, start: usize) -> Option<(Found, usize)> {
        let opens = text
            .get(start..)
            .is_some_and(|rest| openers().any(|tag| rest.starts_with(tag)));
        opens
            .then(|| tagged(text, start, self.tools, self.ending))
            .flatten()
    }

    /// One object or list by itself.
    fn bare(&self, text: &str, start: usize) -> Option<(Found, usize)> {
        match value_at(text, start, self.ending) {
            Ok(found) => match shape(found.value, self.tools, self.names) {
                Shaped::Calls(calls) => Some((Ok((calls, found.repairs)), found.end)),
                Shaped::Bad(why) => Some((Err(why), found.end)),
                Shaped::Other => None,
            },
            Err(mistake) if begins_call(text.get(start..)?, self.tools) => Some((
                Err(mistake.located(text).to_string()),
                closed(text, start).unwrap_or(text.len()),
            )),
            Err(_) => None,
        }
    }

    /// The calls of a fenced block that consists only of them.
    fn only(&self, text: &str, from: usize) -> Option<Found> {
        let (mut calls, mut repairs, mut at) = (Vec::new(), Repairs::default(), from);
        loop {
            at = skip_between(text, at);
            if at >= text.len() && !calls.is_empty() {
                return Some(Ok((calls, repairs)));
            }
            let (found, end) = self.tagged(text, at).or_else(|| self.bare(text, at))?;
            match found {
                Ok((more, others)) => {
                    calls.extend(more);
                    repairs.extend(&others);
                }
                Err(why) => return Some(Err(why)),
            }
            if calls.len() > MOST_CALLS {
                return None;
            }
            at = end;
        }
    }

    /// A fenced block whose language is the name of a tool: its arguments.
    fn arguments_of(&self, tool: &str, text: &str, from: usize) -> Option<Found> {
        let found = value_at(text, from, self.ending).ok()?;
        let input = Some(found.value).filter(serde_json::Value::is_object)?;
        let name = tool.to_owned();
        (skip_between(text, found.end) >= text.len()).then(|| Ok((vec![Call { name, input }], found.repairs)))
    }
}

/// The next place where a fence, a tag, an object or a list of objects may begin.
fn next_opener(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let opens = |at: usize| {
        let here = rest.get(at..).unwrap_or_default();
        match here.as_bytes().first() {
            Some(b'{') => true,
            Some(b'[') => {
                let inside = here.get(1..).unwrap_or_default().trim_start();
                inside.starts_with('{') || openers().any(|tag| here.starts_with(tag))
            }
            Some(b'<') => openers().any(|tag| here.starts_with(tag)),
            _ => fence(text, from + at).is_some(),
        }
    };
    // Within a run of backticks only the first can begin a fence.
    let run = |at: usize| rest.get(..at).is_some_and(|before| before.ends_with('`'));
    rest.match_indices(['{', '[', '<', '`'])
        .filter(|(at, found)| *found != "`" || !run(*at))
        .map(|(at, _)| at)
        .find(|at| opens(*at))
        .map(|at| from + at)
}

/// Blocks in other languages are code samples.
pub(crate) fn is_data(language: &str) -> bool {
    const DATA: [&str; 8] = [
        "",
        "json",
        "jsonc",
        "json5",
        "tool",
        "tool_call",
        "tool_code",
        "tool_calls",
    ];
    DATA.iter().any(|known| known.eq_ignore_ascii_case(language))
}

/// Not an argument, not within inline code or quotes.
pub(crate) fn stands_alone(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    // A whole answer in backticks is no quotation.
    if start < 4 && before.trim_start().chars().all(|c| c == '`') {
        return true;
    }
    let before = before.chars().next_back();
    before.is_none_or(|c| c.is_whitespace() || matches!(c, ':' | '>' | ']' | '}' | '：'))
}

/// Skips what models write between calls and after the last one: white space, commas, closing tags, control tokens.
pub(crate) fn skip_between(text: &str, from: usize) -> usize {
    const TAGS: [&str; 8] = [
        "</tool_call>",
        "</tool_calls>",
        "</function_call>",
        "</function>",
        "[/TOOL_CALLS]",
        "<|im_end|>",
        "<|eot_id|>",
        "</s>",
    ];
    let mut rest = text.get(from..).unwrap_or_default();
    loop {
        let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '`'));
        let next = TAGS
            .iter()
            .find_map(|tag| trimmed.strip_prefix(tag))
            .unwrap_or(trimmed);
        if next.len() == rest.len() {
            return text.len() - rest.len();
        }
        rest = next;
    }
}
