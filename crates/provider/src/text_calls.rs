//! Calls in the text of an answer: of models that were told to write them as JSON, and of models whose server did not
//! recognize the calls of their template.
//!
//! A call counts only if it is the whole answer or stands at its end. One that stands elsewhere is quoted; one that
//! cannot be read is not guessed. The model hears of both in the next message.

mod hold;
mod places;
mod scan;
mod shape;
mod tagged;

use agentd_lenient_json::{Ending, Repairs};
use agentd_protocol::{Block, Reading, StopReason, ToolProtocol, Unmade, UnmadeCall};
pub(crate) use hold::Hold;
use places::{Mark, Place, Search, skip_between};
use shape::{Call, MOST_CALLS, Names};

/// Longer texts are not searched for calls.
const LONGEST: usize = 4 << 20;

/// What a call in the text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The model was told to write its calls as text.
    Told,
    /// The model has native calls; those of its template that the server left in the text count, too.
    Template,
    /// The model has native calls, and nothing else is a call.
    NativeOnly,
}

impl Mode {
    pub(crate) const fn of(protocol: ToolProtocol, text_calls: bool) -> Self {
        match protocol {
            ToolProtocol::JsonText => Self::Told,
            ToolProtocol::Native if text_calls => Self::Template,
            ToolProtocol::Native => Self::NativeOnly,
        }
    }
}

/// An answer whose text was searched.
#[derive(Debug, PartialEq)]
pub(crate) struct Lifted {
    pub(crate) content: Vec<Block>,
    pub(crate) stop: StopReason,
    pub(crate) reading: Reading,
    /// How many bytes of the searched text are no call.
    pub(crate) words: usize,
}

/// Takes the calls out of an answer's text. The words before them stay.
pub(crate) fn lift(content: Vec<Block>, stop: StopReason, mode: Mode, tools: &[String]) -> Lifted {
    let mut lifted = Lifted {
        content,
        stop,
        reading: Reading::default(),
        words: usize::MAX,
    };
    let called = lifted
        .content
        .iter()
        .any(|block| matches!(block, Block::ToolUse { .. }));
    let is_text = |block: &Block| matches!(block, Block::Text { text } if text.len() <= LONGEST);
    let (Some(ending), false) = (ending(stop), called || tools.is_empty()) else {
        return lifted;
    };
    let Some(at) = lifted.content.iter().rposition(is_text) else {
        return lifted;
    };
    let Some(Block::Text { text }) = lifted.content.get(at) else {
        return lifted;
    };
    match read(text, mode, tools, ending) {
        Answer::Words => {}
        Answer::Unmade(kind, problem) => lifted.reading.unmade = Some(UnmadeCall { kind, problem }),
        Answer::Calls { before, places } => {
            lifted.words = text.get(..before).unwrap_or_default().trim_end().len();
            let before = words(text, before);
            let found = places.into_iter().filter_map(|place| place.found.ok());
            let mut calls = Vec::new();
            for (call, repairs) in
                found.flat_map(|(calls, repairs)| calls.into_iter().map(move |call| (call, repairs.clone())))
            {
                lifted.reading.repaired.extend(said_of(&call, &repairs, mode));
                calls.push(call.into_block(calls.len() + 1));
            }
            lifted.content.splice(at..=at, before);
            lifted.content.extend(calls);
            lifted.stop = StopReason::ToolUse;
        }
    }
    lifted
}

/// What was done to a call, if anything.
fn said_of(call: &Call, repairs: &Repairs, mode: Mode) -> Option<String> {
    let taken = (mode == Mode::Template).then(|| "taken from the text of the answer".to_owned());
    let repaired = (!repairs.is_empty()).then(|| repairs.to_string());
    let said: Vec<String> = taken.into_iter().chain(repaired).collect();
    (!said.is_empty()).then(|| format!("{}: {}", call.name, said.join(", ")))
}

/// What ended the text; none: it is not searched, because the provider stopped it.
const fn ending(stop: StopReason) -> Option<Ending> {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Other => {
            Some(Ending::Own)
        }
        StopReason::MaxTokens => Some(Ending::Cut),
        StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::ContentFilter
        | StopReason::ContextWindow => None,
    }
}

/// The words before the calls. Reasoning whose end is in the text is no part of them.
fn words(text: &str, end: usize) -> Vec<Block> {
    let thought = after_thinking(text);
    let thinking = text.get(..thought).unwrap_or_default();
    let thinking = thinking
        .trim()
        .trim_start_matches("<think>")
        .trim_end_matches("</think>")
        .trim();
    let said = text.get(thought..end).unwrap_or_default().trim_end();
    let mut blocks = Vec::new();
    if !thinking.is_empty() {
        blocks.push(Block::Thinking {
            text: thinking.to_owned(),
            raw: None,
        });
    }
    // Backticks around a whole answer are no words.
    if !said
        .trim_matches(|c: char| c.is_whitespace() || c == '`')
        .is_empty()
    {
        blocks.push(Block::text(said));
    }
    blocks
}

