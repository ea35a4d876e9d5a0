//! The model's reasoning, if requested: line by line as it arrives, or complete with the answer.

use crate::render::thoughts_of;
use agentd_protocol::Block;

/// The state of the reasoning shown on the screen.
#[derive(Debug, Default)]
pub(super) struct Thoughts {
    pub(super) wanted: bool,
    /// The incomplete last line.
    open: String,
    /// Whether some of this attempt's reasoning was shown as it arrived.
    shown: bool,
}

impl Thoughts {
    /// The lines that a fragment completes.
    pub(super) fn piece(&mut self, text: &str) -> Vec<String> {
        if !self.wanted {
            return Vec::new();
        }
        self.shown = true;
        self.open.push_str(text);
        let mut lines = Vec::new();
        while let Some((line, rest)) = self.open.split_once('\n') {
            lines.push(line.to_owned());
            self.open = rest.to_owned();
        }
        lines
    }

    /// Text follows: returns the incomplete line as complete.
    pub(super) fn pause(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.open)).filter(|line| !line.trim().is_empty())
    }

    /// The lines of an answer that were not shown yet. Prepares for the next attempt.
    pub(super) fn finish(&mut self, content: &[Block]) -> Vec<String> {
        let rest = self.pause();
        if std::mem::take(&mut self.shown) || !self.wanted {
            return rest.into_iter().collect();
        }
        thoughts_of(content).lines().map(str::to_owned).collect()
    }

    /// The attempt failed.
    pub(super) fn drop_attempt(&mut self) {
        self.open.clear();
        self.shown = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thought(text: &str) -> Vec<Block> {
        let raw = None;
        let text = text.to_owned();
        vec![Block::Thinking { text, raw }, Block::text("answer")]
    }

    #[test]
    fn thoughts_are_shown_once_as_they_come_or_with_the_answer() {
        let mut thoughts = Thoughts {
            wanted: true,
            ..Thoughts::default()
        };
        assert_eq!(thoughts.piece("one\ntw"), ["one"]);
        assert_eq!(thoughts.piece("o"), [""; 0]);
        assert_eq!(thoughts.pause().as_deref(), Some("two"));
        assert_eq!(thoughts.finish(&thought("one\ntwo")), [""; 0]);
        // The next answer is not streamed.
        assert_eq!(thoughts.finish(&thought("three\nfour")), ["three", "four"]);
        thoughts.piece("lost");
        thoughts.drop_attempt();
        assert_eq!(thoughts.finish(&thought("five")), ["five"]);
        thoughts.wanted = false;
        assert_eq!(thoughts.piece("a\nb\n"), [""; 0]);
        assert_eq!(thoughts.finish(&thought("six")), [""; 0]);
    }
}
