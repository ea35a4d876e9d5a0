//! Hand-written requests: equivalent forms compare equal, and differences are found.

use super::*;
use crate::cassette::{Then, When};
use serde_json::json;

fn verdict(dialect: Dialect, body: &Value) -> Verdict {
    check(
        dialect,
        &Exchange {
            when: When {
                path: "/v1beta/models/gemini-2.5-flash:generateContent".into(),
                method: "POST".into(),
                body: Some(body.to_string()),
            },
            then: Then {
                status: 200,
                header: None,
                body: None,
            },
        },
    )
}

fn passes(dialect: Dialect, body: &Value) {
    assert_eq!(verdict(dialect, body), Verdict::Passed, "{body}");
}

fn skips(dialect: Dialect, body: &Value, reason: &str) {
    assert_eq!(verdict(dialect, body), Verdict::Skipped(reason.into()), "{body}");
}

#[test]
fn a_conversation_with_tools_and_images_is_rebuilt_in_the_messages_dialect() {
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    passes(
        Dialect::Anthropic,
        &json!({
            "model": "m", "max_tokens": 2_000, "stream": true, "stop_sequences": ["x"],
            "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}],
            "thinking": {"type": "enabled", "budget_tokens": 1_024},
            "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
            "messages": [
                {"role": "user", "content": "look"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": null}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "r"}], "is_error": true},
                    {"type": "text", "text": "and"}, image]},
            ],
        }),
    );
}

#[test]
fn a_conversation_with_tools_and_reasoning_is_rebuilt_in_the_chat_dialect() {
    passes(
        Dialect::OpenaiChat,
        &json!({
            "model": "m", "stream": true, "max_completion_tokens": 50, "temperature": 0, "seed": 1, "n": 1,
            "reasoning_effort": "xhigh",
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": true}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false,
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": true}},
            "messages": [
                {"role": "developer", "content": "be"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "user", "content": "c"},
                {"role": "assistant", "content": null, "reasoning_content": "r", "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{ \"x\" : 1 }"}},
                    {"id": "2", "type": "function", "function": {"name": "f", "arguments": ""}}]},
                {"role": "tool", "tool_call_id": "2", "content": "two"},
                {"role": "tool", "tool_call_id": "1", "content": "one"},
            ],
        }),
    );
}

#[test]
fn a_conversation_is_rebuilt_in_the_responses_dialect() {
    passes(
        Dialect::OpenaiResponses,
        &json!({
            "model": "m", "instructions": "be", "store": false, "reasoning": {"effort": "low", "summary": "detailed"},
            "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}],
            "text": {"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}}},
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
                {"type": "function_call_output", "call_id": "c1", "output": "r"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done", "annotations": []}]},
            ],
        }),
    );
}

#[test]
fn a_conversation_is_rebuilt_in_the_gemini_dialect() {
    passes(
        Dialect::Gemini,
        &json!({
            "systemInstruction": {"role": "model", "parts": [{"text": "be"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
                {"role": "model", "parts": [
                    {"text": "hm", "thought": true},
                    {"text": "I look.", "thoughtSignature": "s1"},
                    {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "s2"},
                    {"functionCall": {"id": "g", "name": "g"}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "f", "response": {"result": 7}}},
                    {"functionResponse": {"id": "g", "name": "g", "response": {"error": "no"}}}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parameters": {"type": "OBJECT"}}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
            "generationConfig": {"temperature": 0.5, "thinkingConfig": {"thinkingBudget": 777, "includeThoughts": true}},
        }),
    );
}

#[test]
fn a_conversation_is_rebuilt_in_ollamas_dialect() {
    passes(
        Dialect::Ollama,
        &json!({
            "model": "m", "stream": false, "think": true, "options": {"temperature": 0.1, "seed": 1},
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
            "messages": [
                {"role": "system", "content": "be"},
                {"role": "user", "content": "a", "images": ["AA=="]},
                {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
                {"role": "tool", "tool_name": "f", "content": "r"},
            ],
        }),
    );
}

#[test]
fn requests_that_agentd_never_makes_are_skipped_with_a_reason() {
    let chat = |extra: Value| {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "a"}]});
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        body
    };
    skips(
        Dialect::OpenaiChat,
        &chat(json!({"n": 2})),
        "n > 1: several answers to one request",
    );
    skips(Dialect::OpenaiChat, &chat(json!({"audio": {}})), "audio");
    skips(
        Dialect::OpenaiResponses,
        &json!({"model": "m", "input": "a", "previous_response_id": "r"}),
        "a conversation that is kept at the server",
    );
    let document = json!({"role": "user", "content": [{"type": "document", "source": {}}]});
    skips(
        Dialect::Anthropic,
        &json!({"model": "m", "max_tokens": 9, "messages": [document]}),
        "content of type document",
    );
}

#[test]
fn an_unlisted_key_is_a_failure() {
    let body = json!({"model": "m", "never_heard_of": 1, "messages": [{"role": "user", "content": "a"}]});
    let expected = "$.never_heard_of: recorded 1, ours has nothing";
    assert_eq!(
        verdict(Dialect::OpenaiChat, &body),
        Verdict::Failed(expected.into())
    );
}

#[test]
fn a_result_of_another_call_is_a_difference() {
    let body = |first: &str, second: &str| {
        let mut body = json!({"messages": [
            {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": first, "content": "x"}, {"role": "tool", "tool_call_id": second, "content": "y"}]});
        chat::normal(&mut body);
        body
    };
    let found = difference(&body("1", "2"), &body("2", "1"), "$");
    assert_eq!(
        found.as_deref(),
        Some("$.messages[1].tool_call_id: recorded \"call 0\", ours has \"call 1\"")
    );
}