/// Where the text begins after the reasoning that some templates leave in the answer.
fn after_thinking(text: &str) -> usize {
    let trimmed = text.trim_start();
    let Some((thinking, rest)) = trimmed.split_once("</think>") else {
        return if trimmed.starts_with("<think>") {
            text.len()
        } else {
            0
        };
    };
    // If the template itself opens the reasoning, only the closing tag is in the text.
    if trimmed.starts_with("<think>") || !thinking.starts_with(['{', '[', '`', '<']) {
        text.len() - rest.len()
    } else {
        0
    }
}

/// What the text of an answer is.
enum Answer {
    Words,
    Calls { before: usize, places: Vec<Place> },
    Unmade(Unmade, String),
}

fn read(text: &str, mode: Mode, tools: &[String], ending: Ending) -> Answer {
    let from = after_thinking(text);
    let names = if mode == Mode::Told {
        Names::AsTold
    } else {
        Names::Offered
    };
    let search = Search { tools, names, ending };
    let (mut places, end) = search.places(text, from);
    let last = places.split_off(first_of_last(text, end, &places));
    let Some(first) = last.first() else {
        return match (mode, places.iter().find_map(name_of)) {
            (Mode::Told, Some(name)) if ending == Ending::Own => Answer::Unmade(
                Unmade::Unclear,
                format!("a call of {name} stands within the answer instead of at its end"),
            ),
            _ => Answer::Words,
        };
    };
    let before = first.start;
    let said = text.get(from..before).unwrap_or_default();
    if mode != Mode::Told && !counts_unasked(first, said) {
        return Answer::Words;
    }
    if let Some(why) = last.iter().find_map(|place| place.found.as_ref().err()) {
        return broken(why, mode, ending, first.mark);
    }
    if ending == Ending::Cut {
        return Answer::Unmade(Unmade::Cut, "the answer ends at the output limit".to_owned());
    }
    let name = last.iter().find_map(name_of).unwrap_or_default();
    let calls = last
        .iter()
        .map(|place| place.found.as_ref().map_or(0, |found| found.0.len()))
        .sum::<usize>();
    if calls > MOST_CALLS {
        return Answer::Words;
    }
    match mode {
        Mode::NativeOnly => Answer::Unmade(
            Unmade::Unclear,
            format!("a call of {name} stands in the text of the answer"),
        ),
        Mode::Told if announces_example(said) => Answer::Unmade(
            Unmade::Unclear,
            format!("the words before the call of {name} make it look like an example"),
        ),
        Mode::Told | Mode::Template => Answer::Calls { before, places: last },
    }
}

/// Without tools in the text by agreement, an object must be the whole answer, and an example stays one.
fn counts_unasked(first: &Place, said: &str) -> bool {
    let whole = said.trim().is_empty();
    match first.mark {
        Mark::Bare => whole && first.found.is_ok(),
        Mark::Fenced => first.found.is_ok() && !announces_example(said),
        Mark::Tagged => !announces_example(said),
    }
}

fn broken(why: &str, mode: Mode, ending: Ending, mark: Mark) -> Answer {
    match (mode, ending) {
        (_, Ending::Cut) => Answer::Unmade(Unmade::Cut, why.to_owned()),
        (Mode::Told, _) => Answer::Unmade(Unmade::Broken, why.to_owned()),
        (Mode::Template, _) if mark == Mark::Tagged => Answer::Unmade(Unmade::Broken, why.to_owned()),
        (Mode::Template | Mode::NativeOnly, _) => Answer::Words,
    }
}

fn name_of(place: &Place) -> Option<&str> {
    let (calls, _) = place.found.as_ref().ok()?;
    calls.first().map(|call| call.name.as_str())
}

/// The index of the first of the places that follow each other up to the end of the answer.
fn first_of_last(text: &str, end: usize, places: &[Place]) -> usize {
    let mut next = end;
    let mut first = places.len();
    for (index, place) in places.iter().enumerate().rev() {
        if skip_between(text, extra_braces(text, place.end)) < next {
            break;
        }
        (first, next) = (index, place.start);
    }
    first
}

/// Skips closing braces that close nothing.
fn extra_braces(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    text.len() - rest.trim_start_matches('}').len()
}

/// Whether the last words before a call say that it is an example.
fn announces_example(said: &str) -> bool {
    const SIGNS: [&str; 16] = [
        "example",
        "e.g.",
        "for instance",
        "such as",
        "would",
        "could",
        "might",
        "looks like",
        "look like",
        "syntax",
        "format",
        "instead of",
        "例如",
        "比如",
        "示例",
        "格式",
    ];
    let last = said
        .trim_end()
        .lines()
        .next_back()
        .unwrap_or_default()
        .to_lowercase();
    SIGNS.iter().any(|sign| last.contains(sign))
}

#[cfg(test)]
mod tests;
