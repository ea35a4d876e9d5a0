//! Services: children of the root that are no actors of their own crate but plain loops, such as the control server.

use agentd_actor_kit::{Pointer, spawn_worker};
use futures_util::future::BoxFuture;
use ractor::{ActorCell, ActorId, ActorRef, SpawnErr};
use std::fmt;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// When a service starts and stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Starts after the store and is cut off after the loops have stopped, so that it sees all events.
    Log,
    /// Starts after the loops. At a stop it is told first, and may finish what it has begun; so it must heed the flag.
    Front,
    /// Starts last, and is cut off first.
    Last,
}

type Run = dyn Fn(watch::Receiver<bool>) -> BoxFuture<'static, ()> + Send + Sync;

/// A loop that the root starts, and restarts whenever it ends or panics. Its state survives a restart.
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) phase: Phase,
    run: Box<Run>,
    stop: watch::Sender<bool>,
    pub(crate) pointer: Pointer<()>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// `run` gets the state and a flag that turns true when the node stops. In phases other than [`Phase::Front`] it is
    /// cut off then.
    pub(crate) fn new<T, F>(name: &'static str, phase: Phase, state: T, run: F) -> Self
    where
        T: Send + 'static,
        F: for<'a> Fn(&'a mut T, watch::Receiver<bool>) -> BoxFuture<'a, ()> + Send + Sync + 'static,
    {
        let shared = Arc::new((Mutex::new(state), run));
        let run = move |stopped| -> BoxFuture<'static, ()> {
            let shared = Arc::clone(&shared);
            Box::pin(async move { (shared.1)(&mut *shared.0.lock().await, stopped).await })
        };
        Self {
            name,
            phase,
            run: Box::new(run),
            stop: watch::Sender::new(false),
            pointer: Pointer::new(name),
        }
    }

    /// Starts it, linked to the root.
    pub(crate) async fn start(&self, root: ActorCell) -> Result<ActorId, SpawnErr> {
        let (work, mut stopped) = ((self.run)(self.stop.subscribe()), self.stop.subscribe());
        let phase = self.phase;
        let work = async move {
            if phase == Phase::Front {
                return work.await;
            }
            tokio::select! {
                () = work => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        };
        let worker = spawn_worker(work, root).await?;
        let id = worker.get_id();
        self.pointer.set(ActorRef::from(worker));
        Ok(id)
    }

    /// Tells it that the node stops.
    pub(crate) fn announce_stop(&self) {
        self.stop.send_replace(true);
    }
}
