//! `agentd restore`: turns a backup into a data directory. It builds the directory next to the data directory, checks it,
//! and swaps it in with one step: no half restores. The logs keep their authority, because they are the operator's own.

use crate::audit_log::Audit;
use crate::error::NodeError;
use agentd_protocol::{BACKUP_FORMAT, BACKUP_LIST, BackupList, BackupOf, Principal, SummedFile};
use agentd_settings::Settings;
use agentd_store::{Options, StoreLock};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

/// The database in a backup.
const DATABASE: &str = "agentd.db";
/// The maximum length of a backup's file list.
const LONGEST_LIST: u64 = 64 << 20;

/// The result of a restore.
#[derive(Debug)]
pub struct Restored {
    /// The contents of the backup.
    pub of: BackupOf,
    /// Problems that the store already had when the backup was made.
    pub problems: Vec<String>,
    /// The new location of the data directory's former content.
    pub replaced: Option<PathBuf>,
}

/// Replaces a data directory with a backup. `replace` sets existing content aside; without it, content is an error.
///
/// # Errors
/// A daemon uses the directory; it is not empty; the backup is damaged or of another version; an I/O error. In each
/// case nothing has changed.
pub fn restore(
    settings: &Settings,
    archive: &Path,
    data_dir: &Path,
    replace: bool,
) -> Result<Restored, NodeError> {
    let database = database_name(&settings.store.url)?;
    let occupied = occupied(data_dir)?;
    // Held until the end, so that no daemon starts here meanwhile.
    let _lock = match data_dir.exists() {
        true => Some(StoreLock::take(&data_dir.join("agentd.lock"), "")?),
        false => None,
    };
    if occupied && !replace {
        return Err(NodeError::Restore(format!(
            "{} is not empty; choose another --data-dir, or use --replace to set its content aside",
            data_dir.display()
        )));
    }
    let parent = data_dir.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(|error| NodeError::path(parent, error))?;
    let draft = tempfile::Builder::new()
        .prefix(".agentd-restore-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .map_err(|error| NodeError::path(parent, error))?;
    let of = unpack(archive, draft.path())?;
    let io = |error| NodeError::path(draft.path(), error);
    if database != DATABASE {
        fs::rename(draft.path().join(DATABASE), draft.path().join(&database)).map_err(io)?;
    }
    let problems = check(&settings.store.url, draft.path())?;
    note(settings, draft.path(), &of).map_err(io)?;
    sync(draft.path()).map_err(io)?;
    let replaced = put(draft, data_dir, occupied)?;
    Ok(Restored {
        of,
        problems,
        replaced,
    })
}

/// The file name of the database. A database elsewhere cannot be replaced together with the directory.
fn database_name(url: &str) -> Result<String, NodeError> {
    let path = url
        .strip_prefix("sqlite:")
        .map(|rest| rest.strip_prefix("//").unwrap_or(rest));
    let mut parts = path.map(Path::new).into_iter().flat_map(Path::components);
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) => Ok(name.to_string_lossy().into_owned()),
        _ => Err(NodeError::Restore(format!(
            "store.url is {url:?}, but a backup can be restored only into the data directory; \
             set it to \"sqlite:{DATABASE}\""
        ))),
    }
}

