//! What is written: one append is one transaction.

use crate::{EncodedEvent, blob};
use agentd_protocol::{AppendId, Principal, Seq, SessionId, Summary};
use bytes::Bytes;

/// Everything that one decision of a session's owner makes durable, or nothing of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// Whose log. An append with `expected_head` 0 and `epoch` 1 creates it.
    pub session: SessionId,
    /// The fencing number of the owner; refused unless it is the present one.
    pub epoch: u64,
    /// The last seq that the owner knows; refused unless it is the present one.
    pub expected_head: Seq,
    /// Makes a retry after a lost answer harmless. Never reused for other content.
    pub append_id: AppendId,
    /// The events, numbered from `expected_head + 1` without gaps.
    pub events: Vec<EncodedEvent>,
    /// Large content that the events name.
    pub blobs: Vec<Blob>,
    /// The list row after these events; absent: unchanged. A session without any is hidden from lists.
    pub summary: Option<Summary>,
    /// What these events cost.
    pub charges: Vec<Charge>,
    /// Idempotency keys of the commands that caused them.
    pub keys: Vec<IdempotencyKey>,
}

impl Append {
    /// An append of nothing yet.
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

    /// The bytes that it carries, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let events: usize = self.events.iter().map(|event| event.body.len()).sum();
        let blobs: usize = self.blobs.iter().map(|blob| blob.bytes().len()).sum();
        let keys: usize = self.keys.iter().map(|key| key.answer.len()).sum();
        events + blobs + keys + 256
    }

    /// The first seq that is not where it must be, if any.
    pub(crate) fn gap(&self) -> Option<Seq> {
        let expected = self.expected_head.saturating_add(1)..;
        expected
            .zip(&self.events)
            .find(|(seq, event)| *seq != event.seq)
            .map(|(seq, _)| seq)
    }
}

/// Content named by its SHA-256.
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

/// An amount that is added to an account in the same transaction as the events that caused it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Charge {
    /// Whose: `team=infra`, `day=2026-11-20`, ….
    pub account: String,
    /// Tokens.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_usd: u64,
}

/// A command's idempotency key with the answer that a repeated command gets. Kept for 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Who gave the command; keys of different principals do not meet.
    pub principal: Principal,
    /// The key.
    pub key: String,
    /// The command's method.
    pub method: String,
    /// A hash of the command's body; the same key with another body is a conflict.
    pub body_hash: [u8; 32],
    /// The answer as JSON.
    pub answer: String,
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable.
    Committed {
        /// The log's head now.
        head: Seq,
        /// The fleet-wide cursor after its last event.
        cursor: u64,
    },
    /// This `append_id` was committed before; nothing was written now.
    Duplicate {
        /// The head after the earlier commit.
        head: Seq,
    },
    /// Refused: somebody else owns the session, or the head is another. Nothing was written.
    Fenced {
        /// The present fencing number; 0 when there is no such session.
        epoch: u64,
        /// The present head.
        head: Seq,
    },
    /// Refused: an idempotency key was used before. Nothing was written.
    KeyTaken {
        /// The answer that was stored with it.
        answer: String,
        /// The earlier command had the same method and body, so its answer is this command's answer.
        same_body: bool,
    },
    /// Refused: no space on the disk or in the queue. Nothing was written; the same append may be tried again.
    Full,
    /// It may or may not be durable: repeat the same append, or read back.
    Unknown,
    /// Refused. Nothing was written.
    Failed(String),
}
