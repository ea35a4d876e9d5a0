//! What the loop supervisor understands.

use crate::session_port::SessionMsg;
use agentd_actor_core::{Done, Down};
use agentd_protocol::{Fault, Principal, Seq, SessionId, Status, Timestamp};
use agentd_store::IdempotencyKey;
use agentd_turn::{Command, Reply};
use ractor::{ActorId, ActorRef};
use std::collections::BTreeMap;

/// A command on its way to a session.
#[derive(Debug)]
pub struct Routed {
    /// Whose.
    pub session: SessionId,
    /// What.
    pub command: Box<Command>,
    /// Who.
    pub by: Principal,
    /// The idempotency key to store with it.
    pub key: Option<IdempotencyKey>,
    /// The answer, when it is durable.
    pub done: Done<Result<Reply, Fault>>,
}

/// Numbers for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SupervisorStats {
    /// Sessions with an actor.
    pub hot: u64,
    /// Timed wake-ups ahead.
    pub timed: u64,
    /// Loops that crashed since the start.
    pub crashes: u64,
    /// Whether it drains.
    pub draining: bool,
}

/// The status of a session with an actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveStatus {
    /// The end of the log when the session reported it; none where the supervisor says it, whatever the log says.
    pub seq: Option<Seq>,
    /// The status.
    pub status: Status,
}

/// What came of waking a cold session.
#[derive(Debug)]
pub enum Woken {
    /// Its loop runs.
    Hot(ActorRef<SessionMsg>),
    /// Its log is not understood; it needs a person.
    Faulted(String),
    /// It could not be loaded now; the commands that waited get this.
    Refused(Fault),
}

/// Messages of the loop supervisor.
#[derive(Debug)]
pub enum SupervisorMsg {
    /// A command for a session, which is woken if it is cold. `Command::Create` makes a new one.
    Route(Routed),
    /// A loop has nothing to do: the handshake of passivation. It goes cold only if everything routed was handled.
    Idle {
        /// Which session.
        session: SessionId,
        /// Which incarnation.
        who: ActorId,
        /// Commands it has handled.
        handled: u64,
        /// When it goes on by itself.
        wake_at: Option<Timestamp>,
    },
    /// A loop's live status, for lists.
    Status {
        /// Which session.
        session: SessionId,
        /// Which incarnation.
        who: ActorId,
        /// The status.
        status: LiveStatus,
    },
    /// The live statuses of all hot sessions.
    Overlay {
        /// By session.
        done: Done<BTreeMap<SessionId, LiveStatus>>,
    },
    /// A load ended (private, from the loading task).
    Loaded {
        /// Which session.
        session: SessionId,
        /// Which load; an outdated one is undone.
        ticket: u64,
        /// What came of it.
        woken: Woken,
    },
    /// A loop went down; re-queued by the supervisor to itself.
    Down {
        /// Which incarnation.
        who: ActorId,
        /// Why.
        why: Down,
    },
    /// Clear the fault mark of a session and wake it.
    Revive {
        /// Which.
        session: SessionId,
        /// Whether it was faulted.
        done: Done<bool>,
    },
    /// Stop a loop without a word to it (kill): its kids die with it; the log is folded again at the next command.
    Evict {
        /// Which.
        session: SessionId,
        /// Gone.
        done: Done<()>,
    },
    /// Wake sessions with open work or a due `wake_at` (private timer).
    Tick,
    /// Rows that want waking (private).
    Found {
        /// Sessions and when.
        rows: Vec<(SessionId, Timestamp)>,
    },
    /// Refuse new work, let what runs end, stop the loops; answered when all are cold or at the deadline.
    Drain {
        /// When to give up.
        deadline_ms: u64,
        /// Sessions that were still running.
        done: Done<u64>,
    },
    /// The drain's deadline (private timer).
    DrainDeadline,
    /// Numbers for people.
    Stats {
        /// The numbers.
        done: Done<SupervisorStats>,
    },
}
