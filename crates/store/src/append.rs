//! The append request and its outcome. One append is one transaction.

use crate::{EncodedEvent, StoreError, blob};
use agentd_protocol::{AppendId, Principal, Seq, SessionId, Summary};
use bytes::Bytes;

/// Everything that one decision of a session's owner makes durable, all or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The session of the log. An append with `expected_head` 0 and `epoch` 1 creates it.
    pub session: SessionId,
    /// The owner's fencing number. The append is refused unless it is the current one.
    pub epoch: u64,
    /// The last seq that the owner knows. The append is refused unless it is the current one.
    pub expected_head: Seq,
    /// Makes a retry after a lost answer harmless. Never reused for different content.
    pub append_id: AppendId,
    /// The events, numbered from `expected_head + 1` without gaps.
    pub events: Vec<EncodedEvent>,
    /// Large content that the events refer to.
    pub blobs: Vec<Blob>,
    /// The new list row; absent: unchanged. Lists do not show a session without one.
    pub summary: Option<Summary>,
    /// The cost of these events.
    pub charges: Vec<Charge>,
    /// Idempotency keys of the commands that caused the events.
    pub keys: Vec<IdempotencyKey>,
}

impl Append {
    /// An empty append.
    #[must_use]
    pub const fn new(session: SessionId, epoch: u64, expected_head: Seq, append_id: AppendId) -> Self {
        Self {
            session,
            epoch,
            expected_head,
            append_id,
            events: Vec::new(),
            blobs: Vec::new(),
            summary: None,
            charges: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// The head after this append.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.expected_head.saturating_add(self.events.len() as Seq)
    }

    /// The approximate size of the append in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let events: usize = self.events.iter().map(|event| event.body.len()).sum();
        let blobs: usize = self.blobs.iter().map(|blob| blob.bytes().len()).sum();
        let keys: usize = self.keys.iter().map(|key| key.answer.len()).sum();
        events + blobs + keys + 256
    }

    /// Why every backend refuses the append: its events are not numbered without a gap.
    #[must_use]
    pub fn malformed(&self) -> Option<Outcome> {
        let mut expected = (self.expected_head.saturating_add(1)..).zip(&self.events);
        let (seq, _) = expected.find(|(seq, event)| *seq != event.seq)?;
        Some(Outcome::Failed(format!(
            "the append has a gap: event {seq} is missing"
        )))
    }
}

/// Content, named by its SHA-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    name: String,
    bytes: Bytes,
}

impl Blob {
    /// Names the content.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        Self {
            name: blob::name_of(&bytes),
            bytes,
        }
    }

    /// The SHA-256 of the content in lower-case hex.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The content.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// An amount added to an account in the same transaction as the events that caused it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Charge {
    /// The account: `team=infra`, `day=2026-11-20`, ….
    pub account: String,
    /// Tokens.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_usd: u64,
}

/// A command's idempotency key with the answer for repeats of the command. Kept for 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The principal that sent the command. Each principal has its own key space.
    pub principal: Principal,
    /// The key.
    pub key: String,
    /// The command's method.
    pub method: String,
    /// A hash of the command's body. The same key with a different body is a conflict.
    pub body_hash: [u8; 32],
    /// The answer as JSON.
    pub answer: String,
}

/// The outcome of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The append is durable.
    Committed {
        /// The log's new head.
        head: Seq,
        /// The fleet-wide cursor after the append's last event.
        cursor: u64,
    },
    /// An earlier append with this `append_id` was committed. Nothing was written now.
    Duplicate {
        /// The head after the earlier commit.
        head: Seq,
    },
    /// Refused: the session has another owner or another head. Nothing was written.
    Fenced {
        /// The current fencing number; 0 if the session does not exist.
        epoch: u64,
        /// The current head.
        head: Seq,
    },
    /// Refused: an idempotency key was used before. Nothing was written.
    KeyTaken {
        /// The answer that was stored with it.
        answer: String,
        /// Whether the earlier command had the same method and body, so that its answer also answers this command.
        same_body: bool,
    },
    /// Refused: the disk or the queue is full. Nothing was written; the caller may retry the same append.
    Full,
    /// The append may or may not be durable. Retry the same append, or read the log.
    Unknown,
    /// Refused. Nothing was written.
    Failed(String),
}

impl From<Result<Self, StoreError>> for Outcome {
    fn from(result: Result<Self, StoreError>) -> Self {
        match result {
            Ok(outcome) => outcome,
            Err(StoreError::Full | StoreError::Busy(_)) => Self::Full,
            Err(StoreError::Unknown) => Self::Unknown,
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}
