//! Selects the parts of a long output that are about given words. Pure.

use agentd_protocol::Block;
use std::collections::BTreeSet;

/// Shorter words are not specific enough.
const MIN_CHARS: usize = 4;
/// The most words to search for.
const MAX_WORDS: usize = 64;
/// Lines kept before and after a line with such a word.
const AROUND: usize = 3;
/// Characters kept of a line.
const LINE_CHARS: usize = 300;
/// Words that are too common to search for.
const STOP: [&str; 36] = [
    "about", "after", "again", "also", "been", "before", "both", "could", "does", "each", "every", "file",
    "from", "have", "into", "just", "like", "make", "more", "must", "need", "only", "please", "should",
    "some", "that", "their", "then", "there", "these", "they", "this", "what", "when", "with", "your",
];

/// The words of a text that may reveal its topic, in lower case.
pub(crate) fn keywords(content: &[Block]) -> Vec<String> {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let mut seen = BTreeSet::new();
    let words = texts.flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words
        .filter(|word| word.chars().nth(MIN_CHARS - 1).is_some())
        .map(str::to_lowercase)
        .filter(|word| !STOP.contains(&word.as_str()) && seen.insert(word.clone()))
        .take(MAX_WORDS)
        .collect()
}

/// The lines of a text around those that contain one of the words, with their numbers, in at most `max_bytes`; empty if
/// no line does.
#[must_use]
pub fn windows(text: &str, words: &[String], max_bytes: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::new();
    // The line after the last one shown.
    let mut next = 0;
    for at in 0..lines.len() {
        if !lines.get(at).is_some_and(|line| is_about(line, words)) {
            continue;
        }
        let (from, upto) = (
            at.saturating_sub(AROUND).max(next),
            (at + AROUND + 1).min(lines.len()),
        );
        let mut window = String::new();
        if from > next && next > 0 {
            window.push_str("...\n");
        }
        for number in from..upto {
            let line: String = lines
                .get(number)
                .map_or("", |line| *line)
                .chars()
                .take(LINE_CHARS)
                .collect();
            window.push_str(&format!("{}\t{line}\n", number + 1));
        }
        if shown.len() + window.len() > max_bytes {
            break;
        }
        shown.push_str(&window);
        next = next.max(upto);
    }
    shown
}

fn is_about(line: &str, words: &[String]) -> bool {
    let line = line.to_lowercase();
    words.iter().any(|word| line.contains(word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        keywords(&[Block::text(text)])
    }

    #[test]
    fn significant_words_are_kept_once() {
        assert_eq!(
            words("Please fix the parse_header test: what does Parse_Header do with über?"),
            ["parse_header", "test", "über"]
        );
        assert_eq!(words("a an the"), Vec::<String>::new());
    }

    #[test]
    fn lines_around_a_word_are_shown_with_their_numbers_and_never_twice() {
        let text: String = (1..=30)
            .map(|n| {
                if [10, 12, 25].contains(&n) {
                    format!("needle {n}\n")
                } else {
                    format!("hay {n}\n")
                }
            })
            .collect();
        let shown = windows(&text, &words("find the Needle"), 10_000);
        let numbers: Vec<&str> = shown
            .lines()
            .map(|line| line.split('\t').next().unwrap())
            .collect();
        let expected: Vec<String> = (7..=15)
            .map(|n| n.to_string())
            .chain(["...".to_owned()])
            .chain((22..=28).map(|n| n.to_string()))
            .collect();
        assert_eq!(numbers, expected);
        assert_eq!(windows(&text, &words("nothing here"), 10_000), "");
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let text = "needle\n".repeat(100);
        let first = windows(&text, &words("needle"), 10_000);
        assert!(first.len() <= 10_000);
        let one = windows(&text, &words("needle"), 60);
        assert!(!one.is_empty() && one.len() <= 60, "{one:?}");
        assert_eq!(windows(&text, &words("needle"), 10), "");
    }
}
