//! Restores files for a person: with a permit like a writing tool, beneath the working directory.

use crate::pre_images;
use crate::run::{EXECUTOR_PAUSE, EXECUTOR_TRIES, blobs};
use agentd_actor_kit::{Done, Handle, StoreMsg, ToolMsg, ToolPermit};
use agentd_fault_points as fault;
use agentd_file_work::{Failed, FileWork};
use agentd_protocol::{
    EffectClass, HistoryFailed, HistoryStarted, SessionId, ToolOutcome, ToolStatus, UndoApplied,
};
use agentd_store::Blob;
use agentd_tools::{Beneath, kept_content};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::sleep;

/// The timeout for restoring.
const PUT_BACK_WITHIN: Duration = Duration::from_secs(60);

/// A request to restore files.
#[derive(Debug)]
pub struct PutBack {
    /// The owning session.
    pub session: SessionId,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// Admits it.
    pub executor: Handle<ToolMsg>,
    /// Holds the earlier contents and receives the current ones.
    pub store: Handle<StoreMsg>,
    /// The files.
    pub started: HistoryStarted,
}

/// Restores the files. The blobs hold the contents before that; they belong in the append of the result.
///
/// # Errors
/// Why nothing was changed.
pub async fn put_back(job: PutBack) -> Result<(UndoApplied, Vec<Blob>), HistoryFailed> {
    let Some(permit) = admission(&job).await else {
        return Err(failed("the tool executor is not running, or too many calls wait"));
    };
    fault::point(fault::REWORK_BEFORE).map_err(|injected| failed(&injected.to_string()))?;
    let contents = kept_content(&job.started.files, &blobs(&job.store)).await?;
    let (started, workdir, max) = (job.started, job.workdir, permit.limits.max_file_bytes);
    let dir = workdir.clone();
    let files = FileWork::of_session(&job.session.to_string());
    let work = files.run(&dir, PUT_BACK_WITHIN, move || {
        let workdir = Beneath::open(&workdir).map_err(|error| failed(&error.to_string()))?;
        agentd_tools::put_back(&started, contents, &workdir, max)
    });
    let (applied, images) = work.await.map_err(|error| unfinished(&error))??;
    // Only the daemon's log reports contents that could not be stored: this undo cannot be undone.
    let mut outcome = ToolOutcome::text(ToolStatus::Ok, "");
    fault::point(fault::REWORK_AFTER).map_err(|injected| failed(&injected.to_string()))?;
    let blobs = pre_images::keep(images, (&job.store, job.session), &mut outcome).await;
    Ok((applied, blobs))
}

async fn admission(job: &PutBack) -> Option<ToolPermit> {
    for _ in 0..EXECUTOR_TRIES {
        let (done, permit) = Done::channel();
        job.executor.cast(ToolMsg::Acquire {
            session: job.session,
            class: EffectClass::Write,
            workdir: job.workdir.clone(),
            done,
        });
        if let Ok(permit) = permit.await {
            return Some(permit);
        }
        sleep(EXECUTOR_PAUSE).await;
    }
    None
}

/// The error of unfinished work: its thread may still restore files.
fn unfinished(why: &Failed) -> HistoryFailed {
    HistoryFailed {
        code: "E_TIMEOUT".to_owned(),
        message: format!("gave up restoring the files: {why}. Some may be restored; see `agentctl diff`."),
    }
}

fn failed(why: &str) -> HistoryFailed {
    HistoryFailed {
        code: "E_TOOL".to_owned(),
        message: format!("cannot restore the files: {why}. Nothing was changed."),
    }
}
