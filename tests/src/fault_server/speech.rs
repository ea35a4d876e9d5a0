//! What well-behaved servers say, in each dialect: the material that faults are made of.

use super::act::{Act, Acts, http, stream_head};
use agentd_provider::Dialect;
use bytes::Bytes;
use serde_json::{Value, json};

/// An answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Say {
    /// The provider's name for it.
    pub id: String,
    /// The text, in pieces.
    pub text: Vec<String>,
    /// Tool calls: name and arguments.
    pub calls: Vec<(String, Value)>,
}

impl Say {
    /// Some words, a piece each.
    #[must_use]
    pub fn text(words: &str) -> Self {
        Self {
            id: "gen-1".to_owned(),
            text: words.split_inclusive(' ').map(str::to_owned).collect(),
            calls: Vec::new(),
        }
    }

    /// One tool call.
    #[must_use]
    pub fn call(name: &str, input: Value) -> Self {
        Self {
            calls: vec![(name.to_owned(), input)],
            text: Vec::new(),
            ..Self::text("")
        }
    }

    /// The same answer under another name.
    #[must_use]
    pub fn named(self, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            ..self
        }
    }
}

/// How servers of a dialect speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speech(pub Dialect);

impl Speech {
    /// The content type of its streams.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        if self.0 == Dialect::Ollama {
            "application/x-ndjson"
        } else {
            "text/event-stream"
        }
    }

    /// The head of a streamed answer.
    #[must_use]
    pub fn head(self) -> Act {
        stream_head(self.content_type())
    }

    /// One frame around some text.
    #[must_use]
    pub fn frame(self, data: &str) -> Bytes {
        match self.0 {
            Dialect::Ollama => Bytes::from(format!("{data}\n")),
            _ => Bytes::from(format!("data: {data}\n\n")),
        }
    }

    /// A sign of life that tells nothing.
    #[must_use]
    pub fn comment(self) -> &'static str {
        if self.0 == Dialect::Ollama {
            "\n"
        } else {
            ": keep-alive\n\n"
        }
    }

    /// The frames of a streamed answer, the terminal marker among them.
    #[must_use]
    pub fn frames(self, say: &Say) -> Vec<Bytes> {
        let events = match self.0 {
            Dialect::Anthropic => anthropic(say),
            Dialect::OpenaiResponses => responses(say),
            Dialect::Gemini => gemini(say),
            Dialect::LlamaCompletion => completion(say),
            Dialect::Ollama => ollama(say),
            Dialect::OpenaiChat | Dialect::Scripted => chat(say),
        };
        let mut frames: Vec<Bytes> = events.iter().map(|event| self.event(event)).collect();
        if self.0 == Dialect::OpenaiChat {
            frames.push(self.frame("[DONE]"));
        }
        frames
    }

    /// How many frames must have come before an answer can count as complete.
    #[must_use]
    pub fn complete_after(self, frames: &[Bytes]) -> usize {
        match self.0 {
            // A finish reason and the end of the bytes are enough; usage and `[DONE]` may be missing.
            Dialect::OpenaiChat => frames.len() - 2,
            _ => frames.len(),
        }
    }

    fn event(self, event: &Value) -> Bytes {
        let kind = event.get("type").and_then(Value::as_str);
        match (self.0, kind) {
            (Dialect::Anthropic | Dialect::OpenaiResponses, Some(kind)) => {
                Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
            }
            _ => self.frame(&event.to_string()),
        }
    }

    /// Everything that a good server does for one request.
    #[must_use]
    pub fn answer(self, say: &Say) -> Acts {
        let mut acts = vec![self.head()];
        acts.extend(self.frames(say).into_iter().map(Act::Say));
        acts
    }

    /// The answer to the request that comes before the one for an answer, where the dialect has one.
    #[must_use]
    pub fn preparation(self, path: &str) -> Option<Acts> {
        (self.0 == Dialect::LlamaCompletion && path.ends_with("/apply-template")).then(|| {
            let body = json!({"prompt": "user: hello\nassistant: "}).to_string();
            vec![http(200, &[("content-type", "application/json")], &body)]
        })
    }
}

fn anthropic(say: &Say) -> Vec<Value> {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let message = json!({"id": say.id, "type": "message", "role": "assistant", "model": "test", "content": [],
        "stop_reason": null, "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message})];
    let mut block = |start: Value, deltas: Vec<Value>| {
        let index = events
            .iter()
            .filter(|event| event["type"] == "content_block_stop")
            .count();
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    };
    if !say.text.is_empty() {
        let piece = |text: &String| json!({"type": "text_delta", "text": text});
        block(
            json!({"type": "text", "text": ""}),
            say.text.iter().map(piece).collect(),
        );
    }
    for (n, (name, input)) in say.calls.iter().enumerate() {
        let start = json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": {}});
        block(
            start,
            vec![json!({"type": "input_json_delta", "partial_json": input.to_string()})],
        );
    }
    let stop = if say.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}),
    );
    events.push(json!({"type": "message_stop"}));
    events
}

