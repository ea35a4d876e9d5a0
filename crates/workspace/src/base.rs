//! Finds the commit that a workspace begins at, and the repository that has it.

use crate::error::WorkspaceError;
use crate::inspect::{Repository, commit, references};
use crate::plan::{Plan, Source};
use crate::skeleton::is_plain;
use crate::workspaces::Workspaces;
use std::path::PathBuf;
use tokio::time::Instant;

/// A repository to make a workspace from, whatever its kind.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) commit: String,
    pub(crate) sha256: bool,
    /// Git's directory with objects and references.
    pub(crate) common: PathBuf,
    /// The work tree of a local repository.
    pub(crate) top: Option<PathBuf>,
    pub(crate) references: Vec<(String, String)>,
}

impl Workspaces {
    /// Finds the repository and the commit to begin at.
    pub(crate) async fn base(&self, plan: &Plan, until: Instant) -> Result<Option<Base>, WorkspaceError> {
        let environment = &self.0.environment;
        let within = || until.saturating_duration_since(Instant::now());
        let reference = plan.reference.as_deref();
        match &plan.source {
            Source::Directory(_) => Ok(None),
            Source::Url(url) => {
                let mirror = self.0.mirrors.fetched(environment, url, reference, until).await?;
                let repository = Repository {
                    top: mirror.dir.clone(),
                    common: mirror.dir.clone(),
                    head: None,
                    branch: None,
                    sha256: false,
                };
                Ok(Some(Base {
                    references: references(environment, &repository, within()).await?,
                    commit: mirror.base,
                    sha256: false,
                    common: mirror.dir,
                    top: None,
                }))
            }
            Source::Repository(repository) => {
                repository.has_own_objects()?;
                if !is_plain(&repository.common) || !is_plain(&repository.top) {
                    return Err(WorkspaceError::refused(
                        "bad_repository",
                        "the path of the repository has characters that git's files cannot hold",
                        "rename the directory, or use the workspace kind shared",
                    ));
                }
                let commit = commit(environment, repository, reference, within());
                let (commit, references) =
                    tokio::try_join!(commit, references(environment, repository, within()))?;
                Ok(Some(Base {
                    commit,
                    sha256: repository.sha256,
                    common: repository.common.clone(),
                    top: Some(repository.top.clone()),
                    references,
                }))
            }
        }
    }
}
