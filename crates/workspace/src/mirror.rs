//! One bare mirror for each URL. All sessions that clone it borrow its objects, and one fetch serves all who wait for it.

use crate::error::{WorkspaceError, at};
use crate::inspect::unknown_reference;
use crate::url::protocol;
use crate::workspaces::private;
use agentd_file_work::FileWork;
use agentd_git::{GitEnvironment, GitError, Run, ask, git};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The reference of a mirror that holds the commit of the server's `HEAD`.
const SERVER_HEAD: &str = "refs/agentd/head";

/// The mirrors of a node.
#[derive(Debug)]
pub(crate) struct Mirrors {
    dir: PathBuf,
    locks: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Option<Instant>>>>>,
}

/// A mirror that is up to date.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub(crate) dir: PathBuf,
    pub(crate) base: String,
}

impl Mirrors {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            locks: Mutex::default(),
        }
    }

    /// Whether a path is in one of them.
    pub(crate) fn hold(&self, path: &Path) -> bool {
        path.starts_with(&self.dir)
    }

    /// The directory of a URL's mirror.
    fn place(&self, url: &str) -> PathBuf {
        let mut name = String::new();
        for byte in Sha256::digest(url.as_bytes()).iter().take(16) {
            let _ = write!(name, "{byte:02x}");
        }
        self.dir.join(format!("{name}.git"))
    }

    /// Fetches a URL, unless a fetch that began after this call has done so, and finds the commit to begin at.
    pub(crate) async fn fetched(
        &self,
        environment: &GitEnvironment,
        url: &str,
        reference: Option<&str>,
        until: Instant,
    ) -> Result<Mirror, WorkspaceError> {
        let asked = Instant::now();
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(url.to_owned()).or_default())
        };
        let slow = || WorkspaceError::Limit {
            message: format!("{url} could not be fetched in time"),
            hint: "try again, or raise workspace.make_limit".to_owned(),
        };
        let dir = self.place(url);
        {
            let mut last = timeout_at(until, lock.lock()).await.map_err(|_| slow())?;
            if last.is_none_or(|last| last < asked) {
                let began = Instant::now();
                self.make(&dir, url).await?;
                fetch(environment, &dir, url, until.saturating_duration_since(began)).await?;
                *last = Some(began);
            }
        }
        let within = until.saturating_duration_since(Instant::now());
        let base = find(environment, (&dir, url), reference, within).await?;
        Ok(Mirror { dir, base })
    }

    async fn make(&self, dir: &Path, url: &str) -> Result<(), WorkspaceError> {
        let (dir, url) = (dir.to_owned(), url.to_owned());
        let write = move || -> std::io::Result<()> {
            if dir.join("url").exists() {
                return Ok(());
            }
            // Whatever is there is the beginning of an earlier try.
            match fs::remove_dir_all(&dir) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            private(&dir)?;
            for made in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
                fs::create_dir_all(dir.join(made))?;
            }
            fs::write(dir.join("HEAD"), "ref: refs/heads/none\n")?;
            fs::write(
                dir.join("config"),
                "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
            )?;
            fs::write(dir.join("url"), url)
        };
        let files = FileWork::of_directory(&self.dir);
        let done = files.run(&self.dir, Duration::from_secs(10), write).await?;
        done.map_err(at(&self.dir))
    }
}

async fn fetch(
    environment: &GitEnvironment,
    dir: &Path,
    url: &str,
    within: Duration,
) -> Result<(), WorkspaceError> {
    let words = [
        "fetch",
        "--quiet",
        "--prune",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--end-of-options",
        url,
        "+refs/heads/*:refs/heads/*",
        "+refs/tags/*:refs/tags/*",
        "+HEAD:refs/agentd/head",
    ];
    let run = Run::new(dir, within, words)
        .repository(dir, None)
        .remote(protocol(url));
    git(environment, run)
        .await
        .map(drop)
        .map_err(|error| match error {
            GitError::Failed { message, .. } => WorkspaceError::refused(
                "fetch_failed",
                format!("cannot fetch {url}: {message}"),
                "check the URL, and that the user of the daemon may read it",
            ),
            other => other.into(),
        })
}

async fn find(
    environment: &GitEnvironment,
    (dir, url): (&Path, &str),
    reference: Option<&str>,
    within: Duration,
) -> Result<String, WorkspaceError> {
    let names = match reference {
        None => vec![SERVER_HEAD.to_owned()],
        Some(name) => vec![
            format!("refs/heads/{name}"),
            format!("refs/tags/{name}"),
            name.to_owned(),
        ],
    };
    for name in names {
        let wanted = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let found = ask(environment, Run::new(dir, within, words).repository(dir, None)).await?;
        if found.success {
            return Ok(found.text());
        }
    }
    Err(unknown_reference(reference.unwrap_or("HEAD"), url))
}
