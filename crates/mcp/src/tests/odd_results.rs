//! What servers send against the protocol: each item of a result stands alone.

use super::odd_tools::answering;
use super::*;

/// Items that cannot be read as they are, what is shown of them, and what is wrong with them.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn bad_items() -> Vec<(Value, &'static str, &'static str)> {
    vec![
        (json!(null), "[item 2 is null]", "item 2 is null"),
        (json!("bare"), "bare", "item 2 is a bare string"),
        (json!(5), "5", "item 2 is not an object"),
        (json!(true), "true", "item 2 is not an object"),
        (json!(["x"]), "[\"x\"]", "item 2 is not an object"),
        (json!({}), "[item 2 has no `type`]", "item 2 has no `type`"),
        (
            json!({ "text": "loose" }),
            "loose",
            "item 2 has no `type`; only its text is shown",
        ),
        (
            json!({ "type": null, "text": "loose" }),
            "loose",
            "item 2 has a `type` that is not a string; only its text is shown",
        ),
        (
            json!({ "type": 1 }),
            "[item 2 has a `type`",
            "item 2 has a `type` that is not a string",
        ),
        (
            json!({ "type": "video", "data": "AAAA" }),
            "[item 2 has the unknown type \"video\"]",
            "item 2 has the unknown type \"video\"",
        ),
        (
            json!({ "type": "markdown", "text": "# T" }),
            "# T",
            "item 2 has the unknown type \"markdown\"; only its text is shown",
        ),
        (json!({ "type": "\u{1b}[2Jx" }), "unknown type", "unknown type"),
        (
            json!({ "type": "text" }),
            "[item 2 is a text without `text`]",
            "item 2 is a text without `text`",
        ),
        (
            json!({ "type": "text", "text": null }),
            "[item 2 is a text",
            "item 2 is a text without `text`",
        ),
        (
            json!({ "type": "text", "text": { "a": 1 } }),
            "{\"a\":1}",
            "item 2 has a `text` that is not a string",
        ),
        (
            json!({ "type": "text", "text": 4 }),
            "4",
            "item 2 has a `text` that is not a string",
        ),
        (
            json!({ "type": "image" }),
            "[item 2 is of the type image",
            "has no `data`",
        ),
        (
            json!({ "type": "image", "data": null, "mimeType": "image/png" }),
            "[item 2",
            "has no `data`",
        ),
        (
            json!({ "type": "audio", "data": 5 }),
            "[item 2 is of the type audio",
            "has no `data`",
        ),
        (
            json!({ "type": "resource" }),
            "[item 2 is a resource without",
            "without `resource`",
        ),
        (
            json!({ "type": "resource", "resource": null }),
            "[item 2 is a resource without",
            "without `resource`",
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "a:b" } }),
            "[resource a:b]",
            "neither `text` nor `blob`",
        ),
        (
            json!({ "type": "resource_link", "name": "x" }),
            "[item 2 is a link without `uri`]",
            "is a link without `uri`",
        ),
    ]
}

/// Items that break the protocol without harm.
fn odd_items() -> Vec<(Value, &'static str)> {
    vec![
        (json!({ "type": "text", "text": "x", "annotations": "none" }), "x"),
        (json!({ "type": "text", "text": "x", "_meta": 1 }), "x"),
        (
            json!({ "type": "image", "data": "AAAA" }),
            "[image image/*, about 3 bytes",
        ),
        (json!({ "type": "resource_link", "uri": "a:b" }), "[resource a:b]"),
        (
            json!({ "type": "resource", "resource": { "text": "t" } }),
            "[resource without a URI]\nt",
        ),
    ]
}

async fn called(reply: Value) -> ToolOutcome {
    echo(&answering("tools/call", reply)).await.outcome
}

fn warnings(outcome: &ToolOutcome) -> String {
    let details = outcome.details.as_ref().unwrap();
    details
        .get("warnings")
        .map(Value::to_string)
        .unwrap_or_default()
        .replace("\\\"", "\"")
}

fn between(item: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": "before" }, item, { "type": "text", "text": "after" }] })
}

