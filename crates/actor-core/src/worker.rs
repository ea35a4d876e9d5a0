//! Workers: actors that do one piece of work and then end.

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::pin::Pin;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// It works in `post_start`, where a kill interrupts the work and the supervisor learns of a panic.
struct Worker;

/// Starts a worker, linked to `supervisor`, that does this work and then ends. Killing it drops the work.
///
/// # Errors
/// The supervisor is going down.
pub fn spawn_worker<F>(
    work: F,
    supervisor: ActorCell,
) -> impl Future<Output = Result<ActorCell, SpawnErr>> + Send + use<F>
where
    F: Future<Output = ()> + Send + 'static,
{
    // Box it outside the async block: the work is large, and the future of every caller would contain it.
    let work: Work = Box::pin(work);
    async move {
        let (worker, _) = Actor::spawn_linked(None, Worker, work, supervisor).await?;
        Ok(worker.get_cell())
    }
}

impl Actor for Worker {
    type Msg = ();
    type State = Option<Work>;
    type Arguments = Work;

    async fn pre_start(&self, _: ActorRef<()>, work: Work) -> Result<Self::State, ActorProcessingErr> {
        Ok(Some(work))
    }

    async fn post_start(
        &self,
        myself: ActorRef<()>,
        work: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(work) = work.take() {
            work.await;
        }
        myself.stop(None);
        Ok(())
    }
}
