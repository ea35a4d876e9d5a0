//! Looks at the repository that a directory is in.

use crate::error::WorkspaceError;
use agentd_file_work::FileWork;
use agentd_git::{GitEnvironment, Run, ask, git, text};
use rustix::fs::{Mode, OFlags, open};
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a file in which git notes a path.
const MAX_TEXT: u64 = 1 << 16;

/// A local repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top of its work tree; real path.
    pub top: PathBuf,
    /// Git's common directory: objects and references; real path.
    pub common: PathBuf,
    /// The commit that is checked out; `None` before the first one.
    pub head: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// Whether its objects have SHA-256 names.
    pub sha256: bool,
}

/// The real path of something that exists.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    let place = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

/// Finds the repository that contains a directory; `None` if there is none. Only commands that run nothing see its
/// configuration. Without a `.git` there, git does not run at all: most directories are no repositories.
pub(crate) async fn inspect(
    environment: &GitEnvironment,
    dir: &Path,
    within: Duration,
) -> Result<Option<Repository>, WorkspaceError> {
    let files = FileWork::of_directory(dir);
    let here = dir.to_owned();
    if !files.run(dir, within, move || has_git(&here)).await? {
        return Ok(None);
    }
    let asked = [
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        "--git-common-dir",
        "--show-object-format",
    ];
    let found = ask(environment, Run::new(dir, within, asked)).await?;
    if !found.success {
        return Err(unusable(dir, &found.message));
    }
    let text = found.text();
    let mut lines = text.lines();
    let (Some(top), Some(common), format) = (lines.next(), lines.next(), lines.next()) else {
        return Err(unusable(dir, "git did not say where it is"));
    };
    let said = (PathBuf::from(top), PathBuf::from(common), dir.to_owned());
    let places = files.run(dir, within, move || {
        let (top, common, dir) = said;
        let path =
            |path: &Path| real(path).map_err(|error| unusable(&dir, &format!("{}: {error}", path.display())));
        let (top, common) = (path(&top)?, path(&common)?);
        belongs(&dir, &top, &common)?;
        Ok::<_, WorkspaceError>((top, common))
    });
    let (top, common) = places.await??;
    let head = ask(
        environment,
        Run::new(dir, within, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]),
    );
    let branch = ask(
        environment,
        Run::new(dir, within, ["symbolic-ref", "--quiet", "--short", "HEAD"]),
    );
    let (head, branch) = tokio::try_join!(head, branch)?;
    Ok(Some(Repository {
        top,
        common,
        head: head.success.then(|| head.text()),
        branch: branch.success.then(|| branch.text()),
        sha256: format == Some("sha256"),
    }))
}

/// Whether a directory above this one claims to be a repository.
fn has_git(dir: &Path) -> bool {
    dir.ancestors()
        .any(|dir| fs::symlink_metadata(dir.join(".git")).is_ok())
}

fn unusable(dir: &Path, why: &str) -> WorkspaceError {
    WorkspaceError::refused(
        "bad_repository",
        format!("cannot use the repository at {}: {why}", dir.display()),
        "see what `git status` says there, or use the workspace kind shared",
    )
}

/// Refuses a `.git` that leads to a repository elsewhere: a workspace lets commands read that repository's objects, and
/// a directory that an agent could write must not choose them.
fn belongs(dir: &Path, top: &Path, common: &Path) -> Result<(), WorkspaceError> {
    let home = common
        .ancestors()
        .find(|part| part.file_name().is_some_and(|name| name == ".git"))
        .and_then(Path::parent);
    let inside = home.is_some_and(|home| top.starts_with(home));
    if inside || points_back(top, common) {
        return Ok(());
    }
    Err(unusable(
        dir,
        &format!(
            "its .git leads to {}, which is not a part of it and does not list it as a worktree",
            common.display()
        ),
    ))
}

/// Whether a repository lists a directory as one of its worktrees.
fn points_back(top: &Path, common: &Path) -> bool {
    let own = real(&top.join(".git")).ok();
    let worktrees = fs::read_dir(common.join("worktrees"));
    worktrees.into_iter().flatten().flatten().any(|entry| {
        let said = text(&entry.path().join("gitdir"), MAX_TEXT).unwrap_or_default();
        let said = Path::new(said.trim());
        said.is_absolute() && real(said).ok() == own
    })
}

impl Repository {
    /// Refuses a repository whose objects lie elsewhere: commands could not read them.
    pub(crate) fn has_own_objects(&self) -> Result<(), WorkspaceError> {
        let alternates = self.common.join("objects/info/alternates");
        match text(&alternates, MAX_TEXT) {
            Some(text) if text.trim().is_empty() => Ok(()),
            _ => Err(WorkspaceError::refused(
                "borrowed_objects",
                format!(
                    "the repository borrows objects from another one ({}), which commands could not read",
                    alternates.display()
                ),
                "give it its own objects (git repack -a -d, then remove that file), or use the kind shared",
            )),
        }
    }
}

/// The commit that a name stands for.
pub(crate) async fn commit(
    environment: &GitEnvironment,
    repository: &Repository,
    reference: Option<&str>,
    within: Duration,
) -> Result<String, WorkspaceError> {
    let Some(name) = reference else {
        return repository.head.clone().ok_or_else(|| {
            WorkspaceError::refused(
                "no_commit",
                format!("the repository {} has no commit yet", repository.top.display()),
                "commit something first, or use the kind shared",
            )
        });
    };
    let wanted = format!("{name}^{{commit}}");
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
    let found = ask(environment, Run::new(&repository.top, within, words)).await?;
    if found.success {
        return Ok(found.text());
    }
    Err(unknown_reference(name, &repository.top.display().to_string()))
}

pub(crate) fn unknown_reference(name: &str, place: &str) -> WorkspaceError {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
    WorkspaceError::refused(
        "unknown_ref",
        format!("{place} has no branch, tag or commit {shown:?}"),
        "list them with `git branch -a` and `git tag`",
    )
}

/// The references of a repository, as `(name, object)`.
pub(crate) async fn references(
    environment: &GitEnvironment,
    repository: &Repository,
    within: Duration,
) -> Result<Vec<(String, String)>, WorkspaceError> {
    let words = [
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        "refs/heads",
        "refs/tags",
    ];
    let listed = git(environment, Run::new(&repository.top, within, words)).await?;
    let line = |line: &str| {
        line.split_once(' ')
            .map(|(object, name)| (name.to_owned(), object.to_owned()))
    };
    Ok(listed.text().lines().filter_map(line).collect())
}