#[tokio::test(start_paused = true)]
async fn an_item_that_cannot_be_read_takes_no_other_with_it() {
    for (item, shown, why) in bad_items() {
        let outcome = called(between(&item)).await;
        let text = &outcome.llm_text;
        assert_eq!(outcome.status, ToolStatus::Ok, "{item}: {text}");
        assert!(
            text.starts_with("before\n") && text.ends_with("\nafter"),
            "{item}: {text}"
        );
        assert!(text.contains(shown), "{item}: {text}");
        assert!(warnings(&outcome).contains(why), "{item}: {}", warnings(&outcome));
        assert!(!text.contains('\u{1b}'), "{item}: {text}");
    }
    for (item, shown) in odd_items() {
        let outcome = called(between(&item)).await;
        assert!(outcome.llm_text.contains(shown), "{item}: {}", outcome.llm_text);
        assert_eq!(warnings(&outcome), "", "{item}");
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn a_result_of_any_form_is_shown() {
    use ToolStatus::{Error, Ok};
    let text = |text: &str| json!({ "type": "text", "text": text });
    for (reply, status, shown, why) in [
        (json!({ "content": null }), Ok, "without output", ""),
        (
            json!({ "content": null, "structuredContent": { "a": 1 } }),
            Ok,
            "{\"a\":1}",
            "",
        ),
        (
            json!({ "content": [null], "structuredContent": [2] }),
            Ok,
            "[2]",
            "item 1 is null",
        ),
        (
            json!({ "content": "words" }),
            Ok,
            "words",
            "`content` is not a list",
        ),
        (
            json!({ "content": text("one") }),
            Ok,
            "one",
            "`content` is not a list",
        ),
        (json!({ "content": 7 }), Ok, "7", "`content` is not a list"),
        (
            json!({ "output": "x" }),
            Ok,
            "{\"output\":\"x\"}",
            "the result has no `content`",
        ),
        (
            json!({ "toolResult": 4 }),
            Ok,
            "{\"toolResult\":4}",
            "the result has no `content`",
        ),
        (json!({}), Ok, "without output", ""),
        (json!({ "_meta": {} }), Ok, "without output", ""),
        (json!(null), Ok, "without output", "the result is null"),
        (json!("words"), Ok, "words", "the result is not an object"),
        (
            json!([text("a"), text("b")]),
            Ok,
            "a\nb",
            "a list instead of an object",
        ),
        (json!({ "content": [text("a")], "isError": null }), Ok, "a", ""),
        (
            json!({ "content": [text("a")], "isError": "false" }),
            Ok,
            "a",
            "`isError`",
        ),
        (
            json!({ "content": [text("a")], "isError": 0 }),
            Ok,
            "a",
            "`isError`",
        ),
        (
            json!({ "content": [text("a")], "isError": "true" }),
            Error,
            "a",
            "`isError`",
        ),
        (
            json!({ "content": [text("a")], "isError": 1 }),
            Error,
            "a",
            "`isError`",
        ),
        (
            json!({ "content": null, "isError": true }),
            Error,
            "failed without a message",
            "",
        ),
        (
            json!({ "content": [text("a")], "resultType": "input_required" }),
            Error,
            "the call is not complete",
            "its kind",
        ),
        (
            json!({ "content": [text("a")], "resultType": "complete" }),
            Ok,
            "a",
            "",
        ),
    ] {
        let outcome = called(reply.clone()).await;
        assert_eq!(outcome.status, status, "{reply}: {}", outcome.llm_text);
        assert!(outcome.llm_text.contains(shown), "{reply}: {}", outcome.llm_text);
        assert!(!outcome.llm_text.contains("Check the arguments"), "{reply}");
        let found = warnings(&outcome);
        assert!(
            found.contains(why) && found.is_empty() == why.is_empty(),
            "{reply}: {found}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn i6_the_marks_of_a_result_have_a_limit() {
    let outcome = called(json!({ "content": vec![Value::Null; 100] })).await;
    assert_eq!(outcome.llm_text.lines().count(), 21, "{}", outcome.llm_text);
    assert!(
        outcome
            .llm_text
            .ends_with("[80 more items of the result could not be read]")
    );
}

#[tokio::test(start_paused = true)]
async fn texts_are_reduced_to_what_a_person_would_see_and_kept_whole_beside() {
    for (said, seen, lost) in [
        ("\u{1b}[31mred\u{1b}[0m", "red", false),
        ("\u{1b}]0;title\u{7}text", "text", false),
        ("10%\r20%\rdone", "done", true),
        ("a\0b", "a\nb", true),
        ("dos\r\nlines\r\n", "dos\nlines\n", false),
        ("a\u{200b}b", "a\\u{200b}b", false),
    ] {
        let reply = json!({ "content": [{ "type": "text", "text": said }] });
        let answer = echo(&answering("tools/call", reply)).await;
        assert_eq!(answer.outcome.llm_text, seen, "{said:?}");
        assert_eq!(answer.whole.is_some(), lost, "{said:?}");
        assert_eq!(answer.outcome.truncated.is_some(), lost, "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_refusal_of_the_arguments_blames_them() {
    for (code, blamed) in [(-32602, true), (-32603, false), (-32601, false), (500, false)] {
        let fake = Fake::new(move |_, message| {
            (message["method"] == "tools/call").then(|| {
                let error = json!({ "code": code, "message": "no" });
                vec![Act::Say(
                    json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }),
                )]
            })
        });
        let text = echo(&pool(&fake, vec![spec("fake")])).await.outcome.llm_text;
        assert_eq!(text.contains("Check the arguments"), blamed, "{text}");
    }
}
