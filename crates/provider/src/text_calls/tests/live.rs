//! What people see while an answer streams.

use super::*;
use crate::reply::ModelEvent;

/// The text that people see of an answer that arrives in pieces of a size: while it streams, and in the end.
fn shown(text: &str, mode: Mode, size: usize) -> (String, String) {
    let mut hold = Hold::new(mode, &tools());
    let mut events = Vec::new();
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(size) {
        let from = events.len();
        events.push(ModelEvent::TextDelta {
            block: 0,
            text: piece.iter().collect(),
        });
        hold.pass(&mut events, from);
    }
    let seen = |events: &[ModelEvent]| -> String {
        let text = events.iter().map(|event| match event {
            ModelEvent::TextDelta { text, .. } => text.as_str(),
            other => panic!("{other:?}"),
        });
        text.collect()
    };
    let live = seen(&events);
    hold.end(lift_text(text, mode).words, &mut events);
    (live, seen(&events))
}

#[track_caller]
fn check(mode: Mode, text: &str, live: &str, all: &str) {
    for size in [1, 2, 3, 7, 1_000] {
        assert_eq!(
            shown(text, mode, size),
            (live.to_owned(), all.to_owned()),
            "{text} by {size}"
        );
    }
}

const LS: &str = r#"{"tool": "Bash", "args": {"command": "ls"}}"#;

#[test]
fn a_call_is_not_shown_as_text() {
    check(Mode::Told, LS, "", "");
    check(Mode::Told, &format!("I look. {LS}"), "I look. ", "I look. ");
    check(
        Mode::Told,
        &format!("I look:\n```json\n{LS}\n```"),
        "I look:\n",
        "I look:\n",
    );
    check(
        Mode::Told,
        &format!("I look.\n<tool_call>{LS}</tool_call>"),
        "I look.\n",
        "I look.\n",
    );
    check(
        Mode::Template,
        &format!("I look.\n<tool_call>{LS}</tool_call>"),
        "I look.\n",
        "I look.\n",
    );
    check(Mode::Template, "{\"name\": \"Bash\", \"arguments\": {}}", "", "");
    check(
        Mode::Template,
        "[TOOL_CALLS] [{\"name\": \"Bash\", \"arguments\": {}}]",
        "",
        "",
    );
    let quoted = format!("So: {LS} was it.\nNow:\n{LS}");
    check(Mode::Told, &quoted, "So: ", &format!("So: {LS} was it.\nNow:"));
}

#[test]
fn other_text_is_shown_at_once_and_all_of_it_in_the_end() {
    let text =
        "A set {1, 2}, [a](b), `x`, <b>, {\"a\": 1} and\n```rust\nfn f() { 1 }\n```\n{ let x = 1; }\nfin";
    for mode in [Mode::Told, Mode::Template, Mode::NativeOnly] {
        check(mode, text, text, text);
    }
    check(Mode::NativeOnly, LS, LS, LS);
    let broken = "Now: {\"tool\": \"Bash\", oops";
    check(Mode::Told, broken, "Now: ", broken);
    check(Mode::Template, broken, broken, broken);
    check(Mode::Told, "<tool", "", "<tool");
    check(Mode::Told, &format!("{LS} lists."), "", &format!("{LS} lists."));
}
