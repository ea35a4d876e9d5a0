//! Every way in which a model server can fail, against one attempt of a call, in all dialects. One test per fault.

mod breaks;
mod floods;
mod garbage;
mod refusals;
mod stalls;
mod waits;

use agentd_protocol::{Block, FailureClass, Message, Role, StopReason, ToolProtocol};
use agentd_provider::{
    Capabilities, Compat, Credential, Deadlines, Dialect, EncodedHistory, ModelError, ModelEvent, ModelReply,
    ModelSpec, Params, Prompt, Request, RequestBody, Script, Secret, Sink, call, encode_prefix,
    encode_suffix, http_client,
};
use agentd_settings::{CapabilitiesConfig, CompatConfig};
use agentd_tests::fault_server::{Act, Acts, Asked, FaultServer, Say, Speech};
use agentd_tests::within;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// All dialects over HTTP.
const DIALECTS: [Dialect; 6] = [
    Dialect::Anthropic,
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
    Dialect::Gemini,
    Dialect::LlamaCompletion,
    Dialect::Ollama,
];
/// A key that must never be shown.
const KEY: &str = "sk-fault-canary-93ab7711";
/// For faults that end by themselves: a loaded machine must not turn them into others.
const PATIENT: Deadlines = Deadlines {
    connect: Duration::from_secs(60),
    first_byte: Duration::from_secs(60),
    idle: Duration::from_secs(60),
    total: Duration::from_secs(150),
};
/// For faults that only a deadline ends.
const HASTY: Deadlines = Deadlines {
    connect: Duration::from_secs(2),
    first_byte: Duration::from_millis(400),
    idle: Duration::from_millis(400),
    total: Duration::from_secs(60),
};

/// The outcome of one attempt.
#[derive(Debug)]
struct Heard {
    answer: Result<ModelReply, ModelError>,
    /// The text shown while it streamed.
    shown: String,
}

impl Heard {
    fn text(&self) -> Option<String> {
        let reply = self.answer.as_ref().ok()?;
        let texts = reply.content.iter().map(|block| match block {
            Block::Text { text } => text.as_str(),
            _ => "",
        });
        Some(texts.collect())
    }

    fn class(&self) -> Option<FailureClass> {
        self.answer.as_ref().err().map(|error| error.class)
    }

    fn message(&self) -> &str {
        self.answer.as_ref().err().map_or("", |error| &error.message)
    }

    fn is(&self, class: FailureClass, case: impl std::fmt::Debug) {
        assert_eq!(self.class(), Some(class), "{case:?}: {:?}", self.answer);
        assert!(
            !self.message().is_empty() && self.message().len() <= 4_096,
            "{case:?}: {}",
            self.message()
        );
    }

    fn is_transient(&self, case: impl std::fmt::Debug) {
        self.is(FailureClass::Transient, case);
    }

    /// A deadline ended it, but not the total deadline of an attempt, which is the last resort.
    fn is_given_up(&self, case: impl std::fmt::Debug) {
        let last_resort = self.message().starts_with("no complete answer within");
        assert!(!last_resort, "{case:?}: {}", self.message());
        self.is_transient(case);
    }

    fn is_whole(&self, say: &Say, case: impl std::fmt::Debug) {
        assert_eq!(
            self.text(),
            Some(say.text.concat()),
            "{case:?}: {:?}",
            self.answer
        );
        let stop = self.answer.as_ref().map(|reply| reply.stop_reason);
        assert_eq!(stop.ok(), Some(StopReason::EndTurn), "{case:?}");
    }
}

#[derive(Debug, Default)]
struct Shown(String);

impl Sink for Shown {
    async fn send(&mut self, event: ModelEvent) {
        if let ModelEvent::TextDelta { text, .. } = event {
            self.0.push_str(&text);
        }
    }
}

fn say() -> Say {
    Say::text("One two three four.")
}

