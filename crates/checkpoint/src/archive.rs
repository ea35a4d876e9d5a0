//! The recorded files of one directory.

use crate::error::{Error, at};
use crate::git::Git;
use crate::stats::Stats;
use crate::take::hex;
use agentd_git::{GitEnvironment, text};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Bytes of a file in which git notes paths or settings.
const MOST_TEXT: u64 = 1 << 20;

/// The bounds of one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A larger file is left out.
    pub max_file_bytes: u64,
    /// A directory with more files is not recorded.
    pub max_files: u64,
    /// New and changed files may have at most this many bytes together.
    pub max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_bytes: 32 << 20,
            max_files: 200_000,
            max_bytes: 2 << 30,
        }
    }
}

/// Keeps the recorded files of all directories.
#[derive(Debug, Clone)]
pub struct Keeper {
    root: PathBuf,
    limits: Limits,
    secret: Secret,
    environment: Arc<GitEnvironment>,
    workspaces: Option<PathBuf>,
}

/// Whether a content has a credential: such a file is left out (I8).
pub type Secret = fn(&[u8]) -> bool;

impl Keeper {
    /// Keeps them below this directory.
    #[must_use]
    pub fn new(root: &Path, limits: Limits) -> Self {
        Self {
            root: root.to_owned(),
            limits,
            secret: |_| false,
            environment: Arc::default(),
            workspaces: None,
        }
    }

    /// Runs git with this environment.
    #[must_use]
    pub fn with_git(self, environment: GitEnvironment) -> Self {
        Self {
            environment: Arc::new(environment),
            ..self
        }
    }

    /// Names the directory of all workspaces. In each, `SESSION/TREE` is a directory of agentd's own.
    #[must_use]
    pub fn with_workspaces(self, workspaces: &Path) -> Self {
        Self {
            workspaces: Some(workspaces.to_owned()),
            ..self
        }
    }

    /// Leaves out files with credentials.
    #[must_use]
    pub fn without(self, secret: Secret) -> Self {
        Self { secret, ..self }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory for packs of what many sessions begin with.
    #[must_use]
    pub fn bases(&self) -> PathBuf {
        self.root.join("bases")
    }

    /// The archive of a directory. Does not access it.
    #[must_use]
    pub fn archive(&self, directory: &Path) -> Archive {
        let digest = Sha256::digest(directory.as_os_str().as_bytes());
        let name = hex(digest.get(..16).unwrap_or_default());
        Archive {
            repository: self.root.join(format!("{name}.git")),
            lock: self.root.join(format!("{name}.lock")),
            directory: directory.to_owned(),
            limits: self.limits,
            secret: self.secret,
            environment: Arc::clone(&self.environment),
            workspaces: self.workspaces.clone(),
        }
    }
}

/// The recorded files of one directory.
#[derive(Debug, Clone)]
pub struct Archive {
    pub(crate) repository: PathBuf,
    lock: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) secret: Secret,
    environment: Arc<GitEnvironment>,
    workspaces: Option<PathBuf>,
}

/// Only one thread of one daemon changes an archive at a time; dropping it lets the next one.
#[derive(Debug)]
pub(crate) struct Locked {
    _file: OwnedFd,
}

impl Archive {
    pub(crate) fn git(&self) -> Git {
        self.git_of(&self.repository)
    }

    pub(crate) fn git_of(&self, repository: &Path) -> Git {
        Git::new(&self.environment, repository)
    }

    /// The directory whose files these are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Waits for the lock of the archive.
    pub(crate) fn lock(&self) -> Result<Locked, Error> {
        let parent = self.lock.parent().unwrap_or(Path::new("/"));
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(parent).map_err(at(parent))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = open(&self.lock, flags, Mode::from_raw_mode(0o600)).map_err(at(&self.lock))?;
        flock(&file, FlockOperation::LockExclusive).map_err(at(&self.lock))?;
        Ok(Locked { _file: file })
    }

