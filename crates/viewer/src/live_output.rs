//! The output of running tools as it arrives: the first whole lines of each call. The result does not repeat them.

use agentd_protocol::ToolCallId;
use agentd_text::plain;
use std::collections::HashMap;

/// The most lines of one call that are shown while it runs.
const LINES: usize = 40;
/// The most characters of a line; the rest is left out.
const LINE_CHARS: usize = 300;
/// The most calls whose output is followed at the same time.
const CALLS: usize = 64;

/// The output shown so far of each running call.
#[derive(Debug, Default)]
pub struct LiveOutput(HashMap<ToolCallId, Shown>);

#[derive(Debug, Default)]
struct Shown {
    lines: Vec<String>,
    /// The incomplete last line.
    open: String,
    /// The offset at which the next piece is expected.
    next: u64,
    silent: bool,
}

impl LiveOutput {
    /// The lines that a piece of output completes.
    pub fn piece(&mut self, call: ToolCallId, offset: u64, text: &str) -> Vec<String> {
        if self.0.len() >= CALLS && !self.0.contains_key(&call) {
            return Vec::new();
        }
        self.0.entry(call).or_default().piece(offset, text)
    }

    /// The call ended: removes the lines of `result` that were shown already.
    pub fn end(&mut self, call: ToolCallId, result: &mut Vec<String>) {
        let Some(shown) = self.0.remove(&call) else { return };
        let same = result.iter().zip(&shown.lines);
        let same = same.take_while(|(line, shown)| cut(line) == **shown).count();
        result.drain(..same);
    }

    /// Output was missed, so the incomplete lines are unusable.
    pub fn lagged(&mut self) {
        for shown in self.0.values_mut() {
            shown.open.clear();
        }
    }
}

impl Shown {
    fn piece(&mut self, offset: u64, text: &str) -> Vec<String> {
        let gap = offset > self.next;
        self.next = offset.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        if self.silent {
            return Vec::new();
        }
        let mut fresh = Vec::new();
        if gap {
            self.open.clear();
            fresh.push("…".to_owned());
        }
        for part in text.split_inclusive('\n') {
            let room = LINE_CHARS.saturating_sub(self.open.chars().count());
            self.open
                .extend(part.trim_end_matches(['\r', '\n']).chars().take(room));
            if part.ends_with('\n') {
                // As in the result, so that it does not repeat the line. Names between NUL characters are lines.
                let line = std::mem::take(&mut self.open);
                fresh.extend(plain(&line).text.split('\n').map(str::to_owned));
            }
        }
        let room = LINES.saturating_sub(self.lines.len());
        if fresh.len() > room {
            self.silent = true;
            self.open.clear();
            fresh.truncate(room);
        }
        self.lines.extend(fresh.iter().cloned());
        if self.silent {
            fresh.push("… (more output follows with the result)".to_owned());
        }
        fresh
    }
}

fn cut(line: &str) -> String {
    line.chars().take(LINE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(live: &mut LiveOutput, text: &str) -> Vec<String> {
        let mut lines = text.lines().map(str::to_owned).collect();
        live.end(ToolCallId::NIL, &mut lines);
        lines
    }

    #[test]
    fn names_between_nul_characters_are_lines() {
        let mut live = LiveOutput::default();
        assert_eq!(live.piece(ToolCallId::NIL, 0, "a\0b c\n"), ["a", "b c"]);
        assert_eq!(result(&mut live, "a\nb c\nd"), ["d"]);
    }

    #[test]
    fn whole_lines_are_shown_once() {
        let mut live = LiveOutput::default();
        assert_eq!(live.piece(ToolCallId::NIL, 0, "one\ntw"), ["one"]);
        assert_eq!(live.piece(ToolCallId::NIL, 6, "o\nthree"), ["two"]);
        assert_eq!(
            result(&mut live, "one\ntwo\nthree\n[exit code 1]"),
            ["three", "[exit code 1]"]
        );
        assert_eq!(result(&mut live, "one\n"), ["one"]);
        let said = "10%\r\u{1b}[32m100%\u{1b}[0m\r\n";
        assert_eq!(live.piece(ToolCallId::NIL, 0, said), ["100%"]);
        assert_eq!(result(&mut live, "100%\ndone"), ["done"]);
    }

    #[test]
    fn a_gap_is_marked_and_later_output_comes_with_the_result() {
        let mut live = LiveOutput::default();
        assert_eq!(live.piece(ToolCallId::NIL, 0, "one\nhal"), ["one"]);
        assert_eq!(live.piece(ToolCallId::NIL, 90, "f\nten\n"), ["…", "f", "ten"]);
        assert_eq!(result(&mut live, "one\ntwo"), ["two"]);
    }

    #[test]
    fn i6_live_output_is_bounded_per_call_and_in_number() {
        let mut live = LiveOutput::default();
        let flood = "x\n".repeat(LINES);
        assert_eq!(live.piece(ToolCallId::NIL, 0, &flood).len(), LINES);
        let more = live.piece(ToolCallId::NIL, 2 * LINES as u64, "y\ny\n");
        assert_eq!(more.len(), 1, "{more:?}");
        assert!(live.piece(ToolCallId::NIL, 0, "z\n").is_empty());
        let mut live = LiveOutput::default();
        let long = "x".repeat(LINE_CHARS + 1) + "\n";
        assert_eq!(live.piece(ToolCallId::NIL, 0, &long), ["x".repeat(LINE_CHARS)]);
        assert_eq!(result(&mut live, &long), Vec::<String>::new());
    }
}
