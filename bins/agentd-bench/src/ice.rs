//! File systems that the load tool can freeze.

use agentd_faulty_disk::{Disk, Frozen, LoopMount, MountError, Mounted};
use anyhow::{Result, anyhow};
use std::io::ErrorKind;
use std::path::Path;
use tempfile::TempDir;

/// How a file system is frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No request is answered, as with a dead server.
    Silent,
    /// Only writes wait, as under `fsfreeze`.
    NoWrites,
}

/// A file system that can be frozen; dropping it thaws and unmounts it.
#[derive(Debug)]
pub(crate) struct Ice {
    mount: Mount,
    /// The mount point must exist until the unmount.
    _dir: TempDir,
}

#[derive(Debug)]
enum Mount {
    Silent {
        held: Option<Frozen>,
        disk: Disk,
        mounted: Mounted,
    },
    NoWrites(LoopMount),
}

impl Kind {
    /// The prefix of the figures.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Silent => "frozen",
            Self::NoWrites => "fsfreeze",
        }
    }

    /// The plan of a session on this file system.
    pub(crate) fn plan(self, session: usize, key: &str) -> String {
        let tool = match (self, session % 2) {
            (Self::Silent, 0) => "read",
            // A writing command would need an approval, because the gate cannot read git's configuration.
            (Self::Silent, _) => "bash command=cat_bench.txt",
            (Self::NoWrites, 0) => "write",
            (Self::NoWrites, _) => "bash command=echo_x_>>_bench.txt",
        };
        format!("plan:{key} steps=1 tool={tool};")
    }
}

impl Ice {
    pub(crate) fn new(kind: Kind) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("agentd-bench-ice-").tempdir()?;
        let cannot = |error: MountError| match error.0.kind() {
            // Not a kernel limitation: the missing program can be installed.
            ErrorKind::NotFound => anyhow!(error.0),
            _ => anyhow!("kernel: {}", error.0),
        };
        let mount = match kind {
            Kind::Silent => {
                let disk = Disk::new();
                Mount::Silent {
                    mounted: Mounted::new(&disk, dir.path()).map_err(cannot)?,
                    disk,
                    held: None,
                }
            }
            Kind::NoWrites => Mount::NoWrites(LoopMount::new(dir.path()).map_err(cannot)?),
        };
        Ok(Self { mount, _dir: dir })
    }

    pub(crate) fn directory(&self) -> &Path {
        match &self.mount {
            Mount::Silent { mounted, .. } => mounted.directory(),
            Mount::NoWrites(mounted) => mounted.directory(),
        }
    }

    pub(crate) fn freeze(&mut self) -> Result<()> {
        match &mut self.mount {
            Mount::Silent { held, disk, .. } => *held = Some(disk.freeze()),
            Mount::NoWrites(mounted) => mounted.freeze()?,
        }
        Ok(())
    }

    pub(crate) fn thaw(&mut self) -> Result<()> {
        match &mut self.mount {
            Mount::Silent { held, .. } => *held = None,
            Mount::NoWrites(mounted) => mounted.thaw()?,
        }
        Ok(())
    }
}
