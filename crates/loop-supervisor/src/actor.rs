//! The supervisor actor: each message maps to one method call.

use crate::args::SupervisorArgs;
use crate::state::State;
use agentd_actor_kit::{Down, SupervisorMsg};
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
    type State = State;
    type Arguments = SupervisorArgs;

    async fn pre_start(
        &self,
        me: ActorRef<SupervisorMsg>,
        args: SupervisorArgs,
    ) -> Result<State, ActorProcessingErr> {
        let state = State::new(me, args);
        state.scan();
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<SupervisorMsg>,
        message: SupervisorMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SupervisorMsg::Route(routed) => state.route(routed),
            SupervisorMsg::Idle {
                session,
                who,
                handled,
                wake_at,
            } => state.idle(session, who, handled, wake_at),
            SupervisorMsg::Status { session, who, status } => state.note_status(session, who, status),
            SupervisorMsg::Overlay { done } => done.answer(state.overlay()),
            SupervisorMsg::Loaded {
                session,
                ticket,
                woken,
            } => state.loaded(session, ticket, woken),
            SupervisorMsg::Down { who, why } => state.down(who, why),
            SupervisorMsg::Revive { session, done } => done.answer(state.revive(session)),
            SupervisorMsg::Evict { session, done } => state.evict(session, done),
            SupervisorMsg::Tick => state.tick(),
            SupervisorMsg::Found { rows } => state.found(rows),
            SupervisorMsg::Drain { deadline_ms, done } => state.drain(deadline_ms, done),
            SupervisorMsg::DrainDeadline => state.drain_deadline(),
            SupervisorMsg::Stats { done } => done.answer(state.stats()),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<SupervisorMsg>,
        _state: &mut State,
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
        _state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        // Supervision events overtake messages, so this one is queued behind everything that the loop has sent.
        let (who, why) = match event {
            SupervisionEvent::ActorFailed(cell, error) => (cell.get_id(), Down::Failed(error.to_string())),
            SupervisionEvent::ActorTerminated(cell, _, reason) => (
                cell.get_id(),
                Down::Killed(reason.unwrap_or_else(|| "stopped".to_owned())),
            ),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        let _ = me.cast(SupervisorMsg::Down { who, why });
        Ok(())
    }
}
