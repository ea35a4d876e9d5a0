//! A session's place for its warden.

use crate::environment::Environment;
use crate::error::SandboxError;
use crate::warden::Warden;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How a warden is started.
#[derive(Debug, Clone)]
pub struct WardenSpec {
    /// The daemon's own program (`/proc/self/exe`).
    pub exe: PathBuf,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// What its commands see.
    pub environment: Environment,
}

/// A session's resident warden: started at the first command, again when it is gone. Clones are the same place.
#[derive(Debug, Clone)]
pub struct WardenSlot(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    spec: WardenSpec,
    place: Mutex<Place>,
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
        Self(Arc::new(Slot {
            spec,
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
        let warden = Arc::new(Warden::spawn(&self.0.spec).await?);
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
        match old {
            Place::Filled(warden) => warden.close(within).await,
            Place::Empty | Place::Closed => true,
        }
    }
}
