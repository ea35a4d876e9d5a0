//! Parses a model's answer to a question outside of the turn. It is untrusted: an answer in the wrong form is dropped.

use crate::planning::classify::Classified;
use agentd_protocol::Intent;
use serde::Deserialize;

/// The most characters of a title.
const TITLE: usize = 60;
/// The most characters of a summary.
const SUMMARY: usize = 1_200;
/// The most characters of a reason.
const REASON: usize = 200;
/// A longer text is an essay, not a title or a label, and is not parsed.
const LONGEST: usize = 4_096;

/// The title: the first line with content, without markup and surrounding quotes, at most 60 characters.
pub(crate) fn title(text: &str) -> Result<String, String> {
    if text.len() > LONGEST {
        return Err("the model wrote more than a title".to_owned());
    }
    let line = text.lines().map(bare).find(|line| !line.is_empty());
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    let title = words.join(" ");
    let title = cut(&title, TITLE);
    if title.is_empty() || title.starts_with('@') || title.chars().any(char::is_control) {
        return Err("the model wrote nothing that can be a title".to_owned());
    }
    Ok(title)
}

/// A line without the decoration that models put around a title.
fn bare(line: &str) -> &str {
    let marks = [
        '"', '\'', '`', '*', '#', '_', '“', '”', '「', '」', '《', '》', '-', ' ', '\t',
    ];
    let line = line.trim().trim_matches(marks);
    let labelled = ["title:", "Title:", "标题：", "标题:"];
    let line = labelled
        .iter()
        .find_map(|label| line.strip_prefix(label))
        .unwrap_or(line);
    line.trim_matches(marks).trim_end_matches(['.', '。'])
}

/// At most `most` characters, cut between two words if possible.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(1)).collect();
    let whole = head.rfind(' ').filter(|end| *end > head.len() / 2);
    let end = whole.unwrap_or(head.len());
    format!("{}…", head.get(..end).unwrap_or(&head).trim_end())
}

/// The summary, at most `SUMMARY` characters.
pub(crate) fn summary(text: &str) -> Result<String, String> {
    let text = text.trim();
    let shown = |c: &char| !c.is_control() || *c == '\n';
    let text: String = text.chars().filter(shown).take(SUMMARY + 1).collect();
    if text.trim().is_empty() {
        return Err("the model wrote no summary".to_owned());
    }
    Ok(cut(&text, SUMMARY))
}

/// The expected form of an answer about an intent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    label: Intent,
    confidence: f64,
    reason: String,
}

/// Parses one JSON object with a label, a confidence and a reason, optionally in a code fence, and nothing else.
pub(crate) fn intent(text: &str) -> Result<Classified, String> {
    let no_label = || "the model's answer is none of the five labels with confidence and reason".to_owned();
    if text.len() > LONGEST {
        return Err(no_label());
    }
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let json = inside.map_or(text, |inside| inside.strip_prefix("json").unwrap_or(inside));
    let said: Label = serde_json::from_str(json.trim()).map_err(|_| no_label())?;
    let reason = said.reason.trim();
    if !(0.0..=1.0).contains(&said.confidence) || reason.is_empty() {
        return Err(no_label());
    }
    Ok(Classified {
        label: said.label,
        confidence: said.confidence,
        reason: cut(reason, REASON),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_title_is_one_bare_line() {
        let check = |text: &str, expected: &str| assert_eq!(title(text).as_deref(), Ok(expected), "{text:?}");
        check("Fix the parser", "Fix the parser");
        check(
            "\n\n## \"Fix  the\tparser.\"\nBecause it is broken.",
            "Fix the parser",
        );
        check("Title: **Fix the parser**", "Fix the parser");
        check("标题：修复解析器。", "修复解析器");
        check(
            "A very long title that goes on and on and says far more than anybody wants to read in a list",
            "A very long title that goes on and on and says far more…",
        );
        check(&"长".repeat(80), &format!("{}…", "长".repeat(59)));
    }

    #[test]
    fn what_is_no_title_is_refused() {
        for text in ["", " \n \"\" \n", "@ana", "a\u{1b}[31mb", &"x".repeat(5_000)] {
            assert!(title(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_summary_is_bounded_and_keeps_its_lines() {
        assert_eq!(summary(" It was\nfixed.\u{7} "), Ok("It was\nfixed.".to_owned()));
        assert!(summary(" \n").is_err());
        assert_eq!(summary(&"x".repeat(2_000)).unwrap().chars().count(), SUMMARY);
    }

    #[test]
    fn an_intent_is_read_strictly() {
        let good = r#"{"label": "REPO_ANALYSIS", "confidence": 0.85, "reason": "it asks how"}"#;
        let expected = Classified {
            label: Intent::RepoAnalysis,
            confidence: 0.85,
            reason: "it asks how".to_owned(),
        };
        assert_eq!(intent(good), Ok(expected.clone()));
        assert_eq!(intent(&format!("```json\n{good}\n```")), Ok(expected));
        let bad = [
            "CODING_TASK",
            "",
            r#"{"label": "SOMETHING", "confidence": 0.5, "reason": "x"}"#,
            r#"{"label": "CODING_TASK", "confidence": 1.5, "reason": "x"}"#,
            r#"{"label": "CODING_TASK", "confidence": 0.5, "reason": " "}"#,
            r#"{"label": "CODING_TASK", "confidence": 0.5}"#,
            r#"{"label": "CODING_TASK", "confidence": 0.5, "reason": "x", "planning": true}"#,
            r#"Sure: {"label": "CODING_TASK", "confidence": 0.5, "reason": "x"}"#,
        ];
        for text in bad {
            assert!(intent(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_model_writes_a_title_is_short_and_printable(text in "\\PC{0,200}") {
            if let Ok(title) = title(&text) {
                prop_assert!(!title.is_empty() && title.chars().count() <= TITLE);
                prop_assert!(!title.starts_with('@') && !title.chars().any(char::is_control));
            }
            let _ = (summary(&text), intent(&text));
        }
    }
}
