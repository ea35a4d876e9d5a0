//! Models that were told to write their calls as JSON.

use super::*;
use serde_json::json;

#[track_caller]
fn call(text: &str, expected: &[(&str, Value)]) {
    calls(Mode::Told, text, "", expected);
}

#[track_caller]
fn unclear(text: &str, problem: &str) {
    asks(Mode::Told, text, Unmade::Unclear, problem);
}

#[track_caller]
fn broken(text: &str, problem: &str) {
    asks(Mode::Told, text, Unmade::Broken, problem);
}

const LS: &str = r#"{"tool": "Bash", "args": {"command": "ls"}}"#;

fn ls() -> [(&'static str, Value); 1] {
    [("Bash", json!({"command": "ls"}))]
}

#[test]
fn a_text_that_is_an_object_is_a_call_in_every_shape_that_models_write() {
    let read = [("Read", json!({"file_path": "a"}))];
    call(r#"{"tool": "Read", "args": {"file_path": "a"}}"#, &read);
    call(
        "\n {\"tool\":\"read\",\"arguments\":{\"file_path\":\"a\"}}\n",
        &read,
    );
    call(r#"{"name": "READ", "parameters": {"file_path": "a"}}"#, &read);
    call(r#"{"name": "Read", "arguments": {"file_path": "a"}}"#, &read);
    call(
        r#"{"tool_name": "Read", "params": "{\"file_path\": \"a\"}"}"#,
        &read,
    );
    call(r#"{"action": "Read", "action_input": {"file_path": "a"}}"#, &read);
    call(r#"{"tool": "Read", "file_path": "a"}"#, &read);
    call(r#"{"tool": "functions.Read", "args": {"file_path": "a"}}"#, &read);
    call(
        r#"{"type": "function", "function": {"name": "Read", "arguments": "{\"file_path\":\"a\"}"}}"#,
        &read,
    );
    call(
        r#"{"tool_call": {"tool": "Read", "args": {"file_path": "a"}}}"#,
        &read,
    );
    call(r#"`{"tool": "Read", "args": {"file_path": "a"}}`"#, &read);
    call(
        r#"<tool_call>{"name": "Read", "arguments": {"file_path": "a"}}</tool_call>"#,
        &read,
    );
    call(
        r#"{"tool": "web_fetch", "args": null}"#,
        &[("WebFetch", json!({}))],
    );
    call(r#"{"tool": "Bash"}"#, &[("Bash", json!({}))]);
    call(
        r#"{"tool": "Bash", "args": "ls -l"}"#,
        &[("Bash", json!("ls -l"))],
    );
    call(
        r#"{"tool": "read_file", "args": {"path": "a"}}"#,
        &[("read_file", json!({"path": "a"}))],
    );
}

#[test]
fn what_is_unambiguous_is_repaired_and_says_so() {
    let check = |text: &str, expected: &[(&str, Value)], repairs: &str| {
        call(text, expected);
        let said = expected.iter().map(|(name, _)| format!("{name}: {repairs}"));
        assert_eq!(
            lift_text(text, Mode::Told).reading.repaired,
            said.collect::<Vec<_>>()
        );
    };
    check(
        r#"{"tool": "Bash", "args": {"command": "ls",},}"#,
        &ls(),
        "removed a trailing comma",
    );
    check(
        "{'tool': 'Bash', 'args': {'command': 'ls'}}",
        &ls(),
        "replaced single quotes",
    );
    check(
        r#"{"tool": "Bash", "args": {"command": "ls"}"#,
        &ls(),
        "added a missing closing brace",
    );
    check(
        "```json\n{\"tool\": \"Bash\", \"args\": {\"command\": \"ls\"}\n```",
        &ls(),
        "added a missing closing brace",
    );
    check(
        "<tool_call>{\"tool\": \"Bash\", \"args\": {\"command\": \"ls\"}</tool_call>",
        &ls(),
        "added a missing closing brace",
    );
    let raw = [(
        "Write",
        json!({"file_path": "a", "content": "x\n```js\ny\n```\n"}),
    )];
    let text = "{\"tool\": \"Write\", \"args\": {\"file_path\": \"a\", \"content\": \"x\n```js\ny\n```\n\"}}";
    check(text, &raw, "escaped control characters in a string");
    check("{tool: \"Bash\", args: {command: \"ls\"}}", &ls(), "quoted a key");
    call(r#"{"tool": "Bash", "args": {"command": "ls"}}}"#, &ls());
    call(LS, &ls());
    assert!(lift_text(LS, Mode::Told).reading.is_plain());
}

#[test]
fn a_call_at_the_end_counts_and_the_words_before_it_stay() {
    let check = |text: &str, words: &str| calls(Mode::Told, text, words, &ls());
    check(&format!("I list the files. {LS}"), "I list the files.");
    check(&format!("I list the files:\n\n{LS}\n"), "I list the files:");
    check(&format!("I list:\n```json\n{LS}\n```"), "I list:");
    check(&format!("I list:\n```tool_call\n{LS}"), "I list:");
    check(&format!("I list.\n<tool_call>\n{LS}\n</tool_call>"), "I list.");
    check(
        &format!("A set {{1, 2}} and {{\"a\": 1}}, then:{LS}"),
        "A set {1, 2} and {\"a\": 1}, then:",
    );
    check(&format!("An open {{ brace. {LS}"), "An open { brace.");
    check(
        &format!("<think>{{\"tool\": \"Read\", \"args\": {{}}}}?</think>\n{LS}"),
        "",
    );
    check(
        &format!("maybe {{\"tool\": \"Read\", \"args\": {{}}}}?</think>{LS}"),
        "",
    );
    check(&format!("I list. {LS}\n[tool result]\nmade up"), "I list.");
    check(
        &format!("I list. {LS}\n[tool result]\nmade up\n{{\"tool\": \"Read\", \"args\": {{}}}}"),
        "I list.",
    );
    check(
        &format!("```rust\nfn f() {{}}\n```\nNow: {LS}"),
        "```rust\nfn f() {}\n```\nNow:",
    );
    let quoted = format!("It was {LS} before.\nNow:\n{LS}");
    check(&quoted, &format!("It was {LS} before.\nNow:"));
}

#[test]
fn a_list_is_several_calls() {
    let two = [
        ("Read", json!({"file_path": "a"})),
        ("Bash", json!({"command": "ls"})),
    ];
    let read = r#"{"tool": "Read", "args": {"file_path": "a"}}"#;
    call(&format!("[{read}, {LS}]"), &two);
    call(&format!(r#"{{"tool_calls": [{read}, {LS}]}}"#), &two);
    call(&format!("{read}\n{LS}"), &two);
    call(&format!("```json\n{read}\n```\n```json\n{LS}\n```"), &two);
    calls(
        Mode::Told,
        &format!("Both.\n<tool_call>\n{read}\n</tool_call>\n<tool_call>{LS}</tool_call>"),
        "Both.",
        &two,
    );
    calls(Mode::Told, &format!("Both: [{read}, {LS}]"), "Both:", &two);
    stays_text(Mode::Told, &format!("[{}]", [read; 65].join(",")));
    stays_text(Mode::Told, &[read; 66].join("\n"));
}

#[test]
fn a_call_that_is_not_at_the_end_is_asked_about() {
    let within = "a call of Bash stands within the answer instead of at its end";
    unclear(&format!("I run it:\n```json\n{LS}\n```\nThat should do."), within);
    unclear(&format!("{LS}\nThis lists the files."), within);
    unclear(&format!("First {LS} and then we see."), within);
    unclear(
        &format!("You write <tool_call>{LS}</tool_call> to list files."),
        within,
    );
    let example = "the words before the call of Bash make it look like an example";
    unclear(&format!("To list files you would write:\n{LS}"), example);
    unclear(&format!("For example:\n```json\n{LS}\n```"), example);
    unclear(&format!("例如:\n{LS}"), example);
}

#[test]
fn a_call_that_cannot_be_read_is_asked_about() {
    broken(
        "{\"tool\": \"Bash\", \"args\": {\"command\": \"echo \"hi\"\"}}",
        "a comma or a closing bracket is missing; perhaps a quote within a string is not escaped (line 1, column 45, at \"hi\\\"\\\"}}\")",
    );
    broken(
        "{\"tool\": \"Write\", \"args\": {\"content\": \"half",
        "the string that begins here does not end (line 1, column 39, at \"\\\"half\")",
    );
    broken(
        "I write.\n{\"tool\": \"Write\", \"args\": {\"n\": 1",
        "the object that begins here does not end (line 2, column 27, at \"{\\\"n\\\": 1\")",
    );
    broken(
        r#"{"tool": "Bash", "args": [1]}"#,
        "the arguments of Bash are not an object",
    );
    broken(r#"{"name": "Bash"}"#, "the call of Bash has no `args`");
    broken(
        r#"{"name": "Bash", "command": "ls"}"#,
        "the call of Bash has no `args`",
    );
    broken(
        "<tool_call>{\"name\": \"Frob\", \"arguments\": {}}</tool_call>",
        "there is no tool \"Frob\"",
    );
    broken(
        "<tool_call>{\"a\": 1}</tool_call>",
        "it does not name a tool and its arguments",
    );
    broken(
        &format!("[{LS}, {{\"name\": \"Bash\"}}]"),
        "the call of Bash has no `args`",
    );
}

#[test]
fn samples_and_other_objects_stay_text() {
    stays_text(
        Mode::Told,
        &format!("You would write:\n```python\nsend({LS})\n```"),
    );
    stays_text(Mode::Told, &format!("```rust\n{LS}\n```"));
    stays_text(Mode::Told, &format!("You would write `{LS}` then."));
    stays_text(Mode::Told, &format!("You would write \"{LS}\" then."));
    stays_text(Mode::Told, &format!("It does send({LS})."));
    stays_text(Mode::Told, &format!("fn f() {{ let x = {LS}; }}"));
    stays_text(
        Mode::Told,
        &format!("```json\n{{\"example\": {LS}, \"n\": 1}}\n```"),
    );
    stays_text(
        Mode::Told,
        r#"I would use {"tool": "Frobnicate", "args": 1} if I had it."#,
    );
    stays_text(Mode::Told, r#"{"name": "Anna", "parameters": {}}"#);
    stays_text(Mode::Told, r#"{"tool": "a hammer", "args": {}}"#);
    stays_text(Mode::Told, "[1, 2]");
    stays_text(Mode::Told, "plain words");
    stays_text(Mode::Told, "Use the <tool_call> tag to call.");
}

#[test]
fn an_answer_that_was_cut_off_or_stopped_has_no_calls() {
    let lift_at = |text: &str, stop| {
        let said = vec![Block::text(text)];
        let lifted = lift(said.clone(), stop, Mode::Told, &tools());
        assert_eq!((lifted.content, lifted.stop), (said, stop));
        lifted.reading.unmade.map(|unmade| unmade.kind)
    };
    let half = "I write.\n{\"tool\": \"Write\", \"args\": {\"content\": \"half";
    assert_eq!(lift_at(half, StopReason::MaxTokens), Some(Unmade::Cut));
    assert_eq!(
        lift_at(LS.trim_end_matches('}'), StopReason::MaxTokens),
        Some(Unmade::Cut)
    );
    assert_eq!(lift_at(LS, StopReason::MaxTokens), Some(Unmade::Cut));
    assert_eq!(lift_at("words that end", StopReason::MaxTokens), None);
    for stop in [
        StopReason::Refusal,
        StopReason::ContentFilter,
        StopReason::ContextWindow,
    ] {
        assert_eq!(lift_at(half, stop), None);
    }
    let said = vec![Block::text(LS)];
    assert_eq!(
        lift(said.clone(), StopReason::EndTurn, Mode::Told, &[]).content,
        said
    );
    let native = vec![
        said[0].clone(),
        Call {
            name: "Read".into(),
            input: json!({}),
        }
        .into_block(1),
    ];
    let lifted = lift(native.clone(), StopReason::ToolUse, Mode::Told, &tools());
    assert_eq!((lifted.content, lifted.stop), (native, StopReason::ToolUse));
}