fn spec(dialect: Dialect, base_url: &str, deadlines: Deadlines) -> ModelSpec {
    ModelSpec {
        dialect,
        base_url: base_url.to_owned(),
        credentials: vec![Credential {
            name: "main".into(),
            found_in: "TEST_API_KEY".into(),
            secret: Secret::new(KEY),
        }],
        tool_protocol: if dialect == Dialect::LlamaCompletion {
            ToolProtocol::JsonText
        } else {
            ToolProtocol::Native
        },
        compat: Compat::of(dialect, base_url, "test", &CompatConfig::default()),
        capabilities: Capabilities::of(dialect, "test", &CapabilitiesConfig::default()),
        deadlines,
        ..ModelSpec::scripted("test", Arc::new(Script::builtin()))
    }
}

/// Makes one attempt with this prompt.
async fn ask_with(spec: &ModelSpec, words: &str) -> Heard {
    let client = http_client(spec.deadlines.connect).unwrap();
    ask_through(&client, spec, words).await
}

async fn ask_through(client: &reqwest::Client, spec: &ModelSpec, words: &str) -> Heard {
    let messages = vec![Arc::new(Message {
        role: Role::User,
        content: vec![Block::text(words)],
    })];
    let mut history = EncodedHistory::new();
    history.extend(spec, 0, &messages);
    let params = Params::default();
    let body = RequestBody::new(
        encode_prefix(spec, &Prompt::of("Be brief."), &[], &params),
        &history,
        encode_suffix(spec, &[], &params),
    );
    let request = Request {
        spec,
        credential: spec.credential(None),
        tools: &[],
        body,
        messages: &messages,
        attempt: 1,
    };
    let mut shown = Shown::default();
    let called = within("an attempt ends", call(client, request, &mut shown)).await;
    let heard = Heard {
        answer: called.answer.map(|(reply, _)| reply),
        shown: shown.0,
    };
    assert!(!heard.message().contains(KEY), "I8: {}", heard.message());
    heard
}

async fn ask(dialect: Dialect, url: &str, deadlines: Deadlines) -> Heard {
    ask_with(&spec(dialect, url, deadlines), "hello").await
}

/// A server that prepares as its dialect wants and then performs `acts`.
async fn server(dialect: Dialect, acts: impl Fn(&Asked) -> Acts + Send + Sync + 'static) -> FaultServer {
    FaultServer::start(move |asked| {
        Speech(dialect)
            .preparation(asked.path())
            .unwrap_or_else(|| acts(asked))
    })
    .await
}

/// One attempt against a server that performs `acts`.
async fn heard(dialect: Dialect, acts: Acts, deadlines: Deadlines) -> Heard {
    let server = server(dialect, move |_| acts.clone()).await;
    ask(dialect, &server.url(), deadlines).await
}

/// The same fault in each dialect, all at once.
async fn in_each_dialect<T: Future<Output = ()>>(test: impl Fn(Dialect) -> T) {
    join_all(DIALECTS.into_iter().map(test)).await;
}

/// The same fault after each number of frames of an answer, in each dialect. Returns the outcome, the frames sent, and how
/// many an answer needs.
async fn at_every_frame(deadlines: Deadlines, fault: &[Act], check: impl Fn(Dialect, usize, usize, &Heard)) {
    let check = &check;
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let frames = speech.frames(&say());
        let needed = speech.complete_after(&frames);
        let cases = (0..=frames.len()).map(|came| {
            let mut acts = vec![speech.head()];
            acts.extend(frames.iter().take(came).cloned().map(Act::Say));
            acts.extend_from_slice(fault);
            async move { (came, heard(dialect, acts, deadlines).await) }
        });
        for (came, heard) in join_all(cases).await {
            check(dialect, came, needed, &heard);
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_without_a_fault_is_understood_in_each_dialect() {
    in_each_dialect(async |dialect| {
        let heard = heard(dialect, Speech(dialect).answer(&say()), PATIENT).await;
        heard.is_whole(&say(), dialect);
        assert_eq!(heard.shown, "One two three four.", "{dialect:?}");
        let usage = heard.answer.unwrap().usage;
        assert_eq!((usage.input, usage.output), (10, 5), "{dialect:?}");
    })
    .await;
}
