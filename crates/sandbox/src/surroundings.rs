//! What the daemon finds out about a working directory before its warden starts: what git's configuration names, the protected places
//! around it, and where its repository is.

use crate::annex::Annex;
use crate::confinement::Confinement;
use crate::error::SandboxError;
use crate::history;
use crate::keeper;
use crate::linked;
use crate::namespaces;
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
    // Without a broker nothing would tell git's data from what it runs.
    let reads = walls.protected.keeps_git() || !walls.broker;
    let read = move || {
        let workdir = real(&workdir)?;
        // A workspace has a repository of its own, and a note about what it needs.
        let own = workspaces.filter(|all| workdir.starts_with(all));
        let annex = match &own {
            Some(all) => Annex::of(&workdir, all),
            None => Ok(linked::annex(&workdir, reads).unwrap_or_default()),
        };
        let named = named_by_git(&workdir, home.as_deref(), &[]);
        Ok((named, annex, workdir, own.is_some()))
    };
    let read: std::io::Result<_> = keeper::in_workdir(spec, read).await?;
    let (named, annex, workdir, own) = read.map_err(|source| SandboxError::Workdir {
        path: spec.workdir.clone(),
        source,
    })?;
    walls.annex = annex?;
    walls.network_outside = namespaces::network();
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
