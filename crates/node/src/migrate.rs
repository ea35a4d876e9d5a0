//! `agentd migrate`: copies a store from SQLite into PostgreSQL, or back. Here, because only this crate knows both.

use crate::database::password;
use crate::error::NodeError;
use agentd_settings::{StoreConfig, StoreKind, mask_url};
use agentd_store::parts::Limits;
use agentd_store::{Backend, Options, Purpose, StoreError};
use agentd_store_migrate::Migration;
pub use agentd_store_migrate::{Migrated, Progress, Task};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// No caller waits for a batch, so a slow disk is no reason to stop.
const WRITE: Duration = Duration::from_secs(600);

/// The two databases and the task.
#[derive(Debug, Clone)]
pub struct Migrate {
    /// The URL of the source.
    pub from: String,
    /// The URL of the destination.
    pub to: String,
    /// The data directory of the SQLite database; `None`: the directory of its file.
    pub data_dir: Option<PathBuf>,
    /// The node of PostgreSQL on whose machine the directories of the sessions are.
    pub node: Option<String>,
    /// Copy, compare, or say what would be copied.
    pub task: Task,
}

/// Copies a store, or compares two. Calls `tell` after each batch.
///
/// # Errors
/// The URLs are not one of SQLite and one of PostgreSQL; a node is named for a SQLite destination; a database cannot be used, or a daemon uses it; the destination
/// holds other data; the two differ.
pub fn migrate(
    migrate: &Migrate,
    store: &StoreConfig,
    environment: &BTreeMap<String, String>,
    tell: &mut (dyn FnMut(Progress) -> Result<(), StoreError> + Send),
) -> Result<Migrated, NodeError> {
    let kinds = [&migrate.from, &migrate.to].map(|url| of_url(url).kind());
    if !matches!(
        kinds,
        [Some(StoreKind::Sqlite), Some(StoreKind::Postgres)]
            | [Some(StoreKind::Postgres), Some(StoreKind::Sqlite)]
    ) {
        return Err(NodeError::Unsupported(
            "migrate copies between sqlite:FILE and postgres://USER@HOST/DATABASE; for a copy of the same kind use \
             `agentctl backup` or pg_dump"
                .to_owned(),
        ));
    }
    if migrate.node.is_some() && kinds[1] == Some(StoreKind::Sqlite) {
        return Err(NodeError::Unsupported(
            "--node names a node of PostgreSQL; a SQLite database has a single daemon".to_owned(),
        ));
    }
    let password = password(store, environment)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| NodeError::path(Path::new("the runtime"), error))?;
    runtime.block_on(async {
        let open = |url, purpose| open(url, migrate.data_dir.as_deref(), password.as_deref(), purpose);
        let from = open(&migrate.from, Purpose::Source).await?;
        let to = open(&migrate.to, Purpose::Destination).await?;
        let migration = Migration {
            from: from.as_ref(),
            to: to.as_ref(),
            origin: mask_url(&migrate.from),
            node: migrate.node.clone(),
            task: migrate.task,
            limits: Limits::default(),
        };
        let done = agentd_store_migrate::migrate(&migration, tell).await;
        let closed = from.close().await.and(to.close().await);
        let done = done?;
        closed?;
        Ok(done)
    })
}

fn of_url(url: &str) -> StoreConfig {
    StoreConfig {
        url: url.to_owned(),
        ..StoreConfig::default()
    }
}

async fn open(
    url: &str,
    data_dir: Option<&Path>,
    password: Option<&str>,
    purpose: Purpose,
) -> Result<Arc<dyn Backend>, NodeError> {
    let options = Options {
        write_timeout: WRITE,
        purpose,
        ..Options::default()
    };
    let Some(file) = url.strip_prefix("sqlite:") else {
        if url.contains("password=") {
            return Err(NodeError::Unsupported(
                "the password does not belong in the query; give it in store.password_file or store.password_env"
                    .to_owned(),
            ));
        }
        return Ok(agentd_store_postgres::open(url, password, options).await?);
    };
    let file = Path::new(file.strip_prefix("//").unwrap_or(file));
    let file = std::path::absolute(file).map_err(|error| NodeError::path(file, error))?;
    if purpose == Purpose::Source {
        // Opening it would create it.
        std::fs::metadata(&file).map_err(|error| NodeError::path(&file, error))?;
    }
    let data_dir = data_dir.or_else(|| file.parent()).unwrap_or(Path::new("/"));
    Ok(agentd_store_sqlite::open(
        &format!("sqlite:{}", file.display()),
        data_dir,
        options,
    )?)
}
