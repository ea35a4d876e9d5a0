//! What the daemon finds out about a working directory before its warden starts: what git's configuration names, the protected places
//! around it, and whether it is a workspace.

use crate::annex::Annex;
use crate::confinement::Confinement;
use crate::error::SandboxError;
use crate::history;
use crate::keeper;
use crate::slot::WardenSpec;
use crate::workdir::real;
use agentd_protected::named_by_git;
use agentd_protocol::SandboxLevel;
use std::path::PathBuf;

/// Adds the paths that git's configuration names in the working directory. The daemon reads them, because the user's
/// configuration may be invisible inside the sandbox. If it cannot tell which files git runs, commands get no writable
/// directory (I7).
pub(crate) async fn with_git(spec: &WardenSpec, mut walls: Confinement) -> Result<Confinement, SandboxError> {
    let home = spec.environment.iter().find(|(name, _)| *name == "HOME");
    let home = home.map(|(_, home)| PathBuf::from(home));
    let workdir = spec.workdir.clone();
    let workspaces = walls.workspaces.clone();
    let read = move || {
        let workdir = real(&workdir)?;
        let annex = workspaces.map(|all| Annex::of(&workdir, &all)).transpose();
        let named = named_by_git(&workdir, home.as_deref(), &[]);
        Ok((named, annex, workdir))
    };
    let read: std::io::Result<_> = keeper::in_workdir(spec, read).await?;
    let (named, annex, workdir) = read.map_err(|source| SandboxError::Workdir {
        path: spec.workdir.clone(),
        source,
    })?;
    walls.annex = annex?.unwrap_or_default();
    if walls.level == SandboxLevel::Isolated && walls.hidden.history().is_some() {
        let (hidden, workdir) = (walls.hidden.clone(), spec.workdir.clone());
        let inside = keeper::in_workdir(spec, move || hidden.found(&workdir)).await?;
        walls.history = history::denied(&walls.hidden, &spec.workdir, inside.git_dirs, &walls.annex).await;
    }
    // What a rule denies to read stays denied.
    let hidden = walls.hidden.clone();
    walls
        .annex
        .read
        .retain(|path| !hidden.matches(&spec.workdir, path));
    // A workspace has a repository of its own.
    let own = walls
        .workspaces
        .as_ref()
        .is_some_and(|all| workdir.starts_with(all));
    let keeps = walls.protected.keeps_git() && !own;
    walls.protected = walls.protected.with_named(named).keeping_git(keeps);
    let place = walls.protected.place(&workdir);
    if let Some(place) = place.filter(|_| !walls.broker) {
        return Err(SandboxError::Unsupported {
            message: format!("{place}; this kernel has no means to protect new files in it"),
            fix: "use another working directory".to_owned(),
        });
    }
    match walls.protected.everything() {
        Some(why) => Err(SandboxError::Unsupported {
            message: why.to_owned(),
            fix: "make the configuration readable and shorter, then retry".to_owned(),
        }),
        None => Ok(walls),
    }
}
