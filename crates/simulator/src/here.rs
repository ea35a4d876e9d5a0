//! The memory of one node. It dies with the node.

use crate::messages::Happening;
use crate::models::Models;
use crate::node::supervisor;
use crate::options::Options;
use crate::tree_messages::TreeMessage;
use crate::{hot::Hot, workers::Worker};
use agentd_loop_supervisor::Supervisor;
use agentd_protocol::Timestamp;
use agentd_session_store::{FeedLimits, FeedState};
use agentd_store::{Keeper, Placer};
use std::collections::BTreeMap;
use std::time::Duration;

/// One node. The world looks at one at a time, and parks the others.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) number: u64,
    pub(crate) alive: bool,
    /// Counts the starts of the node.
    pub(crate) era: u64,
    pub(crate) loops: BTreeMap<u64, Hot>,
    pub(crate) supervisor: Supervisor,
    /// The number of the timer for wake-ups.
    pub(crate) tick: u64,
    pub(crate) workers: BTreeMap<u64, Worker>,
    pub(crate) models: Models,
    pub(crate) feed: FeedState,
    /// Messages in transit between sessions.
    pub(crate) tree_messages: BTreeMap<u64, TreeMessage>,
    /// `None`: it is alone, or has not joined yet.
    pub(crate) member: Option<Member>,
    /// What reaches it while it is stopped (SIGSTOP), in order.
    pub(crate) frozen: Option<Vec<Happening>>,
    /// Until then it cannot reach the store.
    pub(crate) cut_until: u64,
    /// Its wall clock is ahead by this, in milliseconds.
    pub(crate) ahead_ms: u64,
}

/// The shipped decisions about the membership, and what they last led to.
#[derive(Debug)]
pub(crate) struct Member {
    /// The incarnation that the store's client uses.
    pub(crate) me: u64,
    pub(crate) keeper: Keeper,
    pub(crate) placer: Placer,
    /// Until when effects may start.
    pub(crate) lease: Duration,
    /// Loops up to this number belong to earlier incarnations.
    pub(crate) earlier_loops: u64,
    /// When this incarnation joined.
    pub(crate) joined_at: u64,
    /// The number of searches for sessions that continue by themselves.
    pub(crate) scans: u32,
    /// It gives up its cold sessions.
    pub(crate) hands_over: bool,
}

impl Node {
    pub(crate) fn new(number: u64, options: &Options, now: Timestamp) -> Self {
        Self {
            number,
            alive: true,
            era: 0,
            supervisor: supervisor(options),
            tick: 0,
            loops: BTreeMap::new(),
            workers: BTreeMap::new(),
            models: Models::new(options, now),
            feed: FeedState::new(0, FeedLimits::default()),
            tree_messages: BTreeMap::new(),
            member: None,
            frozen: None,
            cut_until: 0,
            ahead_ms: 0,
        }
    }

    /// The incarnation as which it asks the store; `None`: it is alone.
    pub(crate) fn me(&self) -> Option<u64> {
        self.member.as_ref().map(|member| member.me)
    }
}
