//! Directories that a request names. [`WorkDir`] and [`Target`] are made only here, of a real path that the caller may use and
//! that holds nothing of agentd's own; a session, a move and `session.apply` demand one of them.

use crate::api::Api;
use crate::prompting::reading;
use crate::rights::Use;
use crate::sight::Caller;
use crate::validate;
use agentd_protected::Reason;
use agentd_protocol::{CreateParams, Fault, WorkspaceChoice};
use agentd_workspace::Repository;
use std::path::{Path, PathBuf};

/// A directory that a session may be given. It is a real path, so a link found in its place was put there later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkDir {
    path: String,
    how: Use,
}

impl WorkDir {
    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    pub(crate) fn text(&self) -> &str {
        &self.path
    }

    /// The directory as the place where a session works, together with everyone else who works there.
    pub(crate) fn shared(self) -> Result<String, Fault> {
        match self.how {
            Use::Work => Ok(self.path),
            Use::Copy | Use::Target => Err(beyond(&self.path, Use::Work)),
        }
    }
}

/// A directory that the changes of a session may be brought to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target(PathBuf);

impl Target {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Api {
    /// The directory of a new session; `None`: it has only the URL of a repository. A token that may only copy the directory
    /// gets a clone of it.
    pub(crate) async fn directory_of(
        &self,
        who: &Caller,
        params: &mut CreateParams,
    ) -> Result<Option<WorkDir>, Fault> {
        let asked = params.workspace.as_ref();
        if params.workdir.is_empty() && asked.is_some_and(|asked| asked.repo.is_some()) {
            return Ok(None);
        }
        let kind = asked.and_then(|asked| asked.kind).unwrap_or_default();
        let how = match kind {
            WorkspaceChoice::Clone | WorkspaceChoice::Copy => Use::Copy,
            WorkspaceChoice::Auto | WorkspaceChoice::Shared | WorkspaceChoice::Worktree => Use::Work,
        };
        let found = self.work_dir(who, &params.workdir, how, params.force).await;
        if let (Err(fault), WorkspaceChoice::Auto) = (&found, kind)
            && fault.code == DENIED
        {
            let copied = self.work_dir(who, &params.workdir, Use::Copy, params.force).await;
            let Ok(dir) = copied else { return found.map(Some) };
            params.workspace.get_or_insert_default().kind = Some(WorkspaceChoice::Clone);
            return Ok(Some(dir));
        }
        found.map(Some)
    }

    /// A directory that a session shares with others.
    pub(crate) async fn shared_directory(
        &self,
        who: &Caller,
        workdir: &str,
        force: bool,
    ) -> Result<WorkDir, Fault> {
        let dir = self.work_dir(who, workdir, Use::Work, force).await?;
        self.apart(dir.text()).await?;
        Ok(dir)
    }

    /// Checks a directory that a session works in a copy of.
    pub(crate) async fn copied_directory(&self, who: &Caller, source: &str) -> Result<(), Fault> {
        self.work_dir(who, source, Use::Copy, false).await.map(drop)
    }

    async fn work_dir(&self, who: &Caller, asked: &str, how: Use, force: bool) -> Result<WorkDir, Fault> {
        let path = self.judged(who, asked, how).await?;
        self.unprotected(who, &path, force)?;
        Ok(WorkDir { path, how })
    }

    /// The directory that the changes of a session are brought to.
    pub(crate) async fn target(&self, who: &Caller, asked: &str) -> Result<Target, Fault> {
        let path = self.judged(who, asked, Use::Target).await?;
        let data_dir = self.data_dir();
        if data_dir.starts_with(&path) {
            return Err(own("directory", &path));
        }
        self.unprotected(who, &path, false)?;
        Ok(Target(PathBuf::from(path)))
    }

    /// Refuses a repository that a token may not copy: a `.git` file, which a session can write, may lead anywhere.
    pub(crate) async fn may_copy(&self, who: &Caller, repository: &Repository) -> Result<(), Fault> {
        let roots = self.roots(who, Use::Copy).await?;
        for part in [&repository.top, &repository.common] {
            if !covers(roots.as_deref(), part) {
                return Err(beyond(&part.display().to_string(), Use::Copy));
            }
        }
        Ok(())
    }

