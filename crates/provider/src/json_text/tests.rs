use super::*;
use crate::body::{EncodedHistory, Params, Prompt, RequestBody, encode_prefix, encode_suffix};
use crate::script::Script;
use crate::spec::ModelSpec;
use agentd_protocol::{StopReason, ToolProtocol};
use agentd_settings::Dialect;
use proptest::prelude::*;
use std::sync::Arc;

fn tools() -> Vec<String> {
    ["Read", "Bash", "WebFetch"].map(str::to_owned).to_vec()
}

fn use_of(number: u32, name: &str, input: Value) -> Block {
    Block::ToolUse {
        id: format!("call_{number}"),
        name: name.into(),
        input,
    }
}

/// Checks that the text is kept, followed by these calls.
fn check(text: &str, calls: &[(&str, Value)]) {
    let said = vec![Block::text(text)];
    let mut content = said.clone();
    let numbered = (1..).zip(calls);
    content.extend(numbered.map(|(number, (name, input))| use_of(number, name, input.clone())));
    let stop = if calls.is_empty() {
        StopReason::EndTurn
    } else {
        StopReason::ToolUse
    };
    assert_eq!(
        lift(said, StopReason::EndTurn, &tools()),
        (content, stop),
        "{text}"
    );
}

#[test]
fn a_text_that_is_an_object_is_a_call_in_every_shape_that_models_write() {
    let read = [("Read", json!({"file_path": "a"}))];
    check(r#"{"tool": "Read", "args": {"file_path": "a"}}"#, &read);
    check(
        "\n {\"tool\":\"read\",\"arguments\":{\"file_path\":\"a\"}}\n",
        &read,
    );
    check(r#"{"name": "READ", "parameters": {"file_path": "a"}}"#, &read);
    check(
        r#"{"tool_name": "Read", "params": "{\"file_path\": \"a\"}"}"#,
        &read,
    );
    check(r#"{"action": "Read", "action_input": {"file_path": "a"}}"#, &read);
    check(r#"{"tool": "Read", "file_path": "a"}"#, &read);
    check(
        r#"{"type": "function", "function": {"name": "Read", "arguments": "{\"file_path\":\"a\"}"}}"#,
        &read,
    );
    check(
        r#"{"tool_call": {"tool": "Read", "args": {"file_path": "a"}}}"#,
        &read,
    );
    check(r#"`{"tool": "Read", "args": {"file_path": "a"}}`"#, &read);
    check(
        r#"{"tool": "web_fetch", "args": null}"#,
        &[("WebFetch", json!({}))],
    );
    check(r#"{"tool": "Bash"}"#, &[("Bash", json!({}))]);
    check(
        r#"{"tool": "Bash", "args": "ls -l"}"#,
        &[("Bash", json!("ls -l"))],
    );
}

#[test]
fn a_list_is_several_calls() {
    let two = [
        ("Read", json!({"file_path": "a"})),
        ("Bash", json!({"command": "ls"})),
    ];
    let (read, bash) = (
        r#"{"tool": "Read", "args": {"file_path": "a"}}"#,
        r#"{"tool": "Bash", "args": {"command": "ls"}}"#,
    );
    check(&format!("[{read}, {bash}]"), &two);
    check(&format!(r#"{{"tool_calls": [{read}, {bash}]}}"#), &two);
    check(&format!("{read}\n{bash}"), &two);
    check(
        &format!("I do both.\n<tool_call>\n{read}\n</tool_call>\n<tool_call>{bash}</tool_call>"),
        &two,
    );
    check(&format!("Both: [{read}, {bash}]"), &two);
    check(&format!("[{}]", [read; 65].join(",")), &[]);
    check(&[read; 65].join("\n"), &[]);
}

#[test]
fn a_fenced_block_of_data_is_a_call() {
    let bash = [("Bash", json!({"command": "echo '}{'"}))];
    let call = r#"{"tool": "Bash", "args": {"command": "echo '}{'"}}"#;
    check(
        &format!("I run it:\n```json\n{call}\n```\nThat should do."),
        &bash,
    );
    check(&format!("```\n{call}\n```"), &bash);
    check(&format!("```json {call} ```"), &bash);
    check(&format!("Now:\n```tool_call\n{call}"), &bash);
    check(&format!("~\n````json\n{call}\n````"), &bash);
    let unknown = r#"{"tool": "read_file", "args": {}}"#;
    check(&format!("```json\n{unknown}\n```"), &[("read_file", json!({}))]);
}

#[test]
fn the_first_object_among_words_that_names_an_offered_tool_is_a_call() {
    let bash = [("Bash", json!({"command": "ls"}))];
    let call = r#"{"tool": "Bash", "args": {"command": "ls"}}"#;
    check(&format!("I list the files. {call}"), &bash);
    check(
        &format!("A set {{1, 2}} and {{\"a\": 1}}, then:{call} [tool result] made up"),
        &bash,
    );
    check(&format!("An open {{ brace. {call}"), &bash);
    check(
        &format!("<think>{{\"tool\": \"Read\", \"args\": {{}}}}?</think>\n{call}"),
        &bash,
    );
    check(
        &format!("maybe {{\"tool\": \"Read\", \"args\": {{}}}}?</think>{call}"),
        &bash,
    );
}

#[test]
fn samples_and_other_objects_are_no_calls() {
    let call = r#"{"tool": "Bash", "args": {"command": "ls"}}"#;
    check(&format!("You would write:\n```python\nsend({call})\n```"), &[]);
    check(&format!("```rust\n{call}\n```"), &[]);
    check(&format!("You would write `{call}` then."), &[]);
    check(&format!("It does send({call})."), &[]);
    check(&format!("fn f() {{ let x = {call}; }}"), &[]);
    check(&format!("```json\n{{\"example\": {call}, \"n\": 1}}\n```"), &[]);
    check(
        r#"I would use {"tool": "Frobnicate", "args": {}} if I had it."#,
        &[],
    );
    check(r#"{"name": "Bash"}"#, &[]);
    check(r#"{"name": "Anna", "parameters": {}}"#, &[]);
    check(r#"{"tool": "Bash", "args": [1]}"#, &[]);
    check(r#"{"tool": "Bash", "args": {"#, &[]);
    check("[1, 2]", &[]);
    check("plain words", &[]);
}

#[test]
fn an_unknown_tool_in_exactly_the_told_shape_is_a_call_so_that_the_model_hears_of_it() {
    check(
        r#"{"tool": "read_file", "args": {"path": "a"}}"#,
        &[("read_file", json!({"path": "a"}))],
    );
    check(r#"{"tool": "a hammer", "args": {}}"#, &[]);
}

#[test]
fn half_an_answer_and_an_answer_without_tools_are_left_alone() {
    let said = vec![Block::text(r#"{"tool": "Bash", "args": {}}"#)];
    for stop in [
        StopReason::MaxTokens,
        StopReason::Refusal,
        StopReason::ContextWindow,
    ] {
        assert_eq!(lift(said.clone(), stop, &tools()), (said.clone(), stop));
    }
    assert_eq!(
        lift(said.clone(), StopReason::EndTurn, &[]),
        (said.clone(), StopReason::EndTurn)
    );
    let native = vec![said[0].clone(), use_of(1, "Read", json!({}))];
    assert_eq!(
        lift(native.clone(), StopReason::ToolUse, &tools()),
        (native, StopReason::ToolUse)
    );
}

#[test]
fn the_prompt_lists_the_tools_and_is_the_same_each_time() {
    let tools = [ToolDef {
        name: "Read".into(),
        description: "Reads a file.\n".into(),
        schema: json!({"type": "object", "properties": {"file_path": {"type": "string"}}}).into(),
    }];
    let prompt = system("You are an agent.", &tools);
    let expected = format!(
        "You are an agent.\n\n{RULES}\n\n## Read\nReads a file.\nJSON Schema of args: \
         {{\"type\":\"object\",\"properties\":{{\"file_path\":{{\"type\":\"string\"}}}}}}"
    );
    assert_eq!(prompt, expected);
    assert_eq!(system("You are an agent.", &tools), prompt);
    assert_eq!(system("You are an agent.", &[]), "You are an agent.");
}

fn project_one(role: Role, content: &[Block]) -> Vec<Block> {
    let content = content.to_vec();
    project(&Message { role, content }).content
}

#[test]
fn a_call_is_read_again_without_the_words_around_it() {
    let thinking = Block::Thinking {
        text: "hm".into(),
        raw: None,
    };
    let read = use_of(1, "Read", json!({"file_path": "a"}));
    let bash = use_of(2, "Bash", json!("not json"));
    assert_eq!(
        project_one(
            Role::Assistant,
            &[thinking.clone(), Block::text("I read."), read.clone()]
        ),
        [Block::text(r#"{"tool":"Read","args":{"file_path":"a"}}"#)]
    );
    assert_eq!(
        project_one(Role::Assistant, &[read, bash]),
        [Block::text(
            r#"[{"tool":"Read","args":{"file_path":"a"}},{"tool":"Bash","args":"not json"}]"#
        )]
    );
    assert_eq!(
        project_one(Role::Assistant, &[thinking.clone(), Block::text("Done.")]),
        [Block::text("Done.")]
    );
    assert_eq!(project_one(Role::Assistant, &[thinking, Block::text(" ")]), []);
}

#[test]
fn results_are_read_as_one_users_text() {
    let result = |content: &str, is_error| Block::ToolResult {
        tool_use_id: "t".into(),
        content: content.into(),
        is_error,
    };
    assert_eq!(
        project_one(Role::User, &[result("42", false), Block::text("and now?")]),
        [Block::text("[tool result]\n42\n\nand now?")]
    );
    assert_eq!(
        project_one(Role::User, &[result("no such file", true), result("", false)]),
        [Block::text(
            "[tool error 1 of 2]\nno such file\n\n[tool result 2 of 2]\n(no output)"
        )]
    );
}

#[test]
fn what_is_projected_is_found_again() {
    let calls = [
        use_of(1, "Read", json!({"file_path": "a\n```\"{"})),
        use_of(2, "Bash", json!({})),
    ];
    for count in 1..=calls.len() {
        let said = project_one(Role::Assistant, &calls[..count]);
        let (content, stop) = lift(said, StopReason::EndTurn, &tools());
        assert_eq!((&content[1..], stop), (&calls[..count], StopReason::ToolUse));
    }
}

/// Skipping brackets of one kind must not take quadratic time: a million of them take only a moment.
#[test]
fn i6_hostile_text_is_searched_in_linear_time() {
    let spent = |unit: &str, length: usize| {
        let said = vec![Block::text(unit.repeat(length / unit.len()))];
        let started = std::time::Instant::now();
        let lifted = lift(said.clone(), StopReason::EndTurn, &tools());
        let spent = started.elapsed();
        assert_eq!(lifted, (said, StopReason::EndTurn), "{unit}");
        spent
    };
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
    ] {
        // Sixteen times the input: one pass per bracket would take 256 times as long.
        let (some, more) = (spent(unit, 1 << 16), spent(unit, 1 << 20));
        let most = some * 64 + std::time::Duration::from_secs(2);
        assert!(more < most, "{unit}: {some:?}, {more:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_search_panic_or_change_the_text(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("{".to_owned()), Just("}".to_owned()), Just("[".to_owned()), Just("]".to_owned()),
                Just("\"".to_owned()), Just("\\".to_owned()), Just("```".to_owned()), Just("```json\n".to_owned()),
                Just("\n".to_owned()), Just("\"tool\":".to_owned()), Just("\"Read\",".to_owned()),
                Just("\"args\":{}".to_owned()), Just("</think>".to_owned()), Just("<tool_call>".to_owned()),
                Just(r#"{"tool":"Read","args":{}}"#.to_owned()), ".{0,6}",
            ],
            0..40,
        ),
    ) {
        let said = Block::text(pieces.concat());
        let (content, stop) = lift(vec![said.clone()], StopReason::EndTurn, &tools());
        prop_assert_eq!(&content[0], &said);
        prop_assert_eq!(stop == StopReason::ToolUse, content.len() > 1);
    }

    #[test]
    fn every_call_survives_being_said_and_read(
        name in prop_oneof![Just("Read"), Just("Bash")],
        args in proptest::collection::btree_map("[a-z_]{1,8}", ".{0,40}", 0..4),
    ) {
        let call = use_of(1, name, json!(args));
        let said = project(&Message { role: Role::Assistant, content: vec![call.clone()] }).content;
        prop_assert_eq!(lift(said.clone(), StopReason::EndTurn, &tools()).0, [said, vec![call]].concat());
    }
}

/// The roles of a conversation as a server of this dialect reads it.
fn roles(dialect: Dialect, messages: &[Arc<Message>]) -> Vec<String> {
    let spec = ModelSpec {
        dialect,
        tool_protocol: ToolProtocol::JsonText,
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    };
    let mut history = EncodedHistory::new();
    // Message by message, as in a session.
    for count in 1..=messages.len() {
        history.extend(&spec, 1, &messages[..count]);
    }
    let prefix = encode_prefix(&spec, &Prompt::default(), &[], &Params::default());
    let suffix = encode_suffix(&spec, &[], &Params::default());
    let body = RequestBody::new(prefix, &history, suffix).to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let all = ["/messages", "/contents"]
        .iter()
        .find_map(|at| body.pointer(at)?.as_array());
    let role = |message: &Value| message["role"].as_str().unwrap().to_owned();
    all.unwrap().iter().map(role).collect()
}

#[test]
fn the_roles_alternate_whatever_was_said() {
    let message = |role, content| Arc::new(Message { role, content });
    let result = Block::ToolResult {
        tool_use_id: "t".into(),
        content: "42".into(),
        is_error: false,
    };
    let silence = vec![Block::Thinking {
        text: "hm".into(),
        raw: None,
    }];
    let messages = [
        message(Role::User, vec![Block::text("go")]),
        message(Role::User, vec![Block::text("now")]),
        message(
            Role::Assistant,
            vec![Block::text("I read."), use_of(1, "Read", json!({}))],
        ),
        message(Role::User, vec![result.clone(), Block::text("hurry")]),
        message(Role::User, vec![Block::text("please")]),
        message(Role::Assistant, silence),
        message(Role::User, vec![Block::text("well?")]),
        message(
            Role::Assistant,
            vec![use_of(1, "Bash", json!({})), use_of(2, "Bash", json!({}))],
        ),
        message(Role::User, vec![result.clone(), result]),
        message(Role::Assistant, vec![Block::text("Done.")]),
    ];
    for dialect in [Dialect::OpenaiChat, Dialect::LlamaCompletion, Dialect::Ollama] {
        let expected = ["user", "assistant", "user", "assistant", "user", "assistant"];
        assert_eq!(roles(dialect, &messages), expected, "{dialect:?}");
    }
}
