//! Records the files of the working directory: a worker does it, beside the next model call.

use crate::shell::Shell;
use agentd_actor_kit::{SessionMsg, spawn_worker};
use agentd_checkpoint::Archive;
use agentd_file_work::FileWork;
use agentd_protocol::{SessionId, WorkspaceCheckpointed};
use agentd_turn::{Answer, QuestionId};
use std::path::Path;
use std::time::Duration;

/// How long an effect may wait for the files before it.
const WITHIN: Duration = Duration::from_secs(60);

impl Shell {
    /// Starts to record the files.
    pub(crate) async fn checkpoint(&mut self, id: QuestionId) {
        let archive = self.services.checkpoints.archive(Path::new(&self.workdir()));
        let (to, session) = (self.me.clone(), self.session);
        let work = async move {
            let answer = Box::new(Answer::Checkpoint(take(archive, session).await));
            let _ = to.cast(SessionMsg::Answered { id, answer });
        };
        let worker = spawn_worker(work, self.me.get_cell()).await;
        self.asked(id, worker);
    }
}

async fn take(archive: Archive, session: SessionId) -> Result<WorkspaceCheckpointed, String> {
    let files = FileWork::of_session(&session.to_string());
    let directory = archive.directory().to_owned();
    let taken = files.run(&directory, WITHIN, move || archive.take());
    let taken = taken.await.map_err(|failed| failed.to_string())?;
    let taken = taken.map_err(|error| error.to_string())?;
    Ok(WorkspaceCheckpointed {
        tree: taken.tree.to_string(),
        left_out: taken.left_out,
    })
}
