//! The slot that holds a session's warden.

use crate::bounds::Bounds;
use crate::confinement::Confinement;
use crate::environment::Environment;
use crate::error::SandboxError;
use crate::keeper::in_workdir;
use crate::network::Network;
use crate::warden::Warden;
use crate::workdir::identity;
use agentd_file_work::FileWork;
use agentd_protocol::sandbox::Refusal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};

/// How long a slot waits for the end of the earlier one.
const EARLIER_WITHIN: Duration = Duration::from_secs(20);

/// How to start a warden.
#[derive(Debug, Clone)]
pub struct WardenSpec {
    /// The daemon's own program (`/proc/self/exe`).
    pub exe: PathBuf,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// The environment of its commands.
    pub environment: Environment,
    /// The limits on their resources.
    pub bounds: Bounds,
    /// Their network, if any. It requires the isolated level.
    pub network: Option<Network>,
}

/// A session's resident warden: started at the first command, and restarted when it is gone. Clones share the slot.
#[derive(Debug, Clone)]
pub struct WardenSlot(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    spec: WardenSpec,
    walls: Walls,
    /// The identity of the directory that the session began in. Since then, a command of another session may have put a
    /// link in its occupancy.
    identity_at_start: OnceCell<Identity>,
    occupancy: Mutex<Occupancy>,
}

/// Device and inode of an existing directory.
type Identity = Option<(u64, u64)>;

impl Slot {
    async fn identity_at_start(&self) -> Result<Identity, SandboxError> {
        let found = self.identity_at_start.get_or_try_init(|| self.found()).await;
        found.copied()
    }

    async fn found(&self) -> Result<Identity, SandboxError> {
        let workdir = self.spec.workdir.clone();
        in_workdir(&self.spec, move || identity(&workdir)).await
    }
}

/// The confinement of a slot's commands.
#[derive(Debug)]
enum Walls {
    /// None, except for an environment by allow-list.
    None,
    Confinement(Box<Confinement>),
    /// The sandbox is unavailable: no command runs.
    Missing(Refusal),
}

#[derive(Debug)]
enum Occupancy {
    Empty,
    /// Empty, and the earlier slot with the same temporary directory may not have ended yet.
    After(WardenSlot),
    Filled(Arc<Warden>),
    /// The session ended: the slot starts no more wardens.
    Closed,
}

impl WardenSlot {
    /// Creates an empty slot; starts nothing.
    #[must_use]
    pub fn new(spec: WardenSpec) -> Self {
        Self::with(spec, Walls::None)
    }

    /// Creates an empty slot whose commands are confined. It inspects the working directory, so it needs a runtime.
    #[must_use]
    pub fn confined(spec: WardenSpec, walls: Confinement) -> Self {
        let slot = Self::with(spec, Walls::Confinement(Box::new(walls)));
        let early = slot.clone();
        tokio::spawn(async move {
            // If this inspection fails, the first command repeats it and reports the error.
            let _ = early.0.identity_at_start().await;
        });
        slot
    }

    /// Creates a slot that runs nothing and reports why (I7).
    #[must_use]
    pub fn refusing(spec: WardenSpec, why: Refusal) -> Self {
        Self::with(spec, Walls::Missing(why))
    }

    fn with(spec: WardenSpec, walls: Walls) -> Self {
        Self(Arc::new(Slot {
            spec,
            walls,
            identity_at_start: OnceCell::new(),
            occupancy: Mutex::new(Occupancy::Empty),
        }))
    }

    /// Lets an empty slot start its first warden only when `earlier` is closed, which has the same temporary directory and
    /// removes it.
    #[must_use]
    pub fn after(self, earlier: Self) -> Self {
        if let Ok(mut occupancy) = self.0.occupancy.try_lock()
            && matches!(&*occupancy, Occupancy::Empty)
        {
            *occupancy = Occupancy::After(earlier);
        }
        self
    }

    /// Whether it is closed and nothing of it is left.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let occupancy = self.0.occupancy.try_lock();
        occupancy.is_ok_and(|occupancy| matches!(&*occupancy, Occupancy::Closed))
    }

    /// Returns the warden, starting it if need be.
    ///
    /// # Errors
    /// When it cannot be started, or the slot is closed.
    pub async fn get(&self) -> Result<Arc<Warden>, SandboxError> {
        let mut occupancy = self.0.occupancy.lock().await;
        match &*occupancy {
            Occupancy::Closed => return Err(SandboxError::WardenGone),
            Occupancy::Filled(warden) if warden.is_alive() => return Ok(Arc::clone(warden)),
            Occupancy::After(earlier) => {
                // Boxed: an earlier slot may itself be after another one.
                Box::pin(earlier.close(EARLIER_WITHIN)).await;
            }
            Occupancy::Filled(_) | Occupancy::Empty => {}
        }
        let warden = match &self.0.walls {
            Walls::None => Warden::spawn(&self.0.spec).await?,
            Walls::Confinement(walls) if self.0.identity_at_start().await? == self.0.found().await? => {
                Warden::spawn_confined(&self.0.spec, walls).await?.0
            }
            Walls::Confinement(_) => {
                let dir = self.0.spec.workdir.display();
                let why = format!("the working directory {dir} was replaced after the session began");
                return Err(SandboxError::no_walls(why));
            }
            Walls::Missing(why) => return Err(why.clone().into()),
        };
        let warden = Arc::new(warden);
        *occupancy = Occupancy::Filled(Arc::clone(&warden));
        Ok(warden)
    }

    /// Ends a warden that has run nothing for `idle`, with its commands' leftovers. Returns whether none is left now.
    #[must_use]
    pub fn release_idle(&self, idle: Duration) -> bool {
        let Ok(mut occupancy) = self.0.occupancy.try_lock() else {
            return false;
        };
        if let Occupancy::Filled(warden) = &*occupancy
            && (!warden.is_alive() || warden.idle_for().is_some_and(|time| time >= idle))
        {
            *occupancy = Occupancy::Empty;
        }
        match &*occupancy {
            Occupancy::Filled(_) => false,
            Occupancy::After(earlier) => earlier.is_closed(),
            Occupancy::Empty | Occupancy::Closed => true,
        }
    }

    /// Closes the slot at the end of the session: kills everything that runs under the warden and waits at most `within`
    /// for its death, and as long for the removal of its temporary directory. Returns whether it is gone. A second call waits
    /// for the first one.
    pub async fn close(&self, within: Duration) -> bool {
        let mut occupancy = self.0.occupancy.lock().await;
        let gone = match std::mem::replace(&mut *occupancy, Occupancy::Closed) {
            Occupancy::Closed => return true,
            Occupancy::Filled(warden) => warden.close(within).await,
            Occupancy::After(earlier) => Box::pin(earlier.close(within)).await,
            Occupancy::Empty => true,
        };
        if let Walls::Confinement(walls) = &self.0.walls {
            let temp = walls.temp.clone();
            let files = FileWork::of_directory(&temp);
            // The next start of the daemon removes the rest.
            let removed = files.run(&walls.temp, within, move || std::fs::remove_dir_all(temp));
            let _ = removed.await;
        }
        gone
    }
}
