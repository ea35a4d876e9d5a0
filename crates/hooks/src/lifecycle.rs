//! Lifecycle hooks: they hear of events other than tool calls, such as inputs, session starts and ends, and turn ends.

use crate::hooks::{Hooks, Subject};
use agentd_protocol::{HookEvent, HookFinished, InputId, SessionId};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// An event for lifecycle hooks.
#[derive(Debug, Clone, PartialEq)]
pub struct LifecycleCall {
    /// The kind of event.
    pub event: HookEvent,
    /// The session that it belongs to.
    pub session: SessionId,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// The input that is about to join the conversation.
    pub prompt: Option<InputId>,
    /// Additional fields, by name.
    pub details: Vec<(&'static str, Value)>,
}

impl Hooks {
    /// Runs the hooks. Hooks that can prevent something, or make a turn go on, run one after the other until one does
    /// so; the others run in parallel.
    pub async fn tell(&self, call: LifecycleCall, places: Arc<Semaphore>) -> Vec<HookFinished> {
        let event = call.event;
        let subject = call.subject();
        if event.prevents() || matches!(event, HookEvent::Stop | HookEvent::SubagentStop) {
            self.in_turn(event, "", &subject, &places).await
        } else {
            self.at_once(event, "", subject, places).await
        }
    }
}

impl LifecycleCall {
    fn subject(self) -> Subject {
        let mut told = json!({
            "session": self.session,
            "workdir": self.workdir,
            "input_id": self.prompt,
        });
        if let Some(fields) = told.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
            let details = self.details.into_iter();
            fields.extend(details.map(|(name, value)| (name.to_owned(), value)));
        }
        Subject {
            tool_call: None,
            prompt: self.prompt,
            workdir: self.workdir,
            told,
        }
    }
}
