//! Keeps calls in a streaming text from people: they see the call itself, not its JSON.

use super::Mode;
use super::places::is_data;
use super::shape::may_begin_call;
use super::tagged::openers;
use crate::reply::ModelEvent;

/// What begins like a call is decided within so many bytes.
const UNDECIDED: usize = 96;

/// Whether a text begins a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    Yes,
    No,
    /// More of it is needed.
    Maybe,
}

/// Holds the deltas of a text back from the first thing that may be a call.
#[derive(Debug)]
pub(crate) struct Hold {
    mode: Mode,
    tools: Vec<String>,
    block: u32,
    /// Text that people have not seen.
    held: String,
    /// How many bytes they have seen.
    shown: usize,
    /// The rest of the text is held, whatever comes.
    certain: bool,
    /// What they saw last.
    seen: Seen,
}

/// What comes before a place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    last: Option<char>,
    /// The line has only white space so far.
    blank: bool,
    /// There are words somewhere.
    words: bool,
    /// Backticks at the beginning of the line.
    ticks: u8,
    /// It is within a fenced block.
    fenced: bool,
}

impl Seen {
    const NOTHING: Self = Self {
        last: None,
        blank: true,
        words: false,
        ticks: 0,
        fenced: false,
    };

    fn then(self, one: char) -> Self {
        let space = one.is_whitespace();
        let ticks = match one {
            '\n' => 0,
            '`' if self.blank || self.ticks > 0 => self.ticks.saturating_add(1),
            _ if self.ticks < 3 => 0,
            _ => u8::MAX,
        };
        Self {
            last: Some(one),
            blank: one == '\n' || (self.blank && space),
            words: self.words || !space,
            ticks,
            fenced: self.fenced ^ (one == '`' && ticks == 3),
        }
    }
}

impl Hold {
    pub(crate) fn new(mode: Mode, tools: &[String]) -> Self {
        Self {
            mode,
            tools: tools.to_vec(),
            block: 0,
            held: String::new(),
            shown: 0,
            certain: false,
            seen: Seen::NOTHING,
        }
    }

    /// Passes on what is no call of the events from `from` on.
    pub(crate) fn pass(&mut self, events: &mut Vec<ModelEvent>, from: usize) {
        if self.mode == Mode::NativeOnly || self.tools.is_empty() {
            return;
        }
        let new = events.split_off(from);
        for event in new {
            let ModelEvent::TextDelta { block, text } = event else {
                events.push(event);
                continue;
            };
            if block != self.block {
                self.flush(usize::MAX, events);
                let tools = std::mem::take(&mut self.tools);
                *self = Self::new(self.mode, &tools);
                self.block = block;
            }
            self.held.push_str(&text);
            if !self.certain {
                let length = self.decided();
                self.flush(length, events);
            }
        }
    }

    /// The answer is complete. Of its text, this many bytes are no call.
    pub(crate) fn end(&mut self, words: usize, events: &mut Vec<ModelEvent>) {
        self.flush(words.saturating_sub(self.shown), events);
        self.held.clear();
    }

    /// Shows the beginning of what is held.
    fn flush(&mut self, length: usize, events: &mut Vec<ModelEvent>) {
        let rest = self.held.split_off(self.held.floor_char_boundary(length));
        let text = std::mem::replace(&mut self.held, rest);
        if text.is_empty() {
            return;
        }
        self.shown += text.len();
        self.seen = text.chars().fold(self.seen, Seen::then);
        let block = self.block;
        events.push(ModelEvent::TextDelta { block, text });
    }

    /// How many bytes of what is held begin no call.
    fn decided(&mut self) -> usize {
        let mut seen = self.seen;
        for (at, one) in self.held.char_indices() {
            if matches!(one, '{' | '[' | '<' | '`') {
                let rest = self.held.get(at..).unwrap_or_default();
                let rest = rest
                    .get(..rest.floor_char_boundary(UNDECIDED + 4))
                    .unwrap_or_default();
                match self.begins(rest, seen) {
                    Begins::Yes => {
                        self.certain = true;
                        return at;
                    }
                    Begins::Maybe if rest.len() <= UNDECIDED => return at,
                    Begins::Maybe | Begins::No => {}
                }
            }
            seen = seen.then(one);
        }
        self.held.len()
    }

    fn begins(&self, rest: &str, seen: Seen) -> Begins {
        if seen.fenced {
            return Begins::No;
        }
        let mut fits = Begins::No;
        for tag in openers() {
            if rest.starts_with(tag) {
                return Begins::Yes;
            }
            if tag.starts_with(rest) {
                fits = Begins::Maybe;
            }
        }
        if fits == Begins::Maybe {
            return fits;
        }
        let alone = seen
            .last
            .is_none_or(|c| c.is_whitespace() || matches!(c, ':' | '>' | '：'));
        if rest.starts_with('`') {
            return if seen.blank { self.fence(rest) } else { Begins::No };
        }
        let object = rest.trim_start_matches('[').trim_start();
        if !alone
            || (seen.words && self.mode != Mode::Told)
            || !(object.is_empty() || object.starts_with('{'))
        {
            return Begins::No;
        }
        let decided = object.contains(':');
        match (may_begin_call(rest), decided) {
            (true, true) => Begins::Yes,
            (true, false) => Begins::Maybe,
            (false, _) => Begins::No,
        }
    }

    fn fence(&self, rest: &str) -> Begins {
        let inside = rest.trim_start_matches('`');
        if rest.len() - inside.len() < 3 {
            return if inside.is_empty() {
                Begins::Maybe
            } else {
                Begins::No
            };
        }
        let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '+'));
        let Some(end) = end else { return Begins::Maybe };
        let language = inside.get(..end).unwrap_or_default();
        let tool = self.tools.iter().any(|tool| tool == language);
        let body = inside.get(end..).unwrap_or_default().trim_start();
        match (tool || is_data(language), body.is_empty()) {
            (false, _) => Begins::No,
            (true, true) => Begins::Maybe,
            (true, false) if body.starts_with(['{', '[', '<']) => Begins::Yes,
            (true, false) => Begins::No,
        }
    }
}
