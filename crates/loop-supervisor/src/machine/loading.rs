//! Loading from cold to hot, in a task, so that a slow session log delays no other session.

use crate::routing::faulted;
use crate::slot::{Hot, Loading, Slot};
use crate::state::State;
use agentd_actor_kit::{Done, Routed, SessionMsg, SupervisorMsg, Woken};
use agentd_protocol::{Fault, FaultClass, SessionCreated, SessionId};
use agentd_session_loop::{LoopArgs, LoopError, Services, SessionLoop, fresh, load, tell_of_fault};
use agentd_turn::Command;
use ractor::{ActorRef, ActorStatus};
use std::collections::VecDeque;
use std::sync::Arc;

/// The delay before retrying a session that should wake and could not be loaded.
const RETRY_MS: u64 = 5_000;

impl State {
    /// Starts to load a session.
    pub(crate) fn load(&mut self, session: SessionId, first: Option<Routed>) {
        self.tickets = self.tickets.saturating_add(1);
        let ticket = self.tickets;
        let created = first.as_ref().and_then(|routed| created(&routed.command));
        let loading = Loading {
            ticket,
            by_itself: first.is_none(),
            waiting: first.into_iter().collect(),
            since: self.now(),
        };
        self.occupy(session, Slot::Loading(loading));
        self.wakes.remove(session);
        let done = Done::cast(&self.me, move |woken| {
            // There is no answer: the task panicked while folding this log.
            let woken =
                woken.unwrap_or_else(|| Woken::Faulted("cannot compute its state from its log".to_owned()));
            SupervisorMsg::Loaded {
                session,
                ticket,
                woken,
            }
        });
        let (services, me) = (Arc::clone(&self.services), self.me.clone());
        tokio::spawn(async move { done.answer(wake(services, me, session, created).await) });
    }

    /// Handles the end of a load.
    pub(crate) fn loaded(&mut self, session: SessionId, ticket: u64, woken: Woken) {
        let current = match self.slots.get(&session) {
            Some(Slot::Loading(loading)) => loading.ticket == ticket,
            Some(Slot::Hot(_) | Slot::Faulted { .. }) | None => false,
        };
        if !current {
            if let Woken::Hot(actor) = woken {
                actor.kill();
            }
            return;
        }
        let Some(Slot::Loading(loading)) = self.vacate(session) else {
            return;
        };
        match woken {
            Woken::Hot(actor) => self.heat(session, actor, loading.waiting),
            Woken::Faulted(why) => self.fault(session, why, loading.waiting),
            Woken::Refused(fault) => self.refuse(session, &fault, loading),
        }
        self.room_made();
    }

    fn heat(&mut self, session: SessionId, actor: ActorRef<SessionMsg>, waiting: VecDeque<Routed>) {
        if actor.get_status() >= ActorStatus::Stopping {
            // The loop died before it was registered, so its exit was not reported.
            self.crashed(session, "it failed to start", waiting);
            return;
        }
        self.loops.insert(actor.get_id(), session);
        if self.draining.is_some() {
            let _ = actor.cast(SessionMsg::Drain);
        }
        self.occupy(
            session,
            Slot::Hot(Hot {
                actor,
                routed: 0,
                status: None,
            }),
        );
        for routed in waiting {
            self.send(routed);
        }
    }

    /// Faults a session; it stays so until a person acts.
    pub(crate) fn fault(&mut self, session: SessionId, why: String, waiting: VecDeque<Routed>) {
        tracing::error!(%session, why, "session faulted");
        for routed in waiting {
            routed.done.answer(Err(faulted(session, &why)));
        }
        tell_of_fault(Arc::clone(&self.services), self.me.clone(), session, &why);
        let since = self.now();
        self.occupy(session, Slot::Faulted { why, since });
    }

    fn refuse(&mut self, session: SessionId, fault: &Fault, loading: Loading) {
        for routed in loading.waiting {
            routed.done.answer(Err(fault.clone()));
        }
        if loading.by_itself && fault.class != FaultClass::NotFound {
            tracing::warn!(%session, %fault, "could not wake a session; retrying");
            self.wakes.set(session, self.now().plus_ms(RETRY_MS));
        }
    }
}

fn created(command: &Command) -> Option<Box<SessionCreated>> {
    match command {
        Command::Create { created, .. } => Some(created.clone()),
        Command::Send(_)
        | Command::CancelInput(_)
        | Command::CancelTurn { .. }
        | Command::Decide { .. }
        | Command::Pause { .. }
        | Command::Resume { .. }
        | Command::Compact
        | Command::Summarize
        | Command::Close { .. }
        | Command::ChildEnded { .. }
        | Command::Tell
        | Command::Follow
        | Command::Rework(_)
        | Command::Update { .. } => None,
    }
}

async fn wake(
    services: Arc<Services>,
    supervisor: ActorRef<SupervisorMsg>,
    session: SessionId,
    created: Option<Box<SessionCreated>>,
) -> Woken {
    let folded = match created {
        Some(created) => fresh(&services, session, &created).await,
        None => load(&services, session).await,
    };
    let folded = match folded {
        Ok(folded) => folded,
        Err(LoopError::Refused(fault)) => return Woken::Refused(fault),
        Err(error) => return Woken::Faulted(error.to_string()),
    };
    match SessionLoop::start(LoopArgs {
        services,
        folded,
        supervisor,
    })
    .await
    {
        Ok(actor) => Woken::Hot(actor),
        Err(error) => Woken::Refused(Fault::internal("loop_not_started", error.to_string())),
    }
}
