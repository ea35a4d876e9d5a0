//! Records the files of the working directory: a worker does it while the next model call runs.

use crate::shell::Shell;
use agentd_actor_kit::{SessionMsg, spawn_worker};
use agentd_checkpoint::{Archive, Tree};
use agentd_file_work::FileWork;
use agentd_kept_files::{FileStore, NewFiles};
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
        let keeping = self.keeping();
        let work = async move {
            let mut taken = take(archive.clone(), session).await;
            if let (Ok(taken), Some(keeping)) = (&mut taken, keeping) {
                keeping.keep(session, archive, taken).await;
            }
            let answer = Box::new(Answer::Checkpoint(taken));
            let _ = to.cast(SessionMsg::Answered { id, answer });
        };
        let worker = spawn_worker(work, self.me.get_cell()).await;
        self.asked(id, worker);
    }
}

/// What it takes to put recorded files into the store.
struct Keeping {
    store: FileStore,
    before: Option<Tree>,
    bytes: u64,
    base: Option<String>,
}

impl Shell {
    /// Files of a workspace of the session's own go into the store, too, if the operator wants that.
    fn keeping(&self) -> Option<Keeping> {
        let durable = self.core.agent.durable();
        let workspace = durable.settings.as_ref()?.workspace.as_ref()?;
        Some(Keeping {
            store: self.services.files.clone()?,
            before: durable
                .files
                .kept
                .as_deref()
                .and_then(|tree| Tree::parse(tree).ok()),
            bytes: durable.files.kept_bytes,
            base: workspace.base.clone(),
        })
    }
}

impl Keeping {
    async fn keep(self, session: SessionId, archive: Archive, taken: &mut WorkspaceCheckpointed) {
        let Ok(tree) = Tree::parse(&taken.tree) else {
            return;
        };
        let new = NewFiles {
            session,
            archive,
            tree,
            before: self.before,
            bytes: self.bytes,
            base: self.base,
        };
        match self.store.keep(new).await {
            Ok(kept) => taken.kept = kept,
            Err(why) => {
                tracing::warn!(%session, why, "the store has no copy of the session's newest files");
                taken.not_kept = Some(why);
            }
        }
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
        kept: None,
        not_kept: None,
    })
}
