//! The intent guard: detects that the model announces an action without taking it.

use regex::RegexSet;
use std::sync::OnceLock;

/// How many characters at the end of a text are searched: an announcement comes last.
const TAIL_CHARS: usize = 400;

/// The compiled patterns of a [`crate::Config`], built on first use. Always construct it with `Default`.
#[derive(Debug, Clone, Default)]
pub struct IntentMatcher(OnceLock<RegexSet>);

// The cache is not part of a configuration's value.
impl PartialEq for IntentMatcher {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for IntentMatcher {}

impl IntentMatcher {
    /// Whether the end of a text announces an action. Invalid patterns are skipped: the settings have already rejected
    /// them.
    pub(crate) fn announces(&self, patterns: &[String], text: &str) -> bool {
        let set = self.0.get_or_init(|| compile(patterns));
        let text = text.trim();
        let start = text
            .char_indices()
            .rev()
            .nth(TAIL_CHARS - 1)
            .map_or(0, |(at, _)| at);
        set.is_match(text.get(start..).unwrap_or_default())
    }
}

fn compile(patterns: &[String]) -> RegexSet {
    let good = patterns
        .iter()
        .filter(|pattern| regex::Regex::new(pattern).is_ok());
    RegexSet::new(good).unwrap_or_else(|_| RegexSet::empty())
}

/// Whether a text is written in Chinese, Japanese or Korean characters, at least in part.
pub(crate) fn is_cjk(text: &str) -> bool {
    text.chars().any(|char| {
        matches!(char,
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
            | '\u{ff00}'..='\u{ffef}')
    })
}

#[cfg(test)]
pub(crate) fn sample_patterns() -> Vec<String> {
    [
        r":\s*$",
        r"：\s*$",
        r"\.\.\.\s*$",
        r"让我(先|来|开始|查看|检查|修复)",
        r"(?i)let me (first|start|check|look|fix)",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, announced: bool) {
        let matcher = IntentMatcher::default();
        assert_eq!(matcher.announces(&sample_patterns(), text), announced, "{text:?}");
    }

    #[test]
    fn an_announcement_at_the_end_is_seen_in_both_languages() {
        check("Now I run the tests:", true);
        check("One moment...  \n", true);
        check("I see. Let me check the log.", true);
        check("好的，让我先查看文件。", true);
        check("步骤如下：", true);
    }

    #[test]
    fn a_finished_answer_announces_nothing() {
        check("All tests pass.", false);
        check("", false);
        check("Use `a: b` for that.", false);
        check(
            &format!(
                "Let me check. {}",
                "It was the cache, and it is mended now. ".repeat(12)
            ),
            false,
        );
    }

    #[test]
    fn a_bad_pattern_takes_nothing_from_the_good_ones() {
        let matcher = IntentMatcher::default();
        assert!(matcher.announces(&["(".to_owned(), "soon$".to_owned()], "soon"));
    }

    #[test]
    fn cjk_is_told_from_latin() {
        assert!(is_cjk("ok, 好") && !is_cjk("très bien: done"));
    }
}
