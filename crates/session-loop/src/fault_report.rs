//! Faulted sub-agents: the parent receives the fault as the result, as it would otherwise wait forever. A sub-agent that
//! is resumed later finds that its result is no longer wanted.

use crate::family::SessionMessenger;
use crate::retry_policy::{pauses, spent_of};
use crate::services::Services;
use agentd_actor_kit::SupervisorMsg;
use agentd_protocol::{SessionId, TurnError};
use agentd_turn::Ended;
use ractor::ActorRef;
use std::sync::Arc;

/// Reports a faulted session to its parent, if it has one, in a separate task.
pub fn tell_of_fault(
    services: Arc<Services>,
    supervisor: ActorRef<SupervisorMsg>,
    session: SessionId,
    why: &str,
) {
    let message = format!("its session is faulted: {why}");
    let post = SessionMessenger {
        services,
        supervisor,
        session,
    };
    tokio::spawn(async move { post.fell(message).await });
}

impl SessionMessenger {
    async fn fell(&self, message: String) {
        for pause in pauses() {
            if let Ok(row) = self.row(self.session).await {
                let Some(summary) = row.map(|row| row.summary) else {
                    return;
                };
                let Some(parent) = summary.parent else { return };
                let error = TurnError {
                    class: "faulted".to_owned(),
                    message,
                };
                let ended = Ended {
                    reason: None,
                    text: String::new(),
                    error: Some(error),
                    spent: spent_of(&summary),
                };
                self.report(parent, self.session, ended).await;
                return;
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!(session = %self.session, "cannot read the parent of a faulted session");
    }
}
