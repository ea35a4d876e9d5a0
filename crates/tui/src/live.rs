//! What streams, as lines. Text that streams grows at its end, so a frame lays out only the last block of it; the blocks
//! before are kept until the answer is complete, and its entry takes them over.

use crate::layout::{Lines, Look, said, thought};
use crate::markdown::OPTIONS;
use crate::syntax::Code;
use pulldown_cmark::{Event, Parser};
use ratatui::text::Line;
use std::rc::Rc;

/// What streams.
#[derive(Debug, Default)]
pub(crate) struct Live {
    look: Option<Look>,
    /// The length of the reasoning that was laid out, and its lines.
    thinking: (usize, Lines),
    /// The blocks that more text leaves as they are.
    text: String,
    blocks: Vec<Lines>,
    /// The text behind them as it was laid out last.
    rest: (String, Lines),
    code: Code,
}

impl Live {
    /// The lines of the reasoning and of the text, in parts.
    pub(crate) fn lines(&mut self, thinking: &str, text: &str, look: Look) -> Vec<Lines> {
        if self.look != Some(look) {
            *self = Self {
                look: Some(look),
                ..Self::default()
            };
        }
        let mut parts = Vec::with_capacity(self.blocks.len() + 4);
        if !thinking.trim().is_empty() {
            if self.thinking.0 != thinking.len() {
                self.thinking = (thinking.len(), Rc::new(thought(thinking, look, look.open)));
            }
            parts.push(Rc::clone(&self.thinking.1));
        }
        if !text.trim().is_empty() {
            if !parts.is_empty() {
                parts.push(Rc::new(vec![Line::default()]));
            }
            self.advance(text, look);
            parts.extend(self.blocks.iter().cloned());
            parts.push(Rc::clone(&self.rest.1));
        }
        parts
    }

    /// Takes in the text so far.
    fn advance(&mut self, text: &str, look: Look) {
        if !text.starts_with(&self.text) {
            self.text.clear();
            self.blocks.clear();
            self.rest = Default::default();
        }
        let rest = text.get(self.text.len()..).unwrap_or_default();
        if rest == self.rest.0 {
            return;
        }
        let (blocks, rest) = rest.split_at(settled(rest));
        if !blocks.is_empty() {
            let lines = said(blocks, look, &self.code);
            self.text.push_str(blocks);
            self.push(lines);
        }
        let mut lines = said(rest, look, &self.code);
        if !self.blocks.is_empty() && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        self.rest = (rest.to_owned(), Rc::new(lines));
    }

    fn push(&mut self, mut lines: Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        if !self.blocks.is_empty() {
            lines.insert(0, Line::default());
        }
        self.blocks.push(Rc::new(lines));
    }

    /// The lines of a complete text, if it is the one that streamed. This drops the kept lines.
    pub(crate) fn whole(&mut self, text: &str, look: Look) -> Option<Vec<Line<'static>>> {
        // A definition of a link changes the blocks before it.
        let same = self.look == Some(look) && !self.text.is_empty() && text.starts_with(&self.text);
        if !same || text.contains("]:") {
            return None;
        }
        self.advance(text, look);
        let blocks = std::mem::take(&mut self.blocks);
        self.text.clear();
        let (_, rest) = std::mem::take(&mut self.rest);
        let parts = blocks.into_iter().chain([rest]);
        Some(parts.flat_map(Rc::unwrap_or_clone).collect())
    }
}

/// The length of the blocks that no further text changes: all before the last block that has a whole line. (A line that
/// is not complete may turn out to belong to the block before.)
fn settled(text: &str) -> usize {
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let lines = text.get(..whole).unwrap_or_default();
    let (mut depth, mut last) = (0_usize, 0);
    for (event, range) in Parser::new_ext(lines, OPTIONS).into_offset_iter() {
        if depth == 0 {
            last = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    // Of an indented block, the indentation belongs to it.
    lines
        .get(..last)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Depth, Ground, Theme};

    const LOOK: Look = Look {
        width: 30,
        theme: Theme::new(Depth::Indexed, Ground::Dark),
        open: false,
    };

    const TEXT: &str = "# Title\n\nSome *text*\nof two lines.\n\nMore.\n\n- one\n\n- two\n\n  inside\n\nAfter it.\n\n\
        > quoted\nlazily\n> # in it\n\n```rust\nfn main() {\n\nlet x = 1;\n}\n```\n\nBetween.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\
        1. first\n\n2. second\n\nA heading\n---\n\n* * *\n\n <p>html</p>\n\n#no heading\n# one\n    code?\n\n    code\n\n\n\
        ~~~\nopen ``` too\n~~~\n ends. 結果\n\n indented\nAnd more";

    fn flat(parts: &[Lines]) -> Vec<Line<'static>> {
        parts.iter().flat_map(|part| part.iter().cloned()).collect()
    }

    #[test]
    fn text_that_streams_looks_like_the_whole_text_at_every_length() {
        let mut live = Live::default();
        let ends = TEXT.char_indices().map(|(at, _)| at).chain([TEXT.len()]);
        for end in ends {
            let part = &TEXT[..end];
            let whole = said(part, LOOK, &Code::default());
            assert_eq!(flat(&live.lines("", part, LOOK)), whole, "{part:?}");
        }
        // A break of a block is seen although the text behind it begins with a space.
        assert!(live.text.ends_with("結果\n\n"), "{:?}", live.text);
        assert!(live.blocks.len() > 12, "{}", live.blocks.len());
        // Another answer starts again.
        assert_eq!(
            flat(&live.lines("", "x", LOOK)),
            said("x", LOOK, &Code::default())
        );
    }

    #[test]
    fn the_entry_of_an_answer_takes_over_what_streamed() {
        let mut live = Live::default();
        live.lines("", &TEXT[..TEXT.len() / 2], LOOK);
        assert!(!live.blocks.is_empty(), "positive control");
        assert_eq!(live.whole(TEXT, LOOK), Some(said(TEXT, LOOK, &Code::default())));
        assert_eq!(live.whole(TEXT, LOOK), None, "only once");
        live.lines("", TEXT, LOOK);
        assert_eq!(live.whole("Another text.", LOOK), None);
        let defined = format!("{TEXT}\n\n[x]: http://y.z\n");
        assert_eq!(live.whole(&defined, LOOK), None);
    }

    #[test]
    fn reasoning_stands_above_the_text() {
        let mut live = Live::default();
        let lines = flat(&live.lines("First I look.", "Then I say.", LOOK));
        let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["∴ First I look. (thought)", "", "Then I say."]);
    }
}
