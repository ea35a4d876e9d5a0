//! An actor whose whole life is one piece of work.

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::pin::Pin;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All its work is done as it starts, where a kill interrupts it and a panic is told to its supervisor.
struct Kid;

/// Starts a kid, linked to `supervisor`, that does this work and ends. Killing it drops the work.
///
/// # Errors
/// When the supervisor is going down.
pub fn spawn_kid<F>(
    work: F,
    supervisor: ActorCell,
) -> impl Future<Output = Result<ActorCell, SpawnErr>> + Send + use<F>
where
    F: Future<Output = ()> + Send + 'static,
{
    // Before the first step, since the work is large and would lie in the future of each caller.
    let work: Work = Box::pin(work);
    async move {
        let (kid, _) = Actor::spawn_linked(None, Kid, work, supervisor).await?;
        Ok(kid.get_cell())
    }
}

impl Actor for Kid {
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
