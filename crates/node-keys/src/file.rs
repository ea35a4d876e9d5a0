//! The file of a node's private key: only the daemon's user may read it.

use crate::key::{NodeKey, unhex};
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The name of the file in the data directory.
const FILE: &str = "node.key";
/// A new key, until it has the name of the file.
const NEW: &str = "node.key.new";
/// What others may do with the file: nothing.
const OTHERS: u32 = 0o177;
/// The key and the end of the line.
const LONGEST: u64 = 256;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("cannot use the key of this node, {}: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
    /// Others can read or write the file.
    #[error(
        "the key of this node, {}, has the mode {mode:04o}, so others may have read it: delete it, or set its mode to 0600 if \
         you know that nobody did", path.display()
    )]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file belongs to another user.
    #[error("the key of this node, {}, belongs to user {owner}: give it to user {user}, or delete it", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The daemon's user.
        user: u32,
    },
    /// There is no key in it.
    #[error("{} is not the key of a node: restore it, or delete it to have a new one made", path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
    /// A key needs random numbers.
    #[error("the system has no random numbers")]
    NoEntropy,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> KeyFileError + '_ {
    move |why| KeyFileError::Io {
        path: path.to_path_buf(),
        why,
    }
}

/// Reads the key of the node with this data directory. The first call makes it.
///
/// # Errors
/// The file cannot be read or written, others can read it, or it holds no key.
pub fn read_or_create(data_dir: &Path) -> Result<NodeKey, KeyFileError> {
    let path = data_dir.join(FILE);
    match read(&path) {
        Err(KeyFileError::Io { why, .. }) if why.kind() == io::ErrorKind::NotFound => {
            let key = NodeKey::random().ok_or(KeyFileError::NoEntropy)?;
            replace(data_dir, &key)?;
            read(&path)
        }
        read => read,
    }
}

/// Writes a key over that of the node with this data directory: after a crash, the file holds one of the two.
///
/// # Errors
/// The file cannot be written.
pub fn replace(data_dir: &Path, key: &NodeKey) -> Result<(), KeyFileError> {
    let (path, new) = (data_dir.join(FILE), data_dir.join(NEW));
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&new)(error)),
        _ => {}
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let write = || {
        let mut file = File::from(open(&new, flags, Mode::from_raw_mode(0o600))?);
        file.write_all(format!("{}\n", key.expose()).as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        File::open(data_dir)?.sync_all()
    };
    write().map_err(failed(&path))
}

fn read(path: &Path) -> Result<NodeKey, KeyFileError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty()).map_err(|error| failed(path)(error.into()))?;
    let file = File::from(file);
    let found = file.metadata().map_err(failed(path))?;
    judge(
        path,
        (found.uid(), found.mode()),
        rustix::process::geteuid().as_raw(),
    )?;
    let mut text = String::new();
    let content = || KeyFileError::Content { path: path.into() };
    if !found.is_file() {
        return Err(content());
    }
    file.take(LONGEST)
        .read_to_string(&mut text)
        .map_err(failed(path))?;
    unhex(text.trim_end())
        .and_then(NodeKey::from_seed)
        .ok_or_else(content)
}

/// Refuses a file that is not only the user's.
pub(crate) fn judge(path: &Path, (owner, mode): (u32, u32), user: u32) -> Result<(), KeyFileError> {
    let path = path.to_path_buf();
    if owner != user {
        return Err(KeyFileError::Owner { path, owner, user });
    }
    match mode & 0o7777 {
        mode if mode & OTHERS != 0 => Err(KeyFileError::Mode { path, mode }),
        _ => Ok(()),
    }
}