fn chat(say: &Say) -> Vec<Value> {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": say.id, "object": "chat.completion.chunk", "created": 1, "model": "test",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    events.extend(
        say.text
            .iter()
            .map(|piece| chunk(json!({"content": piece}), Value::Null)),
    );
    for (n, (name, input)) in say.calls.iter().enumerate() {
        let call = json!({"index": n, "id": format!("call_{n}"), "type": "function",
            "function": {"name": name, "arguments": input.to_string()}});
        events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
    }
    let finish = if say.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    events.push(chunk(json!({}), json!(finish)));
    events.push(
        json!({"id": say.id, "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}),
    );
    events
}

fn responses(say: &Say) -> Vec<Value> {
    let response = |status: &str, output: &[Value], usage: Value| {
        json!({"id": say.id, "object": "response", "status": status, "model": "test", "error": null,
            "incomplete_details": null, "output": output, "usage": usage})
    };
    let running = response("in_progress", &[], Value::Null);
    let mut events = vec![
        json!({"type": "response.created", "response": running}),
        json!({"type": "response.in_progress", "response": running}),
    ];
    let mut output = Vec::new();
    if !say.text.is_empty() {
        let begun = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []});
        events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": begun}));
        let part = json!({"type": "output_text", "text": say.text.concat(), "annotations": []});
        for piece in &say.text {
            events.push(
                json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0,
                "item_id": "msg_1", "delta": piece}),
            );
        }
        let done = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]});
        events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": done}));
        output.push(done);
    }
    for (n, (name, input)) in say.calls.iter().enumerate() {
        let item = |arguments: &str| {
            json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"), "name": name,
                "arguments": arguments, "status": "completed"})
        };
        let (index, arguments) = (output.len(), input.to_string());
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item("")}));
        events.push(
            json!({"type": "response.function_call_arguments.delta", "output_index": index,
            "item_id": format!("fc_{n}"), "delta": arguments}),
        );
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item(&arguments)}),
        );
        output.push(item(&arguments));
    }
    let usage = json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15});
    let done = response("completed", &output, usage);
    events.push(json!({"type": "response.completed", "response": done}));
    events
}

fn gemini(say: &Say) -> Vec<Value> {
    let chunk = |part: Value, finish: Option<&str>| {
        let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({"candidates": [candidate], "modelVersion": "test", "responseId": say.id,
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}})
    };
    let mut events: Vec<Value> = say
        .text
        .iter()
        .map(|piece| chunk(json!({"text": piece}), None))
        .collect();
    for (name, input) in &say.calls {
        events.push(chunk(
            json!({"functionCall": {"name": name, "args": input}}),
            None,
        ));
    }
    events.push(chunk(json!({"text": ""}), Some("STOP")));
    events
}

fn completion(say: &Say) -> Vec<Value> {
    let calls = say
        .calls
        .iter()
        .map(|(name, input)| json!({"tool": name, "args": input}).to_string());
    let mut events: Vec<Value> = say
        .text
        .iter()
        .cloned()
        .chain(calls)
        .map(|piece| json!({"content": piece, "stop": false}))
        .collect();
    events.push(
        json!({"content": "", "stop": true, "stop_type": "eos", "model": "test", "tokens_evaluated": 10,
        "tokens_cached": 0, "truncated": false, "timings": {"prompt_n": 10, "cache_n": 0, "predicted_n": 5}}),
    );
    events
}

fn ollama(say: &Say) -> Vec<Value> {
    let chunk = |message: Value| json!({"model": "test", "created_at": "2026-11-20T09:00:00Z", "message": message, "done": false});
    let mut events: Vec<Value> = say
        .text
        .iter()
        .map(|piece| chunk(json!({"role": "assistant", "content": piece})))
        .collect();
    for (name, input) in &say.calls {
        let call = json!({"function": {"name": name, "arguments": input}});
        events.push(chunk(
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
        ));
    }
    events.push(
        json!({"model": "test", "created_at": "2026-11-20T09:00:01Z", "done": true, "done_reason": "stop",
        "message": {"role": "assistant", "content": ""}, "prompt_eval_count": 10, "eval_count": 5}),
    );
    events
}
