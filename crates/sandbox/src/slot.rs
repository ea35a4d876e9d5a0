//! A session's place for its helper.

use crate::environment::Environment;
use crate::error::SandboxError;
use crate::helper::Helper;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How a helper is started.
#[derive(Debug, Clone)]
pub struct HelperSpec {
    /// The daemon's own program (`/proc/self/exe`).
    pub exe: PathBuf,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// What its commands see.
    pub environment: Environment,
}

/// A session's resident helper: started at the first command, again when it is gone. Clones are the same place.
#[derive(Debug, Clone)]
pub struct HelperSlot(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    spec: HelperSpec,
    place: Mutex<Place>,
}

#[derive(Debug)]
enum Place {
    Empty,
    Filled(Arc<Helper>),
    /// The session ended: no helper is started any more.
    Closed,
}

impl HelperSlot {
    /// An empty slot; starts nothing.
    #[must_use]
    pub fn new(spec: HelperSpec) -> Self {
        Self(Arc::new(Slot {
            spec,
            place: Mutex::new(Place::Empty),
        }))
    }

    /// The helper, started if need be.
    ///
    /// # Errors
    /// When it cannot be started, or the slot was closed.
    pub async fn get(&self) -> Result<Arc<Helper>, SandboxError> {
        let mut place = self.0.place.lock().await;
        match &*place {
            Place::Closed => return Err(SandboxError::HelperGone),
            Place::Filled(helper) if helper.is_alive() => return Ok(Arc::clone(helper)),
            Place::Filled(_) | Place::Empty => {}
        }
        let helper = Arc::new(Helper::spawn(&self.0.spec).await?);
        *place = Place::Filled(Arc::clone(&helper));
        Ok(helper)
    }

    /// Lets a helper go that has run nothing for `idle`, with what its commands left behind. Whether there is none now.
    #[must_use]
    pub fn release_idle(&self, idle: Duration) -> bool {
        let Ok(mut place) = self.0.place.try_lock() else {
            return false;
        };
        if let Place::Filled(helper) = &*place
            && (!helper.is_alive() || helper.idle_for().is_some_and(|time| time >= idle))
        {
            *place = Place::Empty;
        }
        !matches!(&*place, Place::Filled(_))
    }

    /// The session ended: kills everything that runs under the helper and waits until it is gone, at most `within`.
    /// Whether it is gone.
    pub async fn close(&self, within: Duration) -> bool {
        let old = std::mem::replace(&mut *self.0.place.lock().await, Place::Closed);
        match old {
            Place::Filled(helper) => helper.close(within).await,
            Place::Empty | Place::Closed => true,
        }
    }
}
