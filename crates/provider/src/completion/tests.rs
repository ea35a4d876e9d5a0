use crate::body::{EncodedHistory, Params, Prompt, RequestBody, encode_prefix, encode_suffix};
use crate::decoder::Decoder;
use crate::dialect::codec;
use crate::error::ModelError;
use crate::reply::{ModelEvent, ModelReply};
use crate::script::Script;
use crate::spec::ModelSpec;
use agentd_protocol::{Block, Message, Reading, Role, StopReason, Usage};
use agentd_settings::Dialect;
use serde_json::{Value, json};
use std::sync::Arc;

fn spec() -> ModelSpec {
    ModelSpec {
        dialect: Dialect::LlamaCompletion,
        base_url: "http://127.0.0.1:8080/v1".into(),
        context_window: 1_000,
        max_output: 100,
        temperature: Some(0.5),
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    }
}

fn decode(frames: &[Value]) -> Result<(ModelReply, Vec<ModelEvent>), ModelError> {
    let text: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    let mut events = Vec::new();
    let mut decoder = Decoder::new(&spec(), &[])?;
    for piece in text.as_bytes().chunks(7) {
        decoder.feed(piece, &mut events)?;
    }
    Ok((decoder.finish(&mut events)?, events))
}

fn says(content: &str) -> Value {
    json!({"index": 0, "content": content, "stop": false})
}

fn end(stop_type: &str) -> Value {
    json!({"content": "", "stop": true, "model": "qwen", "stop_type": stop_type, "prompt": "<user>hi", "truncated": false,
        "tokens_evaluated": 30, "tokens_predicted": 9, "tokens_cached": 38,
        "timings": {"cache_n": 20, "prompt_n": 10, "predicted_n": 9}})
}

fn content(frames: &[Value]) -> Vec<Block> {
    decode(frames).unwrap().0.content
}

fn thinking(text: &str) -> Block {
    Block::Thinking {
        text: text.into(),
        raw: None,
    }
}

#[test]
fn a_completion_counts_what_was_cached() {
    let (reply, events) = decode(&[says("Hel"), says("lo"), end("eos")]).unwrap();
    let expected = ModelReply {
        content: vec![Block::text("Hello")],
        stop_reason: StopReason::EndTurn,
        usage: Usage {
            input: 10,
            output: 9,
            cache_read: 20,
            ..Usage::default()
        },
        cost_usd: None,
        model: "qwen".into(),
        request_id: None,
        reading: Reading::default(),
    };
    let delta = |text: &str| ModelEvent::TextDelta {
        block: 0,
        text: text.into(),
    };
    assert_eq!((reply, events), (expected, vec![delta("Hel"), delta("lo")]));
}

#[test]
fn reasoning_in_the_text_becomes_a_block_of_its_own_however_it_is_cut() {
    let whole = [says("\n<think>\nhm <b\n</think>\n\nHello <think>"), end("eos")];
    let expected = [thinking("hm <b"), Block::text("Hello <think>")];
    assert_eq!(content(&whole), expected);
    let cut: Vec<Value> = "\n<think>\nhm <b\n</think>\n\nHello <think>"
        .chars()
        .map(|one| says(&one.to_string()))
        .chain([end("eos")])
        .collect();
    assert_eq!(content(&cut), expected);
    assert_eq!(content(&[says("<thin"), end("eos")]), [Block::text("<thin")]);
    assert_eq!(
        content(&[says("<think>h</thi"), end("limit")]),
        [thinking("h</thi")]
    );
}

#[test]
fn reasoning_that_the_prompt_began_is_told_from_the_answer() {
    let mut last = end("eos");
    last["prompt"] = json!("<user>hi<assistant><think>\n");
    assert_eq!(
        content(&[says("hm</think>\n\nHi"), last.clone()]),
        [thinking("hm"), Block::text("Hi")]
    );
    assert_eq!(content(&[says("hm"), last]), [thinking("hm")]);
}

#[test]
fn a_completion_ends_for_a_reason() {
    let stop = |last: Value| decode(&[says("x"), last]).map(|(reply, _)| reply.stop_reason);
    assert_eq!(stop(end("eos")), Ok(StopReason::EndTurn));
    assert_eq!(stop(end("word")), Ok(StopReason::StopSequence));
    assert_eq!(stop(end("limit")), Ok(StopReason::MaxTokens));
    let mut full = end("limit");
    full["tokens_predicted"] = json!(970);
    assert_eq!(stop(full), Ok(StopReason::ContextWindow));
    let mut truncated = end("eos");
    truncated["truncated"] = json!(true);
    assert_eq!(stop(truncated), Ok(StopReason::ContextWindow));
}

#[test]
fn i4_a_completion_without_its_end_is_a_failure() {
    let error = decode(&[says("{\"tool\":\"Bash\",\"args\":{}}")]).unwrap_err();
    assert_eq!(
        error,
        ModelError::transient("the stream ended before the end of the answer")
    );
}

#[test]
fn a_whole_completion_is_an_answer() {
    let mut body = end("eos");
    body["content"] = json!("hi");
    let whole = |body: Value| {
        Decoder::new(&spec(), &[])
            .unwrap()
            .whole(body.to_string().as_bytes(), &mut Vec::new())
    };
    assert_eq!(whole(body).unwrap().content, [Block::text("hi")]);
    let error = ModelError::transient("the server's response contains no answer");
    assert_eq!(whole(json!({})).unwrap_err(), error);
}

#[test]
fn the_prompt_takes_the_place_of_the_messages() {
    let spec = spec();
    let messages = [Arc::new(Message {
        role: Role::User,
        content: vec![Block::text("go")],
    })];
    let mut history = EncodedHistory::new();
    history.extend(&spec, 0, &messages);
    let schema = json!({"type": "object"});
    let params = Params {
        schema: Some(("answer", &schema)),
        ..Params::default()
    };
    let prefix = encode_prefix(&spec, &Prompt::of("s"), &[], &params);
    let asked = RequestBody::new(prefix, &history, encode_suffix(&spec, &[], &params));
    let parameters = json!({"model": "m", "stream": true, "n_predict": 100, "cache_prompt": true, "return_progress": true,
        "temperature": 0.5, "json_schema": {"type": "object"}});
    let with = |name: &str, value: Value| {
        let mut body = parameters.clone();
        body[name] = value;
        body
    };
    let parsed = |body: &RequestBody| serde_json::from_slice::<Value>(&body.to_bytes()).unwrap();
    let said = json!([{"role": "system", "content": "s"}, {"role": "user", "content": "go"}]);
    assert_eq!(parsed(&asked), with("messages", said));
    let codec = codec(Dialect::LlamaCompletion).unwrap();
    let template = codec.preparation().unwrap();
    let body = template.body(&asked, &json!({"prompt": "<user>\"go\""})).unwrap();
    assert_eq!(parsed(&body), with("prompt", json!("<user>\"go\"")));
    let error = template.body(&asked, &json!({})).unwrap_err();
    assert_eq!(
        error,
        ModelError::transient("the server could not make a prompt from the messages")
    );
    assert_eq!(
        [template.url(&spec), codec.url(&spec)],
        [
            "http://127.0.0.1:8080/apply-template",
            "http://127.0.0.1:8080/completion"
        ]
    );
}
