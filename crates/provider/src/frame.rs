//! One frame of a stream, or a whole answer, as JSON.

use agentd_lenient_json::{Ending, Repair, keep_halves, value_at};
use serde_json::{Error, Value};

/// A frame, and whether it holds halves of characters that must be joined.
#[derive(Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) value: Value,
    pub(crate) halves: bool,
}

/// Parses a frame. Gateways that cut an answer anywhere leave halves of characters; some servers write control
/// characters as they are. Any other mistake means that the frame is damaged.
pub(crate) fn parse(text: &str) -> Result<Frame, Error> {
    let error = match serde_json::from_str(text) {
        Ok(value) => {
            return Ok(Frame { value, halves: false });
        }
        Err(error) => error,
    };
    let kept = keep_halves(text);
    let halves = kept.is_some();
    let text = kept.as_deref().unwrap_or(text);
    if halves && let Ok(value) = serde_json::from_str(text) {
        return Ok(Frame { value, halves });
    }
    let found = value_at(text, 0, Ending::Cut).ok();
    let found = found.filter(|found| {
        found.repairs.as_slice() == [Repair::ControlCharacter]
            && text.get(found.end..).is_some_and(|rest| rest.trim().is_empty())
    });
    found
        .map(|found| Frame {
            value: found.value,
            halves,
        })
        .ok_or(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_halves_and_control_characters_are_forgiven() {
        let check = |text: &str, expected: Option<(Value, bool)>| {
            let frame = parse(text).ok().map(|frame| (frame.value, frame.halves));
            assert_eq!(frame, expected, "{text}");
        };
        check(r#"{"a": "\ud83d\ude00"}"#, Some((json!({"a": "😀"}), false)));
        check("{\"a\": \"x\ty\"}", Some((json!({"a": "x\ty"}), false)));
        check(r#"{"a": "\ud83d"}"#, Some((json!({"a": "\u{10f83d}"}), true)));
        check(
            "{\"a\": \"\\ude00\t\"}",
            Some((json!({"a": "\u{10fe00}\t"}), true)),
        );
        check("{\"a\": 1,}", None);
        check("{\"a\": \"x\ty\"", None);
        check("{\"a\": \"x\ty\"} {", None);
        check("{'a': 1}", None);
    }
}
