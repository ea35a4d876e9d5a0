//! `node.backup`: a consistent copy of the data directory, staged in a subdirectory and fetched in parts. The daemon
//! writes nowhere else; the client writes the file with its own permissions.

use crate::api::Api;
use crate::sight::Caller;
use agentd_protocol::{
    Backup, BackupEndParams, BackupFile, BackupOf, BackupPart, BackupPartParams, Fault, Timestamp,
};
use agentd_store::{Backend, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The staging directory in the data directory; at startup it is cleared of what a killed daemon left there.
pub const STAGING: &str = "backup";
/// The time limit of a copy, which takes as long as the disk needs.
const COPY: Duration = Duration::from_secs(30 * 60);
/// A copy that is not fetched for this long makes room for the next one.
const PATIENCE_MS: u64 = 120_000;
/// The maximum number of bytes in a part.
const PART_BYTES: u64 = 2 << 20;
/// Attempts to read the audit files without a rename in between.
const TRIES: usize = 20;

/// A copy that a client is fetching. Dropping it removes its files.
#[derive(Debug)]
pub(crate) struct Staged {
    id: String,
    dir: PathBuf,
    files: BTreeMap<String, u64>,
    touched: Timestamp,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // The next start removes any files left.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Api {
    /// Makes a copy; one at a time.
    pub(crate) async fn backup(&self, who: &Caller) -> Result<Backup, Fault> {
        let busy = || {
            let fault = Fault::busy("backing_up", "another backup is in progress");
            fault.hint("try again later; agentd drops a backup that no client fetches for two minutes")
        };
        let Ok(only) = Arc::clone(&self.copying).try_acquire_owned() else {
            return Err(busy());
        };
        let now = self.parts.clock.now();
        {
            let mut staged = self.staged();
            if staged
                .as_ref()
                .is_some_and(|it| now.since_ms(it.touched) < PATIENCE_MS)
            {
                return Err(busy());
            }
            *staged = None;
        }
        let id = self.parts.clock.stamp().append().to_string();
        let data_dir = PathBuf::from(&self.parts.facts.data_dir);
        let dir = data_dir.join(STAGING).join(&id);
        let backend = Arc::clone(&self.parts.backend);
        let made = tokio::spawn(async move {
            let copied = copy(backend.as_ref(), &data_dir, dir).await;
            drop(only);
            copied
        });
        let made = tokio::time::timeout(COPY, made).await;
        let (dir, files, copied) = made
            .map_err(|_| Fault::timeout("backup_slow", "the copy took too long"))?
            .map_err(|error| Fault::internal("backup_failed", error.to_string()))??;
        tracing::info!(by = %who, cursor = copied.cursor, "backup made");
        let what = json!({"cursor": copied.cursor, "sessions": copied.sessions});
        self.record(who.principal(), "backup.made", &what);
        let file = |(path, bytes): (&String, &u64)| BackupFile {
            path: path.clone(),
            bytes: *bytes,
        };
        let backup = Backup {
            backup: id.clone(),
            of: BackupOf {
                at: now,
                version: self.parts.facts.version.clone(),
                cursor: copied.cursor,
                sessions: copied.sessions,
            },
            files: files.iter().map(file).collect(),
        };
        *self.staged() = Some(Staged {
            id,
            dir: dir.keep(),
            files,
            touched: self.parts.clock.now(),
        });
        Ok(backup)
    }

    /// Reads a part of a file of the copy.
    pub(crate) async fn backup_part(&self, params: BackupPartParams) -> Result<BackupPart, Fault> {
        let path = {
            let mut staged = self.staged();
            let found = staged.as_mut().filter(|it| it.id == params.backup);
            let staged = found.ok_or_else(|| {
                Fault::not_found("no_backup", "this backup no longer exists").hint("make a new backup")
            })?;
            staged.touched = self.parts.clock.now();
            let known = staged.files.contains_key(&params.path);
            known.then(|| staged.dir.join(&params.path)).ok_or_else(|| {
                Fault::not_found(
                    "no_backup_file",
                    format!("the backup has no file {:?}", params.path),
                )
            })?
        };
        let most = (self.loaded().settings.limits.max_frame_bytes / 2).min(PART_BYTES) / 3 * 3;
        let data = blocking(move || {
            let file = File::open(&path)?;
            let mut bytes = vec![0; usize::try_from(most).unwrap_or(0)];
            let mut filled = 0;
            while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                match file.read_at(rest, params.offset + filled as u64)? {
                    0 => break,
                    read => filled += read,
                }
            }
            bytes.truncate(filled);
            Ok(STANDARD.encode(bytes))
        });
        let data = data
            .await
            .map_err(|error| Fault::storage("backup_unreadable", error.to_string()))?;
        Ok(BackupPart { data })
    }

    /// Removes the copy.
    pub(crate) fn backup_end(&self, params: &BackupEndParams) {
        let mut staged = self.staged();
        if staged.as_ref().is_some_and(|it| it.id == params.backup) {
            *staged = None;
        }
    }

    fn staged(&self) -> std::sync::MutexGuard<'_, Option<Staged>> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A staging directory that is removed on drop unless it is kept.
#[derive(Debug)]
struct Draft(PathBuf);

impl Draft {
    fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

type Files = BTreeMap<String, u64>;

/// Copies the audit files first, so that they never have an event that the database lacks.
async fn copy(
    backend: &dyn Backend,
    data_dir: &Path,
    dir: PathBuf,
) -> Result<(Draft, Files, agentd_store::Copied), Fault> {
    let (draft, logs) = (Draft(dir), data_dir.join("logs"));
    let to = draft.0.join("logs");
    blocking(move || audit_files(&logs, &to))
        .await
        .map_err(|error| failed(&error))?;
    let copied = backend.copy_into(&draft.0).await?;
    let dir = draft.0.clone();
    let files = blocking(move || {
        let mut files = Files::new();
        list(&dir, &dir, &mut files)?;
        Ok(files)
    });
    Ok((draft, files.await.map_err(|error| failed(&error))?, copied))
}

fn failed(error: &io::Error) -> Fault {
    let fault = match error.kind() {
        ErrorKind::StorageFull => Fault::from(StoreError::Full),
        _ => Fault::storage("backup_failed", error.to_string()),
    };
    fault.hint("a backup needs space for a copy of the database in the data directory")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the data directory, not a session's files"
)]
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

/// Copies the chain of audit files as of one moment: their names are the same before and afterwards.
fn audit_files(logs: &Path, to: &Path) -> io::Result<()> {
    for _ in 0..TRIES {
        match fs::remove_dir_all(to) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
        let before = match agentd_audit::files(logs) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            files => files?,
        };
        let mut copies = before
            .iter()
            .filter_map(|file| Some((file, to.join(file.file_name()?))));
        match copies.try_for_each(|(file, copy)| fs::copy(file, copy).map(drop)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) if agentd_audit::files(logs)? == before => return Ok(()),
            _ => {}
        }
    }
    Err(io::Error::new(
        ErrorKind::ResourceBusy,
        "the audit files keep changing",
    ))
}

fn list(dir: &Path, root: &Path, files: &mut Files) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), root, files)?;
        } else if let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) {
            files.insert(path.to_owned(), entry.metadata()?.len());
        }
    }
    Ok(())
}
