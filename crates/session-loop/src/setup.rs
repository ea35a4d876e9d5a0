//! Sets up the session's own workspace: a worker runs the operator's commands.

use crate::shell::Shell;
use agentd_actor_kit::{SessionMsg, spawn_worker};
use agentd_turn::{Answer, QuestionId};
use std::path::PathBuf;
use std::sync::Arc;

impl Shell {
    /// Starts the setup commands. They have a time limit of their own.
    pub(crate) async fn set_up(&mut self, id: QuestionId) {
        let (setup, to) = (Arc::clone(&self.services.setup), self.me.clone());
        let workspace = PathBuf::from(self.workdir());
        let work = async move {
            let answer = Box::new(Answer::Setup(setup.prepare(&workspace).await));
            let _ = to.cast(SessionMsg::Answered { id, answer });
        };
        let worker = spawn_worker(work, self.me.get_cell()).await;
        self.asked(id, worker);
    }
}
