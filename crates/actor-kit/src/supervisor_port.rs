//! The messages of the loop supervisor.

use crate::session_port::SessionMsg;
use agentd_actor_core::{Done, Down};
use agentd_protocol::{Fault, Principal, Seq, SessionId, Status, Timestamp};
use agentd_store::IdempotencyKey;
use agentd_turn::{Command, Reply};
use ractor::ActorRef;
use std::collections::BTreeMap;

/// One incarnation of a session's loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoopId(pub u64);

/// A command on its way to a session.
#[derive(Debug)]
pub struct Routed {
    /// The session.
    pub session: SessionId,
    /// The command.
    pub command: Box<Command>,
    /// The principal.
    pub by: Principal,
    /// The idempotency key to store with it.
    pub key: Option<IdempotencyKey>,
    /// The answer, once the command is durable.
    pub done: Done<Result<Reply, Fault>>,
}

/// Statistics for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SupervisorStats {
    /// Sessions with an actor.
    pub hot: u64,
    /// Scheduled wake-ups.
    pub timed: u64,
    /// Loop crashes since the start.
    pub crashes: u64,
    /// Whether the supervisor is draining.
    pub draining: bool,
}

/// The status of a session with an actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveStatus {
    /// The end of the log when the session reported the status; none if the supervisor set it, whatever the log says.
    pub seq: Option<Seq>,
    /// The status.
    pub status: Status,
}

/// Why a session has no loop after a load.
#[derive(Debug)]
pub enum NotLoaded {
    /// Its loop has died already.
    Died,
    /// Its log cannot be interpreted; a person must act.
    Faulted(String),
    /// It cannot be loaded now; the waiting commands get this fault.
    Refused(Fault),
}

/// Messages of the loop supervisor.
#[derive(Debug)]
pub enum SupervisorMsg {
    /// A command for a session, which is woken if it is cold. `Command::Create` makes a new one.
    Route(Routed),
    /// A loop is idle: the passivation handshake. The session goes cold only if everything routed to it is handled.
    Idle {
        /// The session.
        session: SessionId,
        /// The incarnation of the loop.
        who: LoopId,
        /// The number of commands that it has handled.
        handled: u64,
        /// When the session continues by itself.
        wake_at: Option<Timestamp>,
    },
    /// A loop's live status, for lists.
    Status {
        /// The session.
        session: SessionId,
        /// The incarnation of the loop.
        who: LoopId,
        /// The status.
        status: LiveStatus,
    },
    /// The live statuses of all hot sessions.
    Overlay {
        /// By session.
        done: Done<BTreeMap<SessionId, LiveStatus>>,
    },
    /// The sessions that are not cold, also those that have not reported a status yet.
    Awake {
        /// The sessions.
        done: Done<Vec<SessionId>>,
    },
    /// A load ended (private, from the loading task).
    Loaded {
        /// The session.
        session: SessionId,
        /// The load; an outdated one is undone.
        ticket: u64,
        /// The running loop.
        loaded: Result<ActorRef<SessionMsg>, NotLoaded>,
    },
    /// A loop went down; the supervisor re-queues this to itself.
    Down {
        /// The incarnation of the loop.
        who: LoopId,
        /// The cause.
        why: Down,
    },
    /// Clear the fault mark of a session and wake it.
    Revive {
        /// The session.
        session: SessionId,
        /// Whether it was faulted.
        done: Done<bool>,
    },
    /// Kill a loop without a message to it. Its workers die with it; the next command folds the log again.
    Evict {
        /// The session.
        session: SessionId,
        /// Answered when it is gone.
        done: Done<()>,
    },
    /// Wake sessions with open work or a due `wake_at` (private timer).
    Tick,
    /// Rows of sessions to wake (private).
    Found {
        /// The sessions, and when to wake them.
        rows: Vec<(SessionId, Timestamp)>,
    },
    /// Refuse new work, let running work end, stop the loops; answered when all sessions are cold or at the deadline.
    Drain {
        /// The deadline, in milliseconds.
        deadline_ms: u64,
        /// Sessions that were still running.
        done: Done<u64>,
    },
    /// The drain's deadline (private timer).
    DrainDeadline,
    /// Ask for the statistics.
    Stats {
        /// The statistics.
        done: Done<SupervisorStats>,
    },
}
