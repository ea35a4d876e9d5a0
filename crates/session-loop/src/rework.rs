//! Restores files and the conversation: a worker does it, the loop records the outcome.

use crate::error::LoopError;
use crate::load::conversation_at;
use crate::shell::Shell;
use crate::work::Task;
use crate::workers::ReworkJob;
use agentd_actor_kit::{Down, Earlier, SessionMsg, Work};
use agentd_protocol::{HistoryFailed, Seq, UndoApplied};
use agentd_store::Blob;
use agentd_tool_executor::{PutBack, put_back};
use agentd_turn::{Input, OpenHistory, Reworked};
use std::path::PathBuf;

impl Shell {
    /// Starts the work. Its intent is already durable.
    pub(crate) async fn rework(&mut self, work: OpenHistory) {
        let seq = work.seq;
        let job = ReworkJob {
            to: self.me.clone(),
            session: self.session,
            work,
            workdir: PathBuf::from(self.workdir()),
            executor: self.services.tools.clone(),
            store: self.services.store.clone(),
            within: self.services.timing.load,
        };
        match self.services.workers.rework(job).await {
            Ok(worker) => self.running.add(worker, Work::Rework { seq }),
            Err(error) => {
                let failed = not_done(&format!("it could not be started: {error}"));
                self.core.push(Task::of(Input::Reworked(failed)));
            }
        }
        self.live.touch();
    }

    /// The work ended.
    pub(crate) async fn reworked(
        &mut self,
        seq: Seq,
        reworked: Reworked,
        blobs: Vec<Blob>,
        earlier: Option<Box<Earlier>>,
    ) -> Result<(), LoopError> {
        self.core.reworked(seq, reworked, blobs, earlier);
        self.run_followers().await
    }

    /// The worker is down. If its last message came first, the work is no longer open.
    pub(crate) async fn rework_down(&mut self, seq: Seq, why: &Down) -> Result<(), LoopError> {
        self.reworked(seq, not_done(&why.to_string()), Vec::new(), None)
            .await
    }
}

fn not_done(why: &str) -> Reworked {
    Reworked::Failed(HistoryFailed {
        code: "E_TOOL".to_owned(),
        message: format!("cannot restore the files: {why}; some may already be restored"),
    })
}

/// The worker's part. It builds the conversation first, so that nothing is written if that fails.
pub(crate) async fn work(job: ReworkJob) {
    let OpenHistory { seq, started } = job.work;
    let mut earlier = None;
    if let Some(upto) = started.rewind_to {
        match conversation_at(&job.store, job.within, job.session, upto).await {
            Ok(then) => earlier = Some(Box::new(then)),
            Err(error) => return tell(&job.to, seq, not_done(&error.to_string()), Vec::new(), None),
        }
    }
    if started.files.is_empty() {
        let nothing = UndoApplied {
            undoes: Vec::new(),
            undoes_below: Vec::new(),
            undo_id: String::new(),
            changes: Vec::new(),
        };
        return tell(&job.to, seq, Reworked::Done(nothing), Vec::new(), earlier);
    }
    let done = put_back(PutBack {
        session: job.session,
        workdir: job.workdir,
        executor: job.executor,
        store: job.store,
        started,
    })
    .await;
    match done {
        Ok((applied, blobs)) => tell(&job.to, seq, Reworked::Done(applied), blobs, earlier),
        Err(failed) => tell(&job.to, seq, Reworked::Failed(failed), Vec::new(), None),
    }
}

fn tell(
    to: &ractor::ActorRef<SessionMsg>,
    seq: Seq,
    reworked: Reworked,
    blobs: Vec<Blob>,
    earlier: Option<Box<Earlier>>,
) {
    let _ = to.cast(SessionMsg::Reworked {
        seq,
        reworked: Box::new(reworked),
        blobs,
        earlier,
    });
}
