//! Decides which workspace a session gets. Pure.

use crate::error::WorkspaceError;
use crate::inspect::Repository;
use crate::url::check_url;
use agentd_protocol::{WorkspaceChoice, WorkspaceKind, WorkspaceRequest};
use std::path::{Path, PathBuf};

/// A request with what it depends on.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What the client asks for; `None`: nothing.
    pub request: Option<&'a WorkspaceRequest>,
    /// The operator's setting for the directory.
    pub default: WorkspaceChoice,
    /// The directory that the client named. Empty if it named a URL only.
    pub workdir: &'a Path,
    /// The repository that the directory is in, if it is in one.
    pub repository: Option<&'a Repository>,
}

impl Asked<'_> {
    /// Whether nobody asked for a workspace: then one that cannot be made is no reason to refuse the session.
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        let none = WorkspaceRequest::default();
        let request = self.request.unwrap_or(&none);
        let kind = request.kind.unwrap_or(self.default);
        kind == WorkspaceChoice::Auto
            && request.repo.is_none()
            && request.reference.is_none()
            && !request.with_changes
    }

    /// Whether the plan depends on the repository that the directory is in.
    #[must_use]
    pub fn needs_repository(&self) -> bool {
        let asked = self.request.and_then(|request| request.kind);
        asked.unwrap_or(self.default) != WorkspaceChoice::Shared
    }
}

/// What to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The kind.
    pub kind: WorkspaceKind,
    /// From what.
    pub source: Source,
    /// The branch, tag or commit to begin at.
    pub reference: Option<String>,
    /// Whether to bring uncommitted changes along.
    pub with_changes: bool,
}

/// What a workspace is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A local repository.
    Repository(Repository),
    /// A URL, through a mirror.
    Url(String),
    /// A directory without git.
    Directory(PathBuf),
}

/// Plans the workspace of a session. `None`: it works in the directory itself.
///
/// # Errors
/// The request contradicts itself, or does not fit the directory.
pub fn plan(asked: Asked<'_>) -> Result<Option<Plan>, WorkspaceError> {
    let none = WorkspaceRequest::default();
    let request = asked.request.unwrap_or(&none);
    if let Some(url) = &request.repo {
        return from_url(request, url).map(Some);
    }
    let choice = match (request.kind.unwrap_or(asked.default), asked.repository) {
        (WorkspaceChoice::Auto, Some(_)) => WorkspaceChoice::Clone,
        (WorkspaceChoice::Auto, None) => WorkspaceChoice::Shared,
        (choice, _) => choice,
    };
    let kind = match choice {
        WorkspaceChoice::Auto | WorkspaceChoice::Shared => {
            let wanted = if request.reference.is_some() {
                "ref"
            } else if request.with_changes {
                "with_changes"
            } else {
                return Ok(None);
            };
            return Err(WorkspaceError::refused(
                "workspace_options",
                format!(
                    "{wanted} needs a workspace of the session's own, and this session shares its directory"
                ),
                "choose the kind clone or worktree (agentctl: --workspace clone)",
            ));
        }
        WorkspaceChoice::Worktree => WorkspaceKind::Worktree,
        WorkspaceChoice::Clone => WorkspaceKind::Clone,
        WorkspaceChoice::Copy => WorkspaceKind::Copy,
    };
    local(request, kind, asked).map(Some)
}

fn from_url(request: &WorkspaceRequest, url: &str) -> Result<Plan, WorkspaceError> {
    check_url(url)?;
    match request.kind {
        None | Some(WorkspaceChoice::Auto | WorkspaceChoice::Clone) => {}
        Some(_) => {
            return Err(WorkspaceError::refused(
                "workspace_options",
                "a URL can only be cloned",
                "leave the kind out, or choose clone",
            ));
        }
    }
    if request.with_changes {
        return Err(WorkspaceError::refused(
            "workspace_options",
            "a URL has no uncommitted changes to bring along",
            "leave with_changes out, or name a directory instead of the URL",
        ));
    }
    Ok(Plan {
        kind: WorkspaceKind::Clone,
        source: Source::Url(url.to_owned()),
        reference: request.reference.clone(),
        with_changes: false,
    })
}

