//! Restores files and the conversation: a worker does it, the loop records the outcome.

use crate::error::LoopError;
use crate::load::conversation_at;
use crate::shell::Shell;
use crate::workers::ReworkJob;
use agentd_actor_kit::{Earlier, SessionMsg};
use agentd_protocol::UndoApplied;
use agentd_store::Blob;
use agentd_tool_executor::{PutBack, put_back};
use agentd_turn::{OpenHistory, QuestionId, Reworked};
use std::path::{Path, PathBuf};

impl Shell {
    /// Starts the work. Its intent is already durable.
    pub(crate) async fn rework(&mut self, id: QuestionId, work: OpenHistory) {
        let job = ReworkJob {
            to: self.me.clone(),
            id,
            session: self.session,
            work,
            workdir: PathBuf::from(self.workdir()),
            executor: self.services.tools.clone(),
            store: self.services.store.clone(),
            archive: self.services.checkpoints.archive(Path::new(&self.workdir())),
            within: self.services.timing.load,
        };
        let worker = self.services.workers.rework(job).await;
        self.asked(id, worker);
    }

    /// The work ended.
    pub(crate) async fn reworked(
        &mut self,
        id: QuestionId,
        reworked: Reworked,
        blobs: Vec<Blob>,
        earlier: Option<Box<Earlier>>,
    ) -> Result<(), LoopError> {
        self.core.reworked(id, reworked, blobs, earlier);
        self.run_followers().await
    }
}

/// The worker's part. It builds the conversation first, so that nothing is written if that fails.
pub(crate) async fn work(job: ReworkJob) {
    let (id, seq, started) = (job.id, job.work.seq, job.work.started);
    let mut earlier = None;
    if let Some(upto) = started.rewind_to {
        match conversation_at(&job.store, job.within, job.session, upto).await {
            Ok(then) => earlier = Some(Box::new(then)),
            Err(error) => {
                return tell(
                    &job.to,
                    id,
                    Reworked::not_done(&error.to_string()),
                    Vec::new(),
                    None,
                );
            }
        }
    }
    if started.files.is_empty() && started.trees.is_empty() {
        let nothing = UndoApplied {
            undoes: Vec::new(),
            undoes_below: Vec::new(),
            undo_id: String::new(),
            changes: Vec::new(),
            trees: None,
            paths: Vec::new(),
        };
        return tell(&job.to, id, Reworked::Done(nothing), Vec::new(), earlier);
    }
    let done = put_back(PutBack {
        session: job.session,
        workdir: job.workdir,
        executor: job.executor,
        store: job.store,
        started,
        seq,
        archive: job.archive,
    })
    .await;
    match done {
        Ok((applied, blobs)) => tell(&job.to, id, Reworked::Done(applied), blobs, earlier),
        Err(failed) => tell(&job.to, id, Reworked::Failed(failed), Vec::new(), None),
    }
}

fn tell(
    to: &ractor::ActorRef<SessionMsg>,
    id: QuestionId,
    reworked: Reworked,
    blobs: Vec<Blob>,
    earlier: Option<Box<Earlier>>,
) {
    let _ = to.cast(SessionMsg::Reworked {
        id,
        reworked: Box::new(reworked),
        blobs,
        earlier,
    });
}
