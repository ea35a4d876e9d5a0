//! The supervisor actor.

use crate::args::SupervisorArgs;
use crate::shell::Shell;
use agentd_actor_kit::{Down, LoopId, SupervisorMsg};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr, SupervisionEvent};
use std::time::Duration;

/// How long the loops may take to stop when the supervisor stops.
const STOP_CHILDREN: Duration = Duration::from_secs(2);

/// The router and supervisor of all session loops of a node.
#[derive(Debug)]
pub struct LoopSupervisor;

impl LoopSupervisor {
    /// Starts this supervisor, linked to its parent supervisor.
    ///
    /// # Errors
    /// The actor could not be started.
    pub async fn start(
        args: SupervisorArgs,
        supervisor: ActorCell,
    ) -> Result<ActorRef<SupervisorMsg>, SpawnErr> {
        Actor::spawn_linked(None, Self, args, supervisor)
            .await
            .map(|(actor, _)| actor)
    }
}

impl Actor for LoopSupervisor {
    type Msg = SupervisorMsg;
    type State = Shell;
    type Arguments = SupervisorArgs;

    async fn pre_start(
        &self,
        me: ActorRef<SupervisorMsg>,
        args: SupervisorArgs,
    ) -> Result<Shell, ActorProcessingErr> {
        Ok(Shell::new(me, args))
    }

    async fn handle(
        &self,
        _me: ActorRef<SupervisorMsg>,
        message: SupervisorMsg,
        shell: &mut Shell,
    ) -> Result<(), ActorProcessingErr> {
        shell.take(message);
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<SupervisorMsg>,
        _shell: &mut Shell,
    ) -> Result<(), ActorProcessingErr> {
        me.get_cell()
            .stop_children_and_wait(Some("stopping".to_owned()), Some(STOP_CHILDREN))
            .await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SupervisorMsg>,
        event: SupervisionEvent,
        _shell: &mut Shell,
    ) -> Result<(), ActorProcessingErr> {
        // Supervision events overtake messages, so this one is queued behind everything that the loop has sent.
        let (who, why) = match event {
            SupervisionEvent::ActorFailed(cell, error) => (cell, Down::Failed(error.to_string())),
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                (cell, Down::Killed(reason.unwrap_or_else(|| "stopped".to_owned())))
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        let who = LoopId(who.get_id().pid());
        let _ = me.cast(SupervisorMsg::Down { who, why });
        Ok(())
    }
}