    /// Creates the repository if it does not exist: whole, or not at all.
    pub(crate) fn prepare(&self, _locked: &Locked) -> Result<(), Error> {
        if self.repository.is_dir() {
            return Ok(());
        }
        let new = self.repository.with_extension("new");
        let _ = fs::remove_dir_all(&new);
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&new)
            .map_err(at(&new))?;
        self.git_of(&new).init()?;
        if let Some(objects) = self.borrowed() {
            let file = new.join("objects/info/alternates");
            fs::create_dir_all(new.join("objects/info")).map_err(at(&file))?;
            let mut line = objects.as_os_str().as_bytes().to_vec();
            line.push(b'\n');
            fs::write(&file, line).map_err(at(&file))?;
        }
        let about = new.join("description");
        let mut text = self.directory.as_os_str().as_bytes().to_vec();
        text.push(b'\n');
        fs::write(&about, text).map_err(at(&about))?;
        fs::rename(&new, &self.repository).map_err(at(&self.repository))
    }

    /// The objects of the repository that the directory is in, if any. Only their place is taken from there: what is read from
    /// them is checked against its name.
    fn borrowed(&self) -> Option<PathBuf> {
        let own = self.workspace();
        let git_dir = match &own {
            Some(tree) => git_dir_at(tree.join(".git")),
            None => git_dir(&self.directory),
        }?;
        let common = common_dir(&git_dir);
        if has_sha256(&common) {
            return None;
        }
        let objects = common.join("objects");
        // The objects of a clone go with it, and commands can write them. Those that it borrows stay.
        let objects = match own {
            Some(_) if common == git_dir => alternates(&objects)?,
            _ => objects,
        };
        // One line of `alternates` is one path.
        let usable = objects.is_dir() && !objects.as_os_str().as_bytes().contains(&b'\n');
        usable.then_some(objects)
    }

    /// The tree of the workspace that the directory is, or is part of.
    pub(crate) fn workspace(&self) -> Option<PathBuf> {
        let all = self.workspaces.as_deref()?;
        let mut parts = self.directory.strip_prefix(all).ok()?.components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(session)), Some(Component::Normal(tree))) => {
                Some(all.join(session).join(tree))
            }
            _ => None,
        }
    }

    /// The state of the directory as it was recorded last.
    pub(crate) fn stats(&self) -> Stats {
        Stats::load(&self.repository.join("stats"))
    }

    /// The bytes that the archive takes on disk, without those that it borrows.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        let packs = fs::read_dir(self.repository.join("objects/pack"));
        let sizes = packs.into_iter().flatten().flatten();
        let sizes = sizes.filter_map(|entry| entry.metadata().ok());
        sizes.map(|about| about.len()).sum()
    }

    /// Removes everything recorded for the directory.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        let locked = self.lock()?;
        match fs::remove_dir_all(&self.repository) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(&self.repository)(error)),
            _ => {
                let _ = fs::remove_file(&self.lock);
                drop(locked);
                Ok(())
            }
        }
    }
}

/// Whether the objects of a repository have SHA-256 names. Recorded files have SHA-1 names.
pub(crate) fn has_sha256(common: &Path) -> bool {
    let config = text(&common.join("config"), MOST_TEXT).unwrap_or_default();
    config.to_ascii_lowercase().contains("objectformat")
}

/// The directory of the objects that a clone borrows.
fn alternates(objects: &Path) -> Option<PathBuf> {
    let text = text(&objects.join("info/alternates"), MOST_TEXT)?;
    let first = text.lines().next().filter(|line| line.starts_with('/'))?;
    Some(PathBuf::from(first))
}

/// The `.git` directory of the repository that a directory is in.
fn git_dir(directory: &Path) -> Option<PathBuf> {
    let mut names = directory.ancestors().map(|dir| dir.join(".git"));
    git_dir_at(names.find(|path| path.exists())?)
}

fn git_dir_at(dot_git: PathBuf) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = text(&dot_git, MOST_TEXT)?;
    let path = text.strip_prefix("gitdir:")?.trim_end_matches('\n').trim_start();
    Some(dot_git.parent()?.join(path))
}

/// Where a worktree shares the objects of its repository.
pub(crate) fn common_dir(git_dir: &Path) -> PathBuf {
    match text(&git_dir.join("commondir"), MOST_TEXT) {
        Some(text) if !text.is_empty() => git_dir.join(text.trim_end_matches('\n')),
        _ => git_dir.to_owned(),
    }
}
