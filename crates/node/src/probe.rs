//! Asks each actor for its load, and measures the time to the answer.

use crate::children::{Child, Handles};
use crate::root::Part;
use agentd_actor_kit::{FeedMsg, GateMsg, Handle, Load, ModelMsg, StoreMsg, SupervisorMsg, ToolMsg};
use agentd_api::{ActorRow, IndexRow};
use agentd_index::{IndexMsg, IndexStatus};
use std::time::Duration;
use tokio::time::Instant;

/// How long an actor may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The row of a child.
pub(crate) async fn row(handles: &Handles, part: Part) -> ActorRow {
    let asked = Instant::now();
    let load = load(handles, &part.child).await;
    let took = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
    // A service has no mailbox.
    let is_actor = !matches!(part.child, Child::Service(_));
    ActorRow {
        name: part.child.to_string(),
        running: part.running,
        restarts: part.restarts,
        busy: load.flatten().map(|load| load.running),
        queued: load.flatten().map(|load| load.waiting),
        answer_us: is_actor.then_some(took),
    }
}

/// `None`: it does not answer, or has no mailbox. `Some(None)`: it answers, and does not say more.
async fn load(handles: &Handles, child: &Child) -> Option<Option<Load>> {
    match child {
        Child::Feed => {
            let sessions = Vec::new();
            let asked = handles
                .feed
                .call(PATIENCE, |done| FeedMsg::Deciders { sessions, done });
            asked.await.ok().map(|_| None)
        }
        Child::SessionStore => {
            let asked = handles.store.call(PATIENCE, |done| StoreMsg::Load { done });
            asked.await.ok().map(Some)
        }
        Child::ModelClient(provider) => {
            let client: &Handle<ModelMsg> = handles.models.get(provider)?;
            let status = client
                .call(PATIENCE, |done| ModelMsg::Status { done })
                .await
                .ok()?;
            Some(Some(Load {
                running: u64::from(status.running),
                waiting: u64::from(status.waiting),
            }))
        }
        Child::Indexer => {
            let all = directories(handles).await?;
            let (running, rest): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.running);
            Some(Some(Load {
                running: running.len() as u64,
                waiting: rest.iter().filter(|one| !one.progress.current).count() as u64,
            }))
        }
        Child::ToolExecutor => {
            let asked = handles.tools.call(PATIENCE, |done| ToolMsg::Load { done });
            asked.await.ok().map(Some)
        }
        Child::PermissionGate => {
            let asked = handles.gate.call(PATIENCE, |done| GateMsg::Rules { done });
            asked.await.ok().map(|_| None)
        }
        Child::LoopSupervisor => {
            let asked = handles
                .supervisor
                .call(PATIENCE, |done| SupervisorMsg::Stats { done });
            let stats = asked.await.ok()?;
            Some(Some(Load {
                running: stats.hot,
                waiting: stats.timed,
            }))
        }
        Child::Service(_) => None,
    }
}

/// The indexes; none if the indexer does not answer.
pub(crate) async fn indexes(handles: &Handles) -> Vec<IndexRow> {
    let all = directories(handles).await.unwrap_or_default();
    all.into_iter().map(index).collect()
}

async fn directories(handles: &Handles) -> Option<Vec<IndexStatus>> {
    let asked = handles.indexer.call(PATIENCE, |done| IndexMsg::Status { done });
    asked.await.ok()
}

fn index(status: IndexStatus) -> IndexRow {
    let progress = status.progress;
    IndexRow {
        workdir: status.workdir.display().to_string(),
        state: match (status.running, progress.current, &progress.failed) {
            (true, ..) => "indexing",
            (_, false, _) => "waiting",
            (_, true, Some(_)) => "failed",
            (_, true, None) => "current",
        },
        files: progress.files,
        bytes: progress.bytes,
        failed: progress.failed,
    }
}
