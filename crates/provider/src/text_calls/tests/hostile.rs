//! Text that no model should write.

use super::*;
use proptest::prelude::*;

const MODES: [Mode; 3] = [Mode::Told, Mode::Template, Mode::NativeOnly];

/// With one pass over the text for each bracket, this test would not end.
#[test]
fn i6_hostile_text_is_searched_in_linear_time() {
    for unit in [
        "{",
        "[{",
        "{\"",
        "{\"tool\":\"Read\",",
        "```json\n{",
        "```\n",
        "{}",
        "{\"a\":",
        "`",
        "[",
        "[ ",
        "</think>",
        "<tool_call>",
        "<tool_call>{",
        "<tool_call>{\"name\":\"Read\",",
        "<function=",
        "<function=Read>",
        "[TOOL_CALLS]",
        "<function=Read><parameter=a>",
        "[TOOL_CALLS]Read{",
        "{'",
        "{\"tool\":\"Read\"} x ",
        "x {\"tool\":'} ",
        "\n```\n{}",
    ] {
        for mode in MODES {
            let text = unit.repeat((1 << 19) / unit.len());
            assert!(lift_text(&text, mode).content.len() <= 2);
            let mut hold = Hold::new(mode, &tools());
            let mut events = Vec::new();
            for piece in text.as_bytes().chunks(1 << 12) {
                let from = events.len();
                let text = String::from_utf8_lossy(piece).into_owned();
                events.push(crate::reply::ModelEvent::TextDelta { block: 0, text });
                hold.pass(&mut events, from);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_search_panic_or_lose_words(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("{".to_owned()), Just("}".to_owned()), Just("[".to_owned()), Just("]".to_owned()),
                Just("\"".to_owned()), Just("\\".to_owned()), Just("```".to_owned()), Just("```json\n".to_owned()),
                Just("\n".to_owned()), Just("\"tool\":".to_owned()), Just("\"Read\",".to_owned()),
                Just("\"args\":{}".to_owned()), Just("</think>".to_owned()), Just("<tool_call>".to_owned()),
                Just(r#"{"tool":"Read","args":{}}"#.to_owned()), Just("<function=Read>".to_owned()),
                Just("<parameter=a>".to_owned()), Just("</parameter>".to_owned()), Just("[TOOL_CALLS]".to_owned()),
                Just("[tool result]".to_owned()), Just("<|im_end|>".to_owned()), ".{0,6}",
            ],
            0..40,
        ),
        max_tokens: bool,
    ) {
        let text = pieces.concat();
        let stop = if max_tokens { StopReason::MaxTokens } else { StopReason::EndTurn };
        for mode in MODES {
            let lifted = lift(vec![Block::text(&text)], stop, mode, &tools());
            let calls = lifted.content.iter().filter(|block| matches!(block, Block::ToolUse { .. })).count();
            prop_assert_eq!(lifted.stop == StopReason::ToolUse, calls > 0);
            prop_assert!(calls == 0 || lifted.reading.unmade.is_none());
            if calls == 0 {
                prop_assert_eq!(lifted.content, [Block::text(&text)]);
            } else {
                prop_assert!(mode != Mode::NativeOnly && !max_tokens);
            }
        }
    }
}