/// Whether a directory contains anything except a lock file.
fn occupied(dir: &Path) -> Result<bool, NodeError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        entries => entries.map_err(|error| NodeError::path(dir, error))?,
    };
    for entry in entries {
        let entry = entry.map_err(|error| NodeError::path(dir, error))?;
        if entry.file_name() != "agentd.lock" {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Extracts the files of a backup, and compares them with its list.
fn unpack(archive: &Path, into: &Path) -> Result<BackupOf, NodeError> {
    let bad = |what: String| NodeError::Restore(format!("{}: {what}", archive.display()));
    let file = File::open(archive).map_err(|error| NodeError::path(archive, error))?;
    let mut tar = tar::Archive::new(io::BufReader::new(file));
    let mut found = BTreeSet::new();
    let mut list = None;
    for entry in tar.entries().map_err(|error| bad(error.to_string()))? {
        let mut entry = entry.map_err(|error| bad(error.to_string()))?;
        let path = entry.path().map_err(|error| bad(error.to_string()))?.into_owned();
        if list.is_some() || !entry.header().entry_type().is_file() {
            return Err(bad(format!("{} does not belong in a backup", path.display())));
        }
        if path == Path::new(BACKUP_LIST) {
            let read = serde_json::from_reader::<_, BackupList>(entry.take(LONGEST_LIST));
            list = Some(read.map_err(|error| bad(format!("{BACKUP_LIST}: {error}")))?);
            continue;
        }
        if !expected(&path) {
            return Err(bad(format!("{} does not belong in a backup", path.display())));
        }
        let sum = write(&mut entry, &into.join(&path))
            .map_err(|error| bad(format!("{}: {error}", path.display())))?;
        found.insert(SummedFile {
            path: path.to_string_lossy().into_owned(),
            sha256: sum,
        });
    }
    let list = list
        .ok_or_else(|| bad("it is not a backup, or it is truncated: its file list is missing".to_owned()))?;
    if list.format != BACKUP_FORMAT {
        let (format, version) = (list.format, &list.of.version);
        return Err(bad(format!(
            "it has format {format}, written by agentd {version}; this build reads format {BACKUP_FORMAT}"
        )));
    }
    let listed: BTreeSet<SummedFile> = list.files.into_iter().collect();
    if let Some(file) = listed.symmetric_difference(&found).next() {
        return Err(bad(format!(
            "{} does not match the file list of the backup",
            file.path
        )));
    }
    if !into.join(DATABASE).is_file() {
        return Err(bad(format!("it does not contain {DATABASE}")));
    }
    Ok(list.of)
}

/// Whether a backup may contain this path.
fn expected(path: &Path) -> bool {
    let parts: Vec<&str> = path
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str().unwrap_or_default(),
            _ => "",
        })
        .collect();
    match parts.as_slice() {
        [name] => *name == DATABASE,
        ["logs", name] => name.starts_with("audit"),
        ["blobs", dir, name] => name.len() == 64 && dir.len() == 2 && name.starts_with(dir),
        _ => false,
    }
}

/// Writes one file. Returns its SHA-256.
fn write(from: &mut impl Read, path: &Path) -> io::Result<String> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = from.read(&mut buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        sum.update(bytes);
        file.write_all(bytes)?;
    }
    file.sync_all()?;
    let hex = |mut text: String, byte: u8| {
        let _ = write!(text, "{byte:02x}");
        text
    };
    Ok(sum.finalize().into_iter().fold(String::new(), hex))
}

/// Opens the store once, which checks its version and creates a new witness. Any damage found is older than the backup.
fn check(url: &str, dir: &Path) -> Result<Vec<String>, NodeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| NodeError::path(dir, error))?;
    let store = agentd_store_sqlite::open(url, dir, Options::default())?;
    let checked = runtime.block_on(async {
        let found = store.check().await;
        store.close().await?;
        found
    });
    Ok(checked?.problems)
}

/// Records in the audit file that it continues from a backup.
fn note(settings: &Settings, dir: &Path, of: &BackupOf) -> io::Result<()> {
    let path = dir.join("logs/audit.jsonl");
    if !path.exists() {
        return Ok(());
    }
    let mut audit = Audit::open(&path, settings.log.max_bytes, settings.log.audit_files)?;
    let line = json!({
        "at": agentd_store::Clock::system().now(), "who": Principal::agentd(), "event": "store.restored",
        "why": "agentd restore", "cursor": audit.cursor(), "what": of,
    });
    audit.write(&line)
}

/// Syncs the directory and everything below it to disk.
fn sync(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(dir)?.sync_all()
}

/// The last step, with a single system call. Returns the location of the former content, if any.
fn put(draft: tempfile::TempDir, data_dir: &Path, occupied: bool) -> Result<Option<PathBuf>, NodeError> {
    let failed = |error: io::Error| NodeError::path(data_dir, error);
    let parent = data_dir.parent().unwrap_or(Path::new("/"));
    let synced = || File::open(parent)?.sync_all();
    if !data_dir.exists() {
        fs::rename(draft.path(), data_dir).map_err(failed)?;
        let _ = draft.keep();
        synced().map_err(failed)?;
        return Ok(None);
    }
    renameat_with(CWD, draft.path(), CWD, data_dir, RenameFlags::EXCHANGE).map_err(|error| {
        NodeError::Restore(format!(
            "could not replace {} with the restored directory ({error}); move it away and restore again",
            data_dir.display()
        ))
    })?;
    if !occupied {
        synced().map_err(failed)?;
        return Ok(None);
    }
    let former = draft.keep();
    let mut aside = data_dir.as_os_str().to_owned();
    aside.push(format!(".replaced-{}", agentd_store::Clock::system().now().0));
    let aside = PathBuf::from(aside);
    fs::rename(&former, &aside).map_err(failed)?;
    synced().map_err(failed)?;
    Ok(Some(aside))
}
