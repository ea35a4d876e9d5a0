//! The file system of an isolated session as a list of mounts.
//!
//! The list is a value. [`crate::root`] applies it by system calls, [`crate::bubble`] as arguments for bubblewrap.

use crate::confinement::Confinement;
use crate::network::INSIDE;
use crate::repository::protected;
use crate::workdir::real;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// One step. Later steps cover earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mount {
    /// A file or a directory of the machine with everything mounted below it. `from` contains no links.
    Bind {
        from: PathBuf,
        at: PathBuf,
        access: Access,
    },
    /// A symbolic link.
    Link { to: PathBuf, at: PathBuf },
    /// Covers an existing file or directory with an empty one without permissions.
    Hide { at: PathBuf, directory: bool },
}

/// What commands may do with a bind mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Access {
    Read,
    Write,
}

/// The file system of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct View {
    /// An existing directory that the new root may cover while it is being built.
    pub(crate) base: PathBuf,
    /// Where commands start. Nothing is created below it, so no mount point is left behind there.
    pub(crate) workdir: PathBuf,
    pub(crate) mounts: Vec<Mount>,
}

impl View {
    /// Plans the view of a session. `network` is the directory of its network socket, if it has one.
    pub(crate) fn plan(workdir: &Path, walls: &Confinement, network: Option<&Path>) -> std::io::Result<Self> {
        let mut view = Self {
            base: real(&walls.temp)?,
            workdir: workdir.to_owned(),
            mounts: Vec::new(),
        };
        // First, because programs and the working directory may lie below it.
        view.bind(&walls.temp, walls.temp_inside(), Access::Write)?;
        for path in &walls.read {
            view.readable(path);
        }
        for path in &walls.annex.read {
            view.readable(path);
        }
        for path in &walls.annex.write {
            // One that is missing cannot be written either.
            let _ = view.bind(path, path, Access::Write);
        }
        if !walls.broker
            && let Some(repository) = &walls.annex.repository
        {
            let info = repository.join("objects/info");
            let _ = view.bind(&info, &info, Access::Read);
        }
        if let Some(network) = network {
            view.bind(network, Path::new(INSIDE), Access::Read)?;
        }
        view.bind(workdir, workdir, Access::Write)?;
        let resolved = real(workdir)?;
        for (path, access) in protected(workdir, &walls.protected, walls.broker) {
            // Not resolved again: another session may put a link there at any time, and the root refuses links here.
            view.mounts.push(Mount::Bind {
                from: resolved.join(&path),
                at: workdir.join(&path),
                access,
            });
        }
        let hidden = walls.hidden.found(workdir).hidden;
        let stores = walls.history.stores.iter().map(|store| (store.clone(), true));
        let hide = |(at, directory)| Mount::Hide { at, directory };
        view.mounts.extend(hidden.into_iter().chain(stores).map(hide));
        Ok(view)
    }

    fn bind(&mut self, from: &Path, at: &Path, access: Access) -> std::io::Result<()> {
        self.mounts.push(Mount::Bind {
            from: real(from)?,
            at: at.to_owned(),
            access,
        });
        Ok(())
    }

    /// Keeps a link at the top (`/bin` -> `usr/bin`) and binds anything else. Skips missing paths.
    fn readable(&mut self, path: &Path) {
        let at_top = path.components().count() == 2;
        match fs::read_link(path) {
            Ok(to) if at_top => self.mounts.push(Mount::Link {
                to,
                at: path.to_owned(),
            }),
            Ok(_) | Err(_) => drop(self.bind(path, path, Access::Read)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hidden::Hidden;
    use agentd_protocol::SandboxLevel;

    fn bind(path: &Path, at: &Path, access: Access) -> Mount {
        Mount::Bind {
            from: path.to_owned(),
            at: at.to_owned(),
            access,
        }
    }

    #[test]
    fn mounts_are_ordered_from_wide_to_narrow() {
        let dir = tempfile::tempdir().unwrap();
        let root = real(dir.path()).unwrap();
        let [workdir, temp, lib, secret] = ["w", "t", "lib", "w/secret"].map(|name| root.join(name));
        for made in [&workdir.join(".git/hooks"), &temp, &lib, &secret] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(workdir.join(".git/config"), "[core]").unwrap();
        std::os::unix::fs::symlink(&lib, root.join("link")).unwrap();
        let read = vec![root.join("link"), root.join("missing"), lib.clone()];
        let mut walls = Confinement::new(SandboxLevel::Isolated, temp.clone(), read);
        let denied = secret.clone();
        walls.hidden = Hidden::by(move |_, path| path == denied);
        walls.broker = false;
        let view = View::plan(&workdir, &walls, None).unwrap();
        let git = workdir.join(".git");
        let own = |path: &Path, access| bind(path, path, access);
        let expected = vec![
            bind(&temp, Path::new("/tmp"), Access::Write),
            bind(&lib, &root.join("link"), Access::Read),
            own(&lib, Access::Read),
            own(&workdir, Access::Write),
            own(&git, Access::Write),
            own(&git.join("config"), Access::Read),
            own(&git.join("hooks"), Access::Read),
            Mount::Hide {
                at: secret,
                directory: true,
            },
        ];
        assert_eq!(view.mounts, expected);
        // The broker checks a configuration and then replaces it, so a mount must not be in the way.
        walls.broker = true;
        let brokered = View::plan(&workdir, &walls, None).unwrap();
        let but_config = |mount: &&Mount| **mount != own(&git.join("config"), Access::Read);
        assert!(brokered.mounts.iter().eq(expected.iter().filter(but_config)));
        assert_eq!((view.base, view.workdir), (temp, workdir));
    }

    #[test]
    fn a_link_at_the_top_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let mut view = View {
            base: dir.path().to_owned(),
            workdir: dir.path().to_owned(),
            mounts: Vec::new(),
        };
        let Ok(to) = fs::read_link("/bin") else { return };
        view.readable(Path::new("/bin"));
        let at = PathBuf::from("/bin");
        assert_eq!(view.mounts, [Mount::Link { to, at }]);
    }
}
