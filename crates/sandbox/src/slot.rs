//! A session's place for its warden.

use crate::bounds::Bounds;
use crate::confinement::Confinement;
use crate::environment::Environment;
use crate::error::SandboxError;
use crate::ground::identity;
use crate::keeper::in_workdir;
use crate::level::Refusal;
use crate::network::Network;
use crate::warden::Warden;
use agentd_file_work::FileWork;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};

/// How a warden is started.
#[derive(Debug, Clone)]
pub struct WardenSpec {
    /// The daemon's own program (`/proc/self/exe`).
    pub exe: PathBuf,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// What its commands see.
    pub environment: Environment,
    /// How much they may use.
    pub bounds: Bounds,
    /// The network that they see; none without one. It needs the level isolated.
    pub network: Option<Network>,
}

/// A session's resident warden: started at the first command, again when it is gone. Clones are the same place.
#[derive(Debug, Clone)]
pub struct WardenSlot(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    spec: WardenSpec,
    walls: Walls,
    /// The directory that the session began in, looked at since then. A command of another session may have put a link in
    /// its place.
    ground: OnceCell<Ground>,
    place: Mutex<Place>,
}

/// Device and inode of a directory that is there.
type Ground = Option<(u64, u64)>;

impl Slot {
    async fn ground(&self) -> Result<Ground, SandboxError> {
        let found = self.ground.get_or_try_init(|| self.found()).await;
        found.copied()
    }

    async fn found(&self) -> Result<Ground, SandboxError> {
        let workdir = self.spec.workdir.clone();
        in_workdir(&self.spec, move || identity(&workdir)).await
    }
}

/// What is around the commands of a slot.
#[derive(Debug)]
enum Walls {
    /// Nothing but an environment by allow-list.
    None,
    Confinement(Confinement),
    /// They are missing: no command runs.
    Missing(Refusal),
}

#[derive(Debug)]
enum Place {
    Empty,
    Filled(Arc<Warden>),
    /// The session ended: no warden is started any more.
    Closed,
}

impl WardenSlot {
    /// An empty slot; starts nothing.
    #[must_use]
    pub fn new(spec: WardenSpec) -> Self {
        Self::with(spec, Walls::None)
    }

    /// An empty slot whose commands stay behind walls. It looks at the working directory, so it needs a runtime.
    #[must_use]
    pub fn confined(spec: WardenSpec, walls: Confinement) -> Self {
        let slot = Self::with(spec, Walls::Confinement(walls));
        let early = slot.clone();
        tokio::spawn(async move {
            // A look that fails is made again by the first command, which reports the error.
            let _ = early.0.ground().await;
        });
        slot
    }

    /// A slot that runs nothing and says why (I7).
    #[must_use]
    pub fn refusing(spec: WardenSpec, why: Refusal) -> Self {
        Self::with(spec, Walls::Missing(why))
    }

    fn with(spec: WardenSpec, walls: Walls) -> Self {
        Self(Arc::new(Slot {
            spec,
            walls,
            ground: OnceCell::new(),
            place: Mutex::new(Place::Empty),
        }))
    }

    /// The warden, started if need be.
    ///
    /// # Errors
    /// When it cannot be started, or the slot was closed.
    pub async fn get(&self) -> Result<Arc<Warden>, SandboxError> {
        let mut place = self.0.place.lock().await;
        match &*place {
            Place::Closed => return Err(SandboxError::WardenGone),
            Place::Filled(warden) if warden.is_alive() => return Ok(Arc::clone(warden)),
            Place::Filled(_) | Place::Empty => {}
        }
        let warden = match &self.0.walls {
            Walls::None => Warden::spawn(&self.0.spec).await?,
            Walls::Confinement(walls) if self.0.ground().await? == self.0.found().await? => {
                Warden::spawn_confined(&self.0.spec, walls).await?.0
            }
            Walls::Confinement(_) => {
                let dir = self.0.spec.workdir.display();
                let why = format!("the working directory {dir} was replaced since the session began");
                return Err(SandboxError::no_walls(why));
            }
            Walls::Missing(why) => return Err(why.clone().into()),
        };
        let warden = Arc::new(warden);
        *place = Place::Filled(Arc::clone(&warden));
        Ok(warden)
    }

    /// Lets a warden go that has run nothing for `idle`, with what its commands left behind. Whether there is none now.
    #[must_use]
    pub fn release_idle(&self, idle: Duration) -> bool {
        let Ok(mut place) = self.0.place.try_lock() else {
            return false;
        };
        if let Place::Filled(warden) = &*place
            && (!warden.is_alive() || warden.idle_for().is_some_and(|time| time >= idle))
        {
            *place = Place::Empty;
        }
        !matches!(&*place, Place::Filled(_))
    }

    /// The session ended: kills everything that runs under the warden and waits until it is gone, at most `within`.
    /// Whether it is gone.
    pub async fn close(&self, within: Duration) -> bool {
        let old = std::mem::replace(&mut *self.0.place.lock().await, Place::Closed);
        let gone = match old {
            Place::Filled(warden) => warden.close(within).await,
            Place::Empty | Place::Closed => true,
        };
        if let Walls::Confinement(walls) = &self.0.walls {
            let temp = walls.temp.clone();
            let files = FileWork::of_directory(&temp);
            // What is left of it goes with the next start of the daemon.
            let removed = files.run(&walls.temp, within, move || std::fs::remove_dir_all(temp));
            let _ = removed.await;
        }
        gone
    }
}