fn local(request: &WorkspaceRequest, kind: WorkspaceKind, asked: Asked<'_>) -> Result<Plan, WorkspaceError> {
    let source = match (kind, asked.repository) {
        (WorkspaceKind::Copy, Some(repository)) => {
            return Err(WorkspaceError::refused(
                "workspace_kind",
                format!(
                    "{} is a git repository, and a copy would copy its configuration",
                    repository.top.display()
                ),
                "choose the kind clone; with_changes brings uncommitted changes along",
            ));
        }
        (WorkspaceKind::Copy, None) if request.reference.is_some() || request.with_changes => {
            return Err(WorkspaceError::refused(
                "workspace_options",
                "a copy has the directory's present contents: it takes neither ref nor with_changes",
                "leave them out",
            ));
        }
        (WorkspaceKind::Copy, None) => Source::Directory(asked.workdir.to_owned()),
        (_, Some(repository)) => Source::Repository(repository.clone()),
        (_, None) => {
            return Err(WorkspaceError::refused(
                "not_a_repository",
                format!(
                    "{} is not in a git repository, so it has no {kind}",
                    asked.workdir.display()
                ),
                "choose the kind copy or shared, or name a directory in a repository",
            ));
        }
    };
    if request.with_changes && request.reference.is_some() {
        return Err(WorkspaceError::refused(
            "workspace_options",
            "uncommitted changes fit only the commit that is checked out",
            "leave ref or with_changes out",
        ));
    }
    Ok(Plan {
        kind,
        source,
        reference: request.reference.clone(),
        with_changes: request.with_changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> Repository {
        Repository {
            top: "/src/app".into(),
            common: "/src/app/.git".into(),
            head: Some("a".repeat(40)),
            branch: Some("main".to_owned()),
            sha256: false,
        }
    }

    fn planned(
        request: &WorkspaceRequest,
        default: WorkspaceChoice,
        repository: Option<&Repository>,
    ) -> Result<Option<Plan>, WorkspaceError> {
        plan(Asked {
            request: Some(request),
            default,
            workdir: Path::new("/src/app"),
            repository,
        })
    }

    fn code(result: Result<Option<Plan>, WorkspaceError>) -> &'static str {
        match result {
            Err(WorkspaceError::Refused { code, .. }) => code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn auto_clones_a_repository_and_shares_anything_else() {
        let none = WorkspaceRequest::default();
        let repository = repository();
        let cloned = planned(&none, WorkspaceChoice::Auto, Some(&repository))
            .unwrap()
            .unwrap();
        assert_eq!(cloned.kind, WorkspaceKind::Clone);
        assert_eq!(cloned.source, Source::Repository(repository.clone()));
        assert_eq!(planned(&none, WorkspaceChoice::Auto, None).unwrap(), None);
        // The request goes before the setting.
        let shared = WorkspaceRequest {
            kind: Some(WorkspaceChoice::Shared),
            ..none
        };
        assert_eq!(
            planned(&shared, WorkspaceChoice::Auto, Some(&repository)).unwrap(),
            None
        );
    }

    #[test]
    fn a_kind_that_does_not_fit_the_directory_is_refused_with_words() {
        let repository = repository();
        let ask = |kind| WorkspaceRequest {
            kind: Some(kind),
            ..WorkspaceRequest::default()
        };
        for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
            let result = planned(&ask(kind), WorkspaceChoice::Shared, None);
            assert_eq!(code(result), "not_a_repository");
        }
        let copy = planned(
            &ask(WorkspaceChoice::Copy),
            WorkspaceChoice::Shared,
            Some(&repository),
        );
        assert_eq!(code(copy), "workspace_kind");
        let with_changes = WorkspaceRequest {
            with_changes: true,
            ..WorkspaceRequest::default()
        };
        let shared = planned(&with_changes, WorkspaceChoice::Shared, Some(&repository));
        assert_eq!(code(shared), "workspace_options");
        let elsewhere = WorkspaceRequest {
            reference: Some("v1".to_owned()),
            ..with_changes
        };
        let elsewhere = planned(&elsewhere, WorkspaceChoice::Clone, Some(&repository));
        assert_eq!(code(elsewhere), "workspace_options");
    }

    #[test]
    fn a_url_is_cloned_and_nothing_else() {
        let mut request = WorkspaceRequest {
            repo: Some("https://git.example/a.git".to_owned()),
            reference: Some("v1".to_owned()),
            ..WorkspaceRequest::default()
        };
        let cloned = planned(&request, WorkspaceChoice::Shared, None).unwrap().unwrap();
        assert_eq!(cloned.source, Source::Url("https://git.example/a.git".to_owned()));
        assert_eq!(
            (cloned.kind, cloned.reference.as_deref()),
            (WorkspaceKind::Clone, Some("v1"))
        );
        request.kind = Some(WorkspaceChoice::Worktree);
        assert_eq!(
            code(planned(&request, WorkspaceChoice::Auto, None)),
            "workspace_options"
        );
    }
}
