//! Hooks that are told of what is no tool call: inputs, the session's life, the end of a turn.

use crate::hooks::{Hooks, Subject};
use agentd_protocol::{HookEvent, HookFinished, InputId, SessionId};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Something that hooks are told of.
#[derive(Debug, Clone, PartialEq)]
pub struct Occasion {
    /// What it is.
    pub event: HookEvent,
    /// Whose.
    pub session: SessionId,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// The input that is to join.
    pub prompt: Option<InputId>,
    /// What more is told, by its name.
    pub details: Vec<(&'static str, Value)>,
}

impl Hooks {
    /// Tells the hooks. Those that may prevent something, or have a turn go on, are asked one after the other up to the
    /// first that does; the others hear of it side by side.
    pub async fn tell(&self, occasion: Occasion, places: Arc<Semaphore>) -> Vec<HookFinished> {
        let event = occasion.event;
        let subject = occasion.subject();
        if event.prevents() || matches!(event, HookEvent::Stop | HookEvent::SubagentStop) {
            self.in_turn(event, "", &subject, &places).await
        } else {
            self.at_once(event, "", subject, places).await
        }
    }
}

impl Occasion {
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
