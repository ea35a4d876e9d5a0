//! Lifecycle hooks: reports inputs, the start and end of sessions, and the ends of turns to hooks, in one worker each.

use crate::shell::Shell;
use agentd_actor_kit::{SessionMsg, spawn_worker};
use agentd_hooks::LifecycleCall;
use agentd_protocol::{Block, InputId};
use agentd_turn::{Answer, LifecycleEvent, QuestionId};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

impl Shell {
    /// Notifies the hooks.
    pub(crate) async fn ask_lifecycle_hooks(&mut self, id: QuestionId, event: LifecycleEvent) {
        let call = self.lifecycle_call(event);
        let (hooks, places, to) = (
            self.services.hooks.clone(),
            Arc::clone(&self.places),
            self.me.clone(),
        );
        let work = async move {
            let answer = Box::new(Answer::Hooks(hooks.tell(call, places).await));
            let _ = to.cast(SessionMsg::Answered { id, answer });
        };
        let worker = spawn_worker(work, self.me.get_cell()).await;
        self.asked(id, worker);
    }

    fn lifecycle_call(&self, topic: LifecycleEvent) -> LifecycleCall {
        let event = topic.event();
        let (prompt, details) = match topic {
            LifecycleEvent::SessionStart => (None, self.of_session()),
            LifecycleEvent::SessionEnd { reason } => (None, vec![("reason", json!(reason))]),
            LifecycleEvent::Prompt(input) => (Some(input), vec![("prompt", json!(self.text_of(input)))]),
            LifecycleEvent::Stop { text, rounds, .. } => {
                (None, vec![("text", json!(text)), ("rounds", json!(rounds))])
            }
            LifecycleEvent::Notification {
                notice,
                message,
                approval,
            } => (None, of_notice(notice.as_str(), &message, json!(approval))),
            LifecycleEvent::Compaction { tokens, target, .. } => (
                None,
                vec![("tokens", json!(tokens)), ("target_tokens", json!(target))],
            ),
        };
        LifecycleCall {
            event,
            session: self.session,
            workdir: PathBuf::from(self.workdir()),
            prompt,
            details,
        }
    }

    fn of_session(&self) -> Vec<(&'static str, Value)> {
        let settings = self.core.agent.durable().settings.as_ref();
        settings.map_or_else(Vec::new, |settings| {
            vec![
                ("title", json!(settings.title)),
                ("model", json!(settings.model)),
                ("mode", json!(settings.mode)),
            ]
        })
    }

    fn text_of(&self, input: InputId) -> String {
        let text = |block: &Block| match block {
            Block::Text { text } => Some(text.clone()),
            Block::Image { .. } => Some("[image]".to_owned()),
            Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Unknown => {
                None
            }
        };
        let texts: Vec<_> = self
            .core
            .transcript
            .waiting(input)
            .iter()
            .filter_map(text)
            .collect();
        texts.join("\n")
    }
}

fn of_notice(kind: &str, message: &str, approval: Value) -> Vec<(&'static str, Value)> {
    let mut details = vec![("kind", json!(kind)), ("message", json!(message))];
    if !approval.is_null() {
        details.push(("approval", approval));
    }
    details
}
