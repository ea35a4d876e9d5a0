//! Restores files for a person: with a permit like a writing tool, beneath the working directory.

use crate::pre_images;
use crate::run::{EXECUTOR_PAUSE, EXECUTOR_TRIES, blobs};
use agentd_actor_kit::{Done, Handle, StoreMsg, ToolMsg, ToolPermit};
use agentd_checkpoint::{Archive, Back, Error, Tree, TreeChange};
use agentd_fault_points as fault;
use agentd_file_work::{Failed, FileWork};
use agentd_protocol::{
    EffectClass, HistoryFailed, HistoryStarted, Seq, SessionId, ToolOutcome, ToolStatus, TreeChanged,
    UndoApplied,
};
use agentd_store::Blob;
use agentd_tools::{Beneath, kept_content, undo_id};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::sleep;

/// The timeout for restoring.
const PUT_BACK_WITHIN: Duration = Duration::from_secs(60);
/// The timeout for restoring recorded files, of which there may be many.
const RESTORE_WITHIN: Duration = Duration::from_secs(100);
/// The most paths that the log names.
const MOST_NAMED: usize = 100;

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
    /// Where that is in the log.
    pub seq: Seq,
    /// The recorded files of the working directory.
    pub archive: Archive,
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
    if !job.started.trees.is_empty() {
        return trees(job).await.map(|applied| (applied, Vec::new()));
    }
    let contents = kept_content(&job.started.files, &blobs(&job.store)).await?;
    let (started, workdir, max) = (job.started, job.workdir, permit.limits.max_file_bytes);
    let of = format!("{}-{}", job.session, job.seq);
    let dir = workdir.clone();
    let files = FileWork::of_session(&job.session.to_string());
    let work = files.run(&dir, PUT_BACK_WITHIN, move || {
        let workdir = Beneath::open(&workdir).map_err(|error| failed(&error.to_string()))?;
        agentd_tools::put_back(&started, contents, (&workdir, max), &of)
    });
    let (applied, images) = work.await.map_err(|error| unfinished(&error))??;
    // Only the daemon's log reports contents that could not be stored: this undo cannot be undone.
    let mut outcome = ToolOutcome::text(ToolStatus::Ok, "");
    fault::point(fault::REWORK_AFTER).map_err(|injected| failed(&injected.to_string()))?;
    let blobs = pre_images::keep(images, (&job.store, job.session), &mut outcome).await;
    Ok((applied, blobs))
}

/// Reverts recorded changes of the working directory.
async fn trees(job: PutBack) -> Result<UndoApplied, HistoryFailed> {
    let PutBack {
        session,
        workdir,
        started,
        seq,
        archive,
        ..
    } = job;
    let files = FileWork::of_session(&session.to_string());
    let key = format!("{session}-{seq}");
    let of = key.clone();
    let (changes, force) = (changes(&started.trees)?, started.force);
    let work = files.run(&workdir, RESTORE_WITHIN, move || {
        let back = Back {
            key: &key,
            changes: &changes,
            force,
        };
        archive.restore(&back)
    });
    let done = work.await.map_err(|error| unfinished(&error))?;
    let done = done.map_err(|error| match error {
        Error::Conflict(_) => HistoryFailed {
            code: "E_UNDO_CONFLICT".to_owned(),
            message: format!("{error}. Nothing was changed."),
        },
        Error::Halfway { .. } => HistoryFailed {
            code: "E_TOOL".to_owned(),
            message: format!("cannot restore the files: {error}; see `agentctl diff`."),
        },
        Error::Unrecorded(_) => HistoryFailed {
            code: "E_TOOL".to_owned(),
            message: format!("{error}."),
        },
        other => failed(&other.to_string()),
    })?;
    fault::point(fault::REWORK_AFTER).map_err(|injected| failed(&injected.to_string()))?;
    let named = done.files.iter().take(MOST_NAMED);
    Ok(UndoApplied {
        undoes: started.undoes,
        undoes_below: started.undoes_below,
        undo_id: undo_id(&of, done.after.as_str()),
        changes: Vec::new(),
        paths: named.map(|path| path.to_string_lossy().into_owned()).collect(),
        trees: Some(TreeChanged {
            before: done.before.to_string(),
            after: done.after.to_string(),
        }),
    })
}

/// Reads the names of recorded changes.
fn changes(trees: &[TreeChanged]) -> Result<Vec<TreeChange>, HistoryFailed> {
    let one = |changed: &TreeChanged| {
        Ok(TreeChange {
            before: Tree::parse(&changed.before)?,
            after: Tree::parse(&changed.after)?,
        })
    };
    let read: Result<_, Error> = trees.iter().map(one).collect();
    read.map_err(|error| failed(&error.to_string()))
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
