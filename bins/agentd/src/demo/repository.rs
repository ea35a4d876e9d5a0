//! The repository that the agents of the demo repair, each in a worktree of its own.

use agentd_git::{GitEnvironment, GitError, Run, git};
use agentd_protocol::{WorkspaceChoice, WorkspaceRequest};
use agentd_provider::demo as script;
use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one run of git may take.
const WITHIN: Duration = Duration::from_secs(20);

/// The repository. Without git, each agent gets a copy of a plain directory.
#[derive(Debug)]
pub(super) struct Repository {
    dir: PathBuf,
    before: Vec<(String, String)>,
    pub(super) has_git: bool,
}

impl Repository {
    /// Writes the files below `work`, and commits them.
    pub(super) async fn create(work: &Path) -> Result<Self> {
        let dir = work.join("scripts");
        fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let before = script::files();
        for (path, content) in &before {
            let path = dir.join(path);
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let has_git = match commit(&dir).await {
            Err(GitError::Missing) => false,
            done => done
                .map(|()| true)
                .context("cannot make the repository of the demo")?,
        };
        Ok(Self { dir, before, has_git })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where each agent works.
    pub(super) fn workspace(&self) -> WorkspaceRequest {
        let kind = if self.has_git {
            WorkspaceChoice::Worktree
        } else {
            WorkspaceChoice::Copy
        };
        WorkspaceRequest {
            kind: Some(kind),
            ..WorkspaceRequest::default()
        }
    }

    /// The differences of a directory from the repository's first commit, as a unified diff.
    pub(super) fn diff(&self, dir: &Path) -> Result<String> {
        let mut all = String::new();
        for (path, before) in &self.before {
            let after = fs::read_to_string(dir.join(path)).with_context(|| format!("cannot read {path}"))?;
            if after != *before {
                let diff = similar::TextDiff::from_lines(before, &after);
                all.push_str(
                    &diff
                        .unified_diff()
                        .header(&format!("a/{path}"), &format!("b/{path}"))
                        .to_string(),
                );
            }
        }
        Ok(all)
    }
}

async fn commit(dir: &Path) -> Result<(), GitError> {
    let environment = GitEnvironment {
        path: std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")),
        ..GitEnvironment::default()
    };
    for words in [
        &["init", "-q", "--template=", "--initial-branch=main"][..],
        &["add", "."],
        &["commit", "-q", "-m", "Three scripts and their test"],
    ] {
        let run = Run::new(dir, WITHIN, words)
            .option("user.name=agentd demo")
            .option("user.email=demo@localhost");
        git(&environment, run).await?;
    }
    Ok(())
}
