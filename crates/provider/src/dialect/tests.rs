//! A conversation started with a model of one dialect continues with a model of any other.

use super::*;
use crate::body::encode_message;
use crate::script::Script;
use agentd_protocol::{Block, Role, ToolProtocol};
use serde_json::json;
use std::sync::Arc;

const SPOKEN: [Dialect; 6] = [
    Dialect::Anthropic,
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
    Dialect::Gemini,
    Dialect::LlamaCompletion,
    Dialect::Ollama,
];

fn spec(dialect: Dialect) -> ModelSpec {
    let mut spec = ModelSpec::scripted("m", Arc::new(Script::builtin()));
    spec.dialect = dialect;
    if dialect == Dialect::LlamaCompletion {
        spec.tool_protocol = ToolProtocol::JsonText;
    }
    spec
}

fn assistant(content: Vec<Block>) -> Message {
    Message {
        role: Role::Assistant,
        content,
    }
}

fn encoded(dialect: Dialect, content: Vec<Block>) -> String {
    let bytes = encode_message(&spec(dialect), &assistant(content));
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The opaque blocks of each dialect.
fn closed() -> Vec<(Dialect, Value)> {
    vec![
        (
            Dialect::Anthropic,
            json!({ "type": "thinking", "thinking": "MARK", "signature": "MARK" }),
        ),
        (
            Dialect::Anthropic,
            json!({ "type": "redacted_thinking", "data": "MARK" }),
        ),
        (Dialect::OpenaiChat, json!({ "reasoning_content": "MARK" })),
        (Dialect::OpenaiChat, json!({ "reasoning": "MARK" })),
        (
            Dialect::OpenaiChat,
            json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "MARK" }] }),
        ),
        (
            Dialect::OpenaiChat,
            json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "MARK" }] }] }),
        ),
        (
            Dialect::OpenaiResponses,
            json!({ "type": "reasoning", "id": "MARK", "summary": [], "encrypted_content": "MARK",
                    "content": [{ "type": "reasoning_text", "text": "MARK" }] }),
        ),
        (
            Dialect::OpenaiResponses,
            json!({ "type": "message", "phase": "MARK" }),
        ),
        (
            Dialect::OpenaiResponses,
            json!({ "type": "web_search_call", "id": "MARK" }),
        ),
        (Dialect::Gemini, json!({ "text": "MARK", "thought": true })),
        (Dialect::Gemini, json!({ "thoughtSignature": "MARK" })),
        (
            Dialect::Gemini,
            json!({ "functionCall": { "id": "MARK" }, "thoughtSignature": "MARK" }),
        ),
        (
            Dialect::Gemini,
            json!({ "executableCode": { "language": "PYTHON", "code": "MARK" } }),
        ),
        (Dialect::Ollama, json!({ "thinking": "MARK" })),
    ]
}

#[test]
fn what_one_dialect_keeps_closed_is_never_sent_in_another() {
    for (made, raw) in closed() {
        for reads in SPOKEN {
            let content = vec![
                Block::Thinking {
                    text: String::new(),
                    raw: Some(raw.to_string()),
                },
                Block::text("said"),
                Block::ToolUse {
                    id: "a".into(),
                    name: "Read".into(),
                    input: json!({}),
                },
            ];
            let sent = encoded(reads, content);
            assert_eq!(
                sent.contains("MARK"),
                made == reads,
                "{made:?} {raw} in {reads:?}: {sent}"
            );
        }
    }
}

#[test]
fn a_name_that_a_model_made_up_fits_on_the_wire_in_every_dialect() {
    for dialect in SPOKEN {
        if dialect == Dialect::LlamaCompletion {
            continue;
        }
        let call = Block::ToolUse {
            id: "a".into(),
            name: "7 functions.Read\n".into(),
            input: json!({}),
        };
        let sent = encoded(dialect, vec![call]);
        let name = match dialect {
            Dialect::Gemini => r#""name":"_7_functions_Read_""#,
            _ => r#""name":"7_functions_Read_""#,
        };
        assert!(sent.contains(name), "{dialect:?}: {sent}");
    }
}
