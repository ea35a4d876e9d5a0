//! Opens the workspaces of the node, and removes what an earlier daemon left of their making and removal, and what is old
//! or too much.

use crate::children::ChildArgs;
use crate::error::NodeError;
use crate::node::NodeArgs;
use agentd_actor_kit::{Clock, Handle, StoreMsg};
use agentd_kept_files::FileStore;
use agentd_protocol::{RunState, SessionId, Timestamp};
use agentd_settings::{Keep, Live, Loaded, WorkspaceConfig};
use agentd_store::Backend;
use agentd_workspace::{GitEnvironment, WorkspaceError, Workspaces};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Call it when this daemon owns the data directory and no session runs yet.
pub(crate) async fn open(args: &NodeArgs, backend: &Arc<dyn Backend>) -> Result<Workspaces, NodeError> {
    let failed = |error: agentd_workspace::WorkspaceError| NodeError::Unsupported(error.to_string());
    let workspaces =
        Workspaces::open(&args.paths.data_dir, environment(&args.environment)).map_err(failed)?;
    clean_up(&workspaces, backend).await;
    Ok(workspaces)
}

/// Removes the remains of workspaces. What cannot be removed now is tried again later.
pub(crate) async fn clean_up(workspaces: &Workspaces, backend: &Arc<dyn Backend>) {
    // A store that does not answer proves nothing, so the workspace stays.
    let exists = |session: SessionId| {
        let backend = Arc::clone(backend);
        async move { backend.row(session).await.map_or(true, |row| row.is_some()) }
    };
    match workspaces.clean_up(exists).await {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, "removed the remains of workspaces"),
        Err(error) => tracing::warn!(%error, "could not look for the remains of workspaces"),
    }
}

/// What git sees of the daemon's environment. Call it when this daemon owns the data directory: its mark names that.
pub(crate) fn environment(variables: &BTreeMap<String, String>) -> GitEnvironment {
    let value = |name: &str| variables.get(name).map(Into::into);
    let remote = GitEnvironment::REMOTE.iter();
    let (default, (mark, mark_value)) = (GitEnvironment::default(), agentd_sandbox::mark_of_daemon());
    GitEnvironment {
        mark: Some((mark.to_owned(), mark_value.into())),
        path: value("PATH").unwrap_or(default.path),
        home: value("HOME"),
        remote: remote
            .filter_map(|name| Some(((*name).to_owned(), value(name)?)))
            .collect(),
    }
}

/// Keeps the files of workspaces in the store, if the operator wants that, and brings them back.
pub(crate) fn kept(args: &ChildArgs, store: Handle<StoreMsg>) -> Option<FileStore> {
    let loaded = args.settings();
    let settings = &loaded.settings.workspace;
    let rules = agentd_kept_files::Rules {
        keep_bytes: (settings.keep == Keep::Store).then_some(settings.keep_bytes),
        making: agentd_api::making_limits(settings),
    };
    Some(FileStore {
        keeper: args.checkpoints.clone(),
        workspaces: args.workspaces.clone()?,
        store,
        clock: args.clock,
        rules,
    })
}

/// The delay before the first round, to keep the start fast.
const FIRST: Duration = Duration::from_secs(600);
/// The interval between rounds.
const EVERY: Duration = Duration::from_secs(3_600);
/// How long measuring one workspace may take.
const MEASURE_WITHIN: Duration = Duration::from_secs(120);
const DAY_MS: u64 = 86_400_000;

/// Removes remains, and workspaces that are old or too many, until it is dropped.
pub(crate) async fn upkeep(
    workspaces: Workspaces,
    backend: Arc<dyn Backend>,
    settings: Live<Loaded>,
    clock: Clock,
) {
    let mut rounds = tokio::time::interval_at(tokio::time::Instant::now() + FIRST, EVERY);
    loop {
        rounds.tick().await;
        clean_up(&workspaces, &backend).await;
        let config = settings.now().settings.workspace.clone();
        if let Err(error) = round(&workspaces, &backend, &config, clock.now()).await {
            tracing::warn!(%error, "could not look for workspaces to remove; retrying in an hour");
        }
    }
}

/// A workspace of a closed session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Idle {
    session: SessionId,
    /// When its session last changed.
    since: Timestamp,
    bytes: u64,
}

async fn round(
    workspaces: &Workspaces,
    backend: &Arc<dyn Backend>,
    config: &WorkspaceConfig,
    now: Timestamp,
) -> Result<(), WorkspaceError> {
    let (mut idle, mut total) = (Vec::new(), 0);
    for record in workspaces.list().await?.records {
        let bytes = if config.disk_budget == 0 {
            0
        } else {
            let usage = workspaces.usage(record.session, MEASURE_WITHIN).await;
            usage.map(|usage| usage.bytes).unwrap_or_default()
        };
        total += bytes;
        if let Ok(Some(row)) = backend.row(record.session).await
            && row.summary.status.state == RunState::Closed
        {
            let (session, since) = (record.session, row.summary.updated_at);
            idle.push(Idle {
                session,
                since,
                bytes,
            });
        }
    }
    idle.sort_by_key(|one| (one.since, one.session));
    let mut over = total.saturating_sub(if config.disk_budget == 0 {
        u64::MAX
    } else {
        config.disk_budget
    });
    for one in idle {
        if !is_old(&one, config, now) && over == 0 {
            continue;
        }
        match workspaces.remove(one.session, false).await {
            Ok(_) => {
                over = over.saturating_sub(one.bytes);
                tracing::info!(session = %one.session, "removed the workspace of a closed session");
            }
            Err(error) => tracing::info!(session = %one.session, %error, "a workspace stays"),
        }
    }
    if over > 0 {
        tracing::warn!(
            bytes = over,
            "workspaces take more than workspace.disk_budget; the rest belongs to open sessions or has work that was not fetched"
        );
    }
    Ok(())
}

fn is_old(one: &Idle, config: &WorkspaceConfig, now: Timestamp) -> bool {
    config.keep_days > 0 && now.since_ms(one.since) >= u64::from(config.keep_days) * DAY_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_old_after_its_days_and_never_without_any() {
        let one = Idle {
            session: SessionId::NIL,
            since: Timestamp(1_000),
            bytes: 0,
        };
        let old = |keep_days, now| {
            let config = WorkspaceConfig {
                keep_days,
                ..WorkspaceConfig::default()
            };
            is_old(&one, &config, Timestamp(now))
        };
        assert!(!old(2, 1_000 + 2 * DAY_MS - 1));
        assert!(old(2, 1_000 + 2 * DAY_MS));
        assert!(!old(0, u64::MAX));
    }
}
