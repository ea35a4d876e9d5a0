//! A person's repository, and the workspaces of a node next to it.

use agentd_protocol::{SessionId, Stamp, Timestamp, WorkspaceChoice, WorkspaceRequest};
use agentd_workspace::{Asked, GitEnvironment, Limits, Made, WorkspaceError, Workspaces, plan};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A machine with one repository.
pub(crate) struct Kit {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) all: Workspaces,
    stamp: Stamp,
}

/// Runs a person's git. Returns its output.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let done = agentd_process_tests::git(dir).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        done.status.success(),
        "git {args:?} in {}: {errors}",
        dir.display()
    );
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

pub(crate) fn limits() -> Limits {
    Limits {
        within: Duration::from_secs(120),
        include: Vec::new(),
        max_bytes: 1 << 30,
        max_files: 10_000,
    }
}

#[expect(clippy::disallowed_methods, reason = "tests find git as a person does")]
pub(crate) fn environment() -> GitEnvironment {
    GitEnvironment {
        path: std::env::var("PATH").unwrap().into(),
        ..GitEnvironment::default()
    }
}

impl Kit {
    /// A repository with two commits, an executable, a link, a directory and an ignored file.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let all = Workspaces::open(&dir.path().join("data"), environment()).unwrap();
        let kit = Self {
            dir,
            all,
            stamp: Stamp::new(Timestamp(5), 9),
        };
        let app = kit.app();
        fs::create_dir_all(app.join("src")).unwrap();
        git(&app, &["init", "-q"]);
        fs::write(app.join("README.md"), "one\n").unwrap();
        fs::write(app.join("src/main.rs"), "fn main() {}\n").unwrap();
        fs::write(app.join("run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(
            app.join("run.sh"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        std::os::unix::fs::symlink("README.md", app.join("link")).unwrap();
        fs::write(app.join(".gitignore"), "built\n.env\n").unwrap();
        git(&app, &["add", "."]);
        git(&app, &["commit", "-qm", "one"]);
        git(&app, &["tag", "v1"]);
        fs::write(app.join("README.md"), "two\n").unwrap();
        git(&app, &["commit", "-qam", "two"]);
        fs::write(app.join(".env"), "KEY=1\n").unwrap();
        kit
    }

    pub(crate) fn app(&self) -> PathBuf {
        self.dir.path().join("app")
    }

    pub(crate) fn session(&mut self) -> SessionId {
        self.stamp.session()
    }

    /// Makes the workspace that a client asks for in a directory.
    pub(crate) async fn ask(
        &mut self,
        workdir: &Path,
        request: &WorkspaceRequest,
        limits: Limits,
    ) -> Result<(SessionId, Made), WorkspaceError> {
        let repository = match request.repo {
            Some(_) => None,
            None => self.all.inspect(workdir, limits.within).await?,
        };
        let planned = plan(Asked {
            request: Some(request),
            default: WorkspaceChoice::Shared,
            workdir,
            repository: repository.as_ref(),
        })?;
        let session = self.session();
        let made = self
            .all
            .make(session, Timestamp(5), planned.expect("not shared"), limits)
            .await?;
        Ok((session, made))
    }

    /// Makes a workspace of the repository.
    pub(crate) async fn make(&mut self, kind: WorkspaceChoice) -> (SessionId, Made) {
        let (app, request) = (self.app(), of(kind));
        self.ask(&app, &request, limits()).await.unwrap()
    }

    pub(crate) async fn unfetched(&self, session: SessionId) -> Option<String> {
        let record = self.all.record(session).await.unwrap().unwrap();
        self.all.unfetched(&record, Duration::from_secs(60)).await
    }

    /// The entries of the directory of all workspaces.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join("data/workspaces")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

pub(crate) fn of(kind: WorkspaceChoice) -> WorkspaceRequest {
    WorkspaceRequest {
        kind: Some(kind),
        ..WorkspaceRequest::default()
    }
}

/// The mode, inode and time of a file, and its contents.
type Found = (u32, u64, Option<(i64, i64)>, Vec<u8>);

/// Everything in a directory: contents, modes, times and inodes of all files. Times of git's objects do not count: git
/// renews those of an object that a clone borrows and writes again, to keep it from being pruned.
pub(crate) fn snapshot(top: &Path) -> BTreeMap<PathBuf, Found> {
    let mut all = BTreeMap::new();
    let mut queue = vec![top.to_owned()];
    while let Some(dir) = queue.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let contents = match found.file_type() {
                kind if kind.is_dir() => Vec::new(),
                kind if kind.is_symlink() => fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes(),
                _ => fs::read(&path).unwrap(),
            };
            if found.is_dir() {
                queue.push(path.clone());
            }
            let object = found.is_file() && path.components().any(|part| part.as_os_str() == "objects");
            let time = (!object).then(|| (found.mtime(), found.mtime_nsec()));
            let row = (found.mode(), found.ino(), time, contents);
            all.insert(path, row);
        }
    }
    all
}
