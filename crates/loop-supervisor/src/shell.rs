//! The shell of the supervisor: keeps the references to the loops and the timers, and carries out what the machine decides.

use crate::args::SupervisorArgs;
use crate::jobs;
use crate::machine::{Action, Supervisor};
use agentd_actor_kit::{Alarm, Done, FeedMsg, LoopId, NotLoaded, SessionMsg, SupervisorMsg, ToolMsg};
use agentd_fault_points as fault;
use agentd_protocol::{SessionCreated, SessionId};
use agentd_session_loop::{LoadPurpose, Services, tell_of_fault};
use ractor::{ActorRef, ActorStatus, MessagingErr};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The state of the supervisor actor.
#[derive(Debug)]
pub struct Shell {
    me: ActorRef<SupervisorMsg>,
    services: Arc<Services>,
    core: Supervisor,
    /// The number of session list rows that are read at a time.
    scan_rows: u32,
    /// The loops that the machine knows, or will be told about.
    loops: BTreeMap<LoopId, ActorRef<SessionMsg>>,
    tick: Option<Alarm>,
    drain_deadline: Option<Alarm>,
}

impl Shell {
    pub(crate) fn new(me: ActorRef<SupervisorMsg>, args: SupervisorArgs) -> Self {
        let mut shell = Self {
            me,
            services: args.services,
            core: Supervisor::new(args.bounds),
            scan_rows: args.bounds.scan_rows,
            loops: BTreeMap::new(),
            tick: None,
            drain_deadline: None,
        };
        shell.carry_out_all();
        shell
    }

    pub(crate) fn take(&mut self, message: SupervisorMsg) {
        let core = self.core.at(self.services.clock.now());
        match message {
            SupervisorMsg::Route(routed) => core.route(routed),
            SupervisorMsg::Idle {
                session,
                who,
                handled,
                wake_at,
            } => {
                if fault::point(fault::SESSION_COLD).is_ok() {
                    core.idle(session, who, handled, wake_at);
                }
            }
            SupervisorMsg::Status { session, who, status } => core.note_status(session, who, status),
            SupervisorMsg::Overlay { done } => done.answer(core.overlay()),
            SupervisorMsg::Awake { done } => done.answer(core.awake()),
            SupervisorMsg::Loaded {
                session,
                ticket,
                loaded,
            } => {
                let loaded = loaded.and_then(|actor| keep(&mut self.loops, actor));
                core.loaded(session, ticket, loaded);
            }
            SupervisorMsg::Down { who, why } => {
                self.loops.remove(&who);
                core.down(who, why);
            }
            SupervisorMsg::Revive { session, done } => done.answer(core.revive(session)),
            SupervisorMsg::Evict { session, done } => core.evict(session, done),
            SupervisorMsg::Tick => core.tick(),
            SupervisorMsg::Found { rows } => core.found(rows),
            SupervisorMsg::Drain { deadline_ms, done } => core.drain(deadline_ms, done),
            SupervisorMsg::DrainDeadline => core.drain_deadline(),
            SupervisorMsg::Stats { done } => done.answer(core.stats()),
        }
        self.carry_out_all();
    }

    fn carry_out_all(&mut self) {
        while let Some(action) = self.core.next_action() {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Load {
                session,
                ticket,
                created,
                purpose,
            } => self.load(session, ticket, created, purpose),
            Action::Send(who, routed) => {
                let sent = match self.loops.get(&who) {
                    Some(actor) => actor.cast(SessionMsg::Command(routed)),
                    None => Err(MessagingErr::SendErr(SessionMsg::Command(routed))),
                };
                if let Err(MessagingErr::SendErr(SessionMsg::Command(routed))) = sent {
                    self.core.undelivered(who, routed);
                }
            }
            Action::Stop(who) => {
                if let Some(actor) = self.loops.remove(&who) {
                    actor.stop(Some("passivated".to_owned()));
                }
            }
            Action::Kill(who) => {
                if let Some(actor) = self.loops.get(&who) {
                    actor.kill();
                }
            }
            Action::AskIdle => self.tell_loops(|| SessionMsg::Idle),
            Action::DrainLoops => self.tell_loops(|| SessionMsg::Drain),
            Action::Drain(who) => {
                if let Some(actor) = self.loops.get(&who) {
                    let _ = actor.cast(SessionMsg::Drain);
                }
            }
            Action::Cold(session) => {
                self.services.feed.cast(FeedMsg::Cold { session });
                self.services.tools.cast(ToolMsg::SessionEnded { session });
            }
            Action::Faulted(session, why) => {
                tell_of_fault(Arc::clone(&self.services), self.me.clone(), session, &why);
            }
            Action::Scan => {
                let (services, me, rows) = (Arc::clone(&self.services), self.me.clone(), self.scan_rows);
                tokio::spawn(async move { jobs::scan(&services, &me, rows).await });
            }
            Action::Look(session) => {
                let (services, me) = (Arc::clone(&self.services), self.me.clone());
                tokio::spawn(async move { jobs::look(&services, &me, session).await });
            }
            Action::SetTick(at) => {
                let now = self.services.clock.now();
                self.tick = at.map(|at| self.alarm(at.since_ms(now), SupervisorMsg::Tick));
            }
            Action::SetDrainDeadline(after_ms) => {
                self.drain_deadline = Some(self.alarm(after_ms, SupervisorMsg::DrainDeadline));
            }
        }
    }

    fn alarm(&self, after_ms: u64, message: SupervisorMsg) -> Alarm {
        Alarm::set(&self.me, Duration::from_millis(after_ms), message)
    }

    fn tell_loops(&self, message: impl Fn() -> SessionMsg) {
        for actor in self.loops.values() {
            let _ = actor.cast(message());
        }
    }

    fn load(
        &self,
        session: SessionId,
        ticket: u64,
        created: Option<Box<SessionCreated>>,
        purpose: LoadPurpose,
    ) {
        let done = Done::cast(&self.me, move |loaded| {
            // There is no answer: the task panicked while folding this log.
            let faulted = || NotLoaded::Faulted("cannot compute its state from its log".to_owned());
            SupervisorMsg::Loaded {
                session,
                ticket,
                loaded: loaded.unwrap_or_else(|| Err(faulted())),
            }
        });
        let (services, me) = (Arc::clone(&self.services), self.me.clone());
        tokio::spawn(async move { done.answer(jobs::load(services, me, session, (created, purpose)).await) });
    }
}

/// Keeps the reference to a loop that was loaded.
fn keep(
    loops: &mut BTreeMap<LoopId, ActorRef<SessionMsg>>,
    actor: ActorRef<SessionMsg>,
) -> Result<LoopId, NotLoaded> {
    if actor.get_status() >= ActorStatus::Stopping {
        // Its exit may have been reported already, and would not be reported again.
        return Err(NotLoaded::Died);
    }
    let who = LoopId(actor.get_id().pid());
    loops.insert(who, actor);
    Ok(who)
}
