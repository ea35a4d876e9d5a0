//! Repositories whose history names what a rule denies to read. Commands could read it from git's objects, whatever hides the
//! files, so the object stores are hidden as well.

use crate::annex::Annex;
use crate::hidden::{Hidden, History};
use agentd_git::{GitError, Run, lines};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of commits to list: each takes 41 bytes.
const MAX_COMMITS: usize = 1_000_000;

/// A repository that commands can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Repository {
    git_dir: PathBuf,
    /// Where a checkout of it lies or would lie: rules name paths there.
    trees: Vec<PathBuf>,
}

impl Repository {
    /// A git directory in the working directory: a `.git`, that of a submodule, or a bare repository.
    fn within(workdir: &Path, git_dir: PathBuf) -> Self {
        let parts: Vec<_> = git_dir.iter().collect();
        let git = parts.iter().rposition(|part| part.eq_ignore_ascii_case(".git"));
        let around = |at: usize| parts.iter().take(at).collect::<PathBuf>();
        let trees = match git {
            Some(at) if at + 1 == parts.len() => vec![around(at)],
            // A submodule's name is usually its path.
            Some(at) => vec![
                around(at).join(parts.iter().skip(at + 2).collect::<PathBuf>()),
                workdir.to_owned(),
            ],
            None => vec![git_dir.clone(), workdir.to_owned()],
        };
        Self { git_dir, trees }
    }

    /// Whether a commit, or the index, names a path that a rule denies to read.
    ///
    /// # Errors
    /// Git cannot say it.
    async fn names_denied(
        &self,
        (hidden, history): (&Hidden, &History),
        workdir: &Path,
        until: Instant,
    ) -> Result<bool, GitError> {
        let left = || until.saturating_duration_since(Instant::now());
        let run = |args: &[&str], left: Duration| {
            // It enters the repository on its own: a start that blocks there would block this thread.
            Run::new(Path::new("/"), left, args.to_vec()).repository(&self.git_dir, None)
        };
        // All commits, also those that no reference reaches any longer, and those of borrowed objects.
        let (mut commits, mut count) = (Vec::new(), 0);
        let objects = [
            "cat-file",
            "--batch-all-objects",
            "--unordered",
            "--batch-check=%(objecttype) %(objectname)",
        ];
        let few = lines(&history.git, run(&objects, left()), |line| {
            if let Some(id) = line.strip_prefix(b"commit ") {
                commits.extend_from_slice(id);
                commits.push(b'\n');
                count += 1;
            }
            count < MAX_COMMITS
        });
        if !few.await? {
            return Ok(true);
        }
        // Each object with the first path that leads to it. Content that also has an allowed path is no secret.
        let named = [
            "rev-list",
            "--objects",
            "--missing=allow-any",
            "--indexed-objects",
            "--all",
            "--stdin",
        ];
        let allowed = lines(&history.git, run(&named, left()).input(commits), |line| {
            let name = line.splitn(2, |byte| *byte == b' ').nth(1).unwrap_or_default();
            name.is_empty() || !self.is_denied(hidden, workdir, name)
        });
        Ok(!allowed.await?)
    }

    fn is_denied(&self, hidden: &Hidden, workdir: &Path, name: &[u8]) -> bool {
        let name = Path::new(OsStr::from_bytes(name));
        self.trees
            .iter()
            .any(|tree| hidden.matches(workdir, &tree.join(name)))
    }
}

/// Finds the repositories in a working directory and around it whose history names what a rule denies to read. What git cannot
/// tell within the time limit counts as denied (I7).
pub(crate) async fn denied(
    hidden: &Hidden,
    workdir: &Path,
    git_dirs: Vec<PathBuf>,
    annex: &Annex,
) -> DeniedHistory {
    let mut found = DeniedHistory::default();
    let Some(history) = hidden.history() else {
        return found;
    };
    let until = Instant::now() + history.within;
    let mut repositories: Vec<_> = git_dirs
        .into_iter()
        .map(|git_dir| Repository::within(workdir, git_dir))
        .collect();
    repositories.extend(annex.repository.iter().map(|git_dir| Repository {
        git_dir: git_dir.clone(),
        trees: vec![workdir.to_owned()],
    }));
    for repository in repositories {
        let denied = repository.names_denied((hidden, history), workdir, until).await;
        if denied.unwrap_or(true) {
            found.stores.push(repository.git_dir.join("objects"));
            found.repositories.push(repository.git_dir);
        }
    }
    if !found.stores.is_empty() {
        // The repository may borrow its objects there.
        found.stores.extend(stores_of(annex));
        found.stores.sort();
        found.stores.dedup();
    }
    found
}

/// Repositories of a session whose objects it must not read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeniedHistory {
    /// Directories to hide.
    pub(crate) stores: Vec<PathBuf>,
    /// The git directories that git cannot use without them.
    pub(crate) repositories: Vec<PathBuf>,
}

/// The object stores of an annex.
fn stores_of(annex: &Annex) -> impl Iterator<Item = PathBuf> {
    let all = annex.read.iter().chain(&annex.write);
    all.map(|path| match path.ends_with("objects") {
        true => path.clone(),
        false => path.join("objects"),
    })
    .filter(|store| store.is_dir())
}