    /// The real path of a directory that the caller may use. What a token may not use is refused before its files are looked
    /// at, so that the answer does not say whether it exists.
    async fn judged(&self, who: &Caller, asked: &str, how: Use) -> Result<String, Fault> {
        let roots = self.roots(who, how).await?;
        if Path::new(asked).is_absolute() && !covers(roots.as_deref(), Path::new(asked)) {
            return Err(beyond(asked, how));
        }
        let real = validate::workdir(asked).await?;
        if !covers(roots.as_deref(), Path::new(&real)) {
            return Err(beyond(asked, how));
        }
        self.not_own(who, &real)?;
        Ok(real)
    }

    /// The directories that a caller may use, as they were named and as they are called without links; `None`: all.
    async fn roots(&self, who: &Caller, how: Use) -> Result<Option<Vec<PathBuf>>, Fault> {
        let Some(named) = who.rights().dirs(how) else {
            return Ok(None);
        };
        let named: Vec<PathBuf> = named.into_iter().map(Path::to_owned).collect();
        let Some(first) = named.first().cloned() else {
            return Ok(Some(named));
        };
        let resolve = move || {
            let real: Vec<PathBuf> = named.iter().filter_map(|root| root.canonicalize().ok()).collect();
            named.into_iter().chain(real).collect()
        };
        reading("the directories of the token", &first, resolve)
            .await
            .map(Some)
    }

    /// Refuses the daemon's own files: its data with the exception of the trees of workspaces, its settings and its socket. A
    /// token may not use a directory that contains them, either.
    fn not_own(&self, who: &Caller, real: &str) -> Result<(), Fault> {
        let (path, all) = (Path::new(real), &self.parts.workspaces);
        let data_dir = self.data_dir();
        let in_data = path.starts_with(data_dir) && (!path.starts_with(all.root()) || all.holds(path));
        let own_files = || {
            let files = self.loaded().files().into_iter().map(PathBuf::from);
            files
                .chain([PathBuf::from(&self.parts.facts.socket), data_dir.to_owned()])
                .collect::<Vec<_>>()
        };
        let contains = || own_files().iter().any(|own| own.starts_with(path));
        if in_data || all.holds(path) || (who.rights().dirs(Use::Work).is_some() && contains()) {
            return Err(own("directory", real));
        }
        Ok(())
    }

    /// Refuses a directory in a protected place: there, harmless names would be files that act by themselves. A local user may
    /// insist.
    fn unprotected(&self, who: &Caller, real: &str, force: bool) -> Result<(), Fault> {
        let Some(place) = self.parts.protected.place(Path::new(real)) else {
            return Ok(());
        };
        let roots = who.rights().dirs(Use::Copy);
        let chosen = match &roots {
            None => force,
            // Whoever named a directory below a hidden one meant it, but nothing protected in it.
            Some(roots) => roots.iter().any(|root| {
                let below = Path::new(real).strip_prefix(root);
                let plain = |rest: &Path| {
                    self.parts
                        .protected
                        .place(&Path::new("/named").join(rest))
                        .is_none()
                };
                place.reason == Reason::Hidden && root.starts_with(&place.path) && below.is_ok_and(plain)
            }),
        };
        if chosen {
            return Ok(());
        }
        let hint = match roots {
            None => "name another directory; --force works there all the same, and asks before each write",
            Some(_) => "name another directory",
        };
        Err(Fault::denied("protected_directory", place.to_string()).hint(hint))
    }

    fn data_dir(&self) -> &Path {
        let all = &self.parts.workspaces;
        all.root().parent().unwrap_or(all.root())
    }
}

/// The fault code of a directory beyond the rights of a token.
const DENIED: &str = "directory_denied";

fn covers(roots: Option<&[PathBuf]>, path: &Path) -> bool {
    roots.is_none_or(|roots| roots.iter().any(|root| path.starts_with(root)))
}

fn beyond(dir: &str, how: Use) -> Fault {
    let (what, option) = match how {
        Use::Work => ("have sessions work in", "--dir"),
        Use::Copy => ("have sessions work in a copy of", "--source"),
        Use::Target => ("bring changes to", "--dir"),
    };
    let dir = crate::words::cut(dir);
    let message = format!("the caller may not {what} {dir:?}");
    Fault::denied(DENIED, message).hint(format!(
        "name a directory of the token, or have a token created with {option}; `agentctl token show NAME` lists its rights"
    ))
}

fn own(what: &str, dir: &str) -> Fault {
    let message = format!("the {what} {dir} holds the daemon's own files");
    Fault::invalid("bad_workdir", message).hint("name another directory")
}
