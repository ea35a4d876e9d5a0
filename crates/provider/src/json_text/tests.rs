use super::*;
use crate::body::{EncodedHistory, Params, Prompt, RequestBody, encode_prefix, encode_suffix};
use crate::script::Script;
use crate::spec::ModelSpec;
use crate::text_calls::{Mode, lift};
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
        let lifted = lift(said, StopReason::EndTurn, Mode::Told, &tools());
        assert_eq!(
            (&lifted.content[..], lifted.stop),
            (&calls[..count], StopReason::ToolUse)
        );
    }
}

proptest! {
    #[test]
    fn every_call_survives_being_said_and_read(
        name in prop_oneof![Just("Read"), Just("Bash")],
        args in proptest::collection::btree_map("[a-z_]{1,8}", ".{0,40}", 0..4),
    ) {
        let call = use_of(1, name, json!(args));
        let said = project(&Message { role: Role::Assistant, content: vec![call.clone()] }).content;
        prop_assert_eq!(lift(said, StopReason::EndTurn, Mode::Told, &tools()).content, [call]);
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
