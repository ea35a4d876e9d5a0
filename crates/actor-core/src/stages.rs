//! The stages of tool calls and the requests to models, told to the trace while it is on. Nothing depends on them.

use agentd_protocol::{CallId, Message, SessionId, Timestamp, ToolCallId, TurnId};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Records that wait to be written; beyond that they are lost.
const QUEUE: usize = 4_096;

/// Where a call is on its way from the model's words to its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStage {
    /// The tool is found and its arguments are checked.
    Discovery,
    /// The rules judge.
    Permission,
    /// Hooks before it.
    PreHook,
    /// Somebody is asked.
    Confirmation,
    /// It runs.
    Execution,
    /// Hooks after it.
    PostHook,
    /// Its one result is put together.
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
    /// When.
    pub at: Timestamp,
    /// Whose.
    pub session: SessionId,
    /// In which turn.
    pub turn: Option<TurnId>,
    /// In which step of it.
    pub step: u32,
    /// The call.
    pub tool_call: ToolCallId,
    /// The stage.
    pub stage: CallStage,
    /// What came of it.
    pub outcome: String,
    /// How long it took; nobody knows when it began before a restart.
    pub ms: Option<u64>,
}

/// A request to a model, as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSent {
    /// When.
    pub at: Timestamp,
    /// Whose.
    pub session: SessionId,
    /// In which turn.
    pub turn: Option<TurnId>,
    /// In which step of it.
    pub step: u32,
    /// The call.
    pub call: CallId,
    /// The attempt.
    pub attempt: u32,
    /// The protocol, as the configuration names it.
    pub api_mode: String,
    /// Where the server is.
    pub base_url: String,
    /// The provider's model id.
    pub model: String,
    /// Absent: the model's own.
    pub temperature: Option<f64>,
    /// Tokens of the answer.
    pub max_tokens: u32,
    /// Messages of the conversation.
    pub messages: usize,
    /// The last of them.
    pub last: Vec<Arc<Message>>,
}

/// What the trace is told that no log has.
#[derive(Debug, Clone, PartialEq)]
pub enum Traced {
    /// A call left a stage.
    Stage(StageDone),
    /// A request was sent.
    Request(Box<RequestSent>),
}

/// The way to the trace, if there is one.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<mpsc::Sender<Traced>>);

impl Tracer {
    /// A way, and its other end.
    #[must_use]
    pub fn channel() -> (Self, mpsc::Receiver<Traced>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self(Some(to)), from)
    }

    /// Whether anybody reads them.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells it; a full queue loses it.
    pub fn tell(&self, traced: Traced) {
        if let Some(to) = &self.0 {
            let _ = to.try_send(traced);
        }
    }
}
