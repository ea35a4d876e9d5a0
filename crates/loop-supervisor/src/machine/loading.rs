//! Loading from cold to hot. Loads run in tasks of their own, so a slow session log delays no other session.

use super::routing::faulted;
use super::slot::{Hot, Loading, Slot};
use super::{Action, Supervisor, SupervisorMutant};
use agentd_actor_kit::{LoopId, NotLoaded, Routed};
use agentd_protocol::{Fault, FaultClass, SessionCreated, SessionId};
use agentd_session_loop::LoadPurpose;
use agentd_store::{AWAY, ELSEWHERE};
use agentd_turn::Command;
use std::collections::VecDeque;

/// The delay before retrying a session that should wake and could not be loaded.
const RETRY_MS: u64 = 5_000;

impl Supervisor {
    /// Starts to load a session.
    pub(super) fn load(&mut self, session: SessionId, first: Option<Routed>) {
        self.tickets = self.tickets.saturating_add(1);
        let ticket = self.tickets;
        let created = first.as_ref().and_then(|routed| created(&routed.command));
        let purpose = first.as_ref().map_or(LoadPurpose::Ordinary, purpose);
        let loading = Loading {
            ticket,
            by_itself: first.is_none(),
            waiting: first.into_iter().collect(),
            since: self.now,
        };
        self.occupy(session, Slot::Loading(loading));
        self.wakes.remove(session);
        self.act(Action::Load {
            session,
            ticket,
            created,
            purpose,
        });
    }

    /// Handles the end of a load.
    pub fn loaded(&mut self, session: SessionId, ticket: u64, loaded: Result<LoopId, NotLoaded>) {
        let current = match self.slots.get(&session) {
            Some(Slot::Loading(loading)) => loading.ticket == ticket,
            Some(Slot::Hot(_) | Slot::Faulted { .. }) | None => false,
        };
        if !current {
            if let Ok(who) = loaded
                && !self.has(SupervisorMutant::DoubleLoad)
            {
                self.act(Action::Kill(who));
            }
            return;
        }
        let Some(Slot::Loading(loading)) = self.vacate(session) else {
            return;
        };
        match loaded {
            Ok(who) => self.heat(session, who, loading.waiting),
            // Its exit was reported before the loop was known here.
            Err(NotLoaded::Died) => self.crashed(session, "it failed to start", loading.waiting),
            Err(NotLoaded::Faulted(why)) => self.fault(session, why, loading.waiting),
            Err(NotLoaded::Refused(fault)) => self.refuse(session, &fault, loading),
        }
        self.room_made();
    }

    fn heat(&mut self, session: SessionId, who: LoopId, waiting: VecDeque<Routed>) {
        self.loops.insert(who, session);
        if self.draining.is_some() {
            self.act(Action::Drain(who));
        }
        let hot = Hot {
            who,
            routed: waiting.len() as u64,
            status: None,
        };
        self.occupy(session, Slot::Hot(hot));
        for routed in waiting {
            self.act(Action::Send(who, routed));
        }
    }

    /// Faults a session; it stays so until a person acts.
    pub(super) fn fault(&mut self, session: SessionId, why: String, waiting: VecDeque<Routed>) {
        tracing::error!(%session, why, "session faulted");
        for routed in waiting {
            routed.done.answer(Err(faulted(session, &why)));
        }
        self.act(Action::Faulted(session, why.clone()));
        let since = self.now;
        self.occupy(session, Slot::Faulted { why, since });
    }

    fn refuse(&mut self, session: SessionId, fault: &Fault, loading: Loading) {
        for routed in loading.waiting {
            routed.done.answer(Err(fault.clone()));
        }
        // Another node continues it, if it is there.
        let elsewhere =
            fault.class == FaultClass::NotFound || [ELSEWHERE, AWAY].contains(&fault.code.as_str());
        if loading.by_itself && !elsewhere {
            tracing::warn!(%session, %fault, "could not wake a session; retrying");
            self.wakes.set(session, self.now.plus_ms(RETRY_MS));
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "few commands need no files")]
fn purpose(routed: &Routed) -> LoadPurpose {
    match &*routed.command {
        Command::Resume {
            moved: Some(moved), ..
        } => LoadPurpose::Move(moved.clone(), routed.by.clone()),
        Command::CancelTurn { .. } | Command::Close { .. } | Command::ChildEnded { .. } | Command::Tell => {
            LoadPurpose::NoFiles
        }
        _ => LoadPurpose::Ordinary,
    }
}

fn created(command: &Command) -> Option<Box<SessionCreated>> {
    if let Command::Create { created, .. } = command {
        return Some(created.clone());
    }
    None
}
