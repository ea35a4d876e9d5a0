//! The stages of tool calls and the requests to models, recorded for the trace while it is on. Nothing depends on them.

use agentd_protocol::{CallId, Message, SessionId, Timestamp, ToolCallId, TurnId};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The maximum number of records in the queue; further ones are lost.
const QUEUE: usize = 4_096;

/// The stage of a call between the model's request and the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStage {
    /// The tool is found and its arguments are checked.
    Discovery,
    /// The rules judge the call.
    Permission,
    /// Hooks run before the call.
    PreHook,
    /// A person is asked.
    Confirmation,
    /// The call runs.
    Execution,
    /// Hooks run after the call.
    PostHook,
    /// The result is assembled.
    Formatting,
}

impl CallStage {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Discovery,
        Self::Permission,
        Self::PreHook,
        Self::Confirmation,
        Self::Execution,
        Self::PostHook,
        Self::Formatting,
    ];

    /// Its name in the trace.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discovery => "discovery",
            Self::Permission => "permission",
            Self::PreHook => "pre_hook",
            Self::Confirmation => "confirmation",
            Self::Execution => "execution",
            Self::PostHook => "post_hook",
            Self::Formatting => "formatting",
        }
    }
}

/// A call left a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageDone {
    /// When it left the stage.
    pub at: Timestamp,
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: Option<TurnId>,
    /// The step of the turn.
    pub step: u32,
    /// The call.
    pub tool_call: ToolCallId,
    /// The stage.
    pub stage: CallStage,
    /// The outcome.
    pub outcome: String,
    /// How long the stage took; unknown if it began before a restart.
    pub ms: Option<u64>,
}

/// A request to a model, as sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSent {
    /// When it was sent.
    pub at: Timestamp,
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: Option<TurnId>,
    /// The step of the turn.
    pub step: u32,
    /// The call.
    pub call: CallId,
    /// The attempt.
    pub attempt: u32,
    /// The name of the protocol in the configuration.
    pub api_mode: String,
    /// The URL of the server.
    pub base_url: String,
    /// The provider's model id.
    pub model: String,
    /// Absent: the model's default.
    pub temperature: Option<f64>,
    /// The maximum number of tokens in the answer.
    pub max_tokens: u32,
    /// The number of messages of the conversation.
    pub messages: usize,
    /// The last messages.
    pub last: Vec<Arc<Message>>,
}

/// A record for the trace that no log contains.
#[derive(Debug, Clone, PartialEq)]
pub enum Traced {
    /// A call left a stage.
    Stage(StageDone),
    /// A request was sent.
    Request(Box<RequestSent>),
}

/// The channel to the trace, if it is on.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<mpsc::Sender<Traced>>);

impl Tracer {
    /// A channel and its receiving end.
    #[must_use]
    pub fn channel() -> (Self, mpsc::Receiver<Traced>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self(Some(to)), from)
    }

    /// Whether the trace is on.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Sends a record; if the queue is full, the record is lost.
    pub fn tell(&self, traced: Traced) {
        if let Some(to) = &self.0 {
            let _ = to.try_send(traced);
        }
    }
}
