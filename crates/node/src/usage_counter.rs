//! Counts usage by day: reads the log, and keeps the counts in a file with the place up to which it read.

use crate::log_follower::{LogReader, OnPanic};
use agentd_api::{Api, DailyUsage};
use async_trait::async_trait;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// The file in the data directory.
pub(crate) const FILE: &str = "usage-daily.json";
/// How often the file is written, if something was spent. After a crash, the events since then are read again.
const EVERY: Duration = Duration::from_secs(10);

/// The counts of an earlier daemon. Without its file they begin now.
pub(crate) fn read(data_dir: &Path, committed: u64) -> DailyUsage {
    let file = std::fs::read(data_dir.join(FILE));
    DailyUsage::read(file.ok().as_deref(), committed)
}

/// Counts the events of the log.
#[derive(Debug)]
pub(crate) struct UsageCounter(pub(crate) Arc<DailyUsage>);

#[async_trait]
impl LogReader for UsageCounter {
    const NAME: &'static str = "the usage counter";
    const VIEWER: u64 = u64::MAX - 2;
    const QUEUE: usize = 4_096;
    const ON_PANIC: OnPanic = OnPanic::Skip;

    fn take(&mut self, cursor: u64, stored: &[u8]) -> io::Result<()> {
        self.0.take(cursor, stored);
        Ok(())
    }
}

/// Keeps the counts in their file.
pub(crate) async fn keep(api: &Arc<Api>, daily: &Arc<DailyUsage>, path: &Path) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut written = String::new();
    loop {
        ticks.tick().await;
        if let Err(fault) = api.settle_usage().await {
            tracing::debug!(%fault, "could not group the usage of today");
        }
        let Ok(json) = daily.to_json() else { continue };
        if json == written {
            continue;
        }
        match save(path.to_owned(), json.clone()).await {
            Ok(()) => written = json,
            Err(error) => tracing::warn!(file = %path.display(), %error, "could not write the usage by day"),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the data directory is the daemon's own")]
async fn save(path: PathBuf, json: String) -> io::Result<()> {
    tokio::task::spawn_blocking(move || {
        let new = path.with_extension("new");
        let mut options = OpenOptions::new();
        let mut file: File = options
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(json.as_bytes())?;
        file.sync_data()?;
        std::fs::rename(&new, &path)
    })
    .await
    .map_err(io::Error::other)?
}
