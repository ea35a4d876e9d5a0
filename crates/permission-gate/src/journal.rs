//! The fleet-wide stream of rules in the store.

use crate::error::GateError;
use agentd_actor_kit::{Clock, Handle, Read, StoreMsg};
use agentd_protocol::{EVENT_VERSION, Event, EventBody, Grant, Principal, Reach, Seq, SessionId};
use agentd_store::{Append, EncodedEvent, Outcome, Range, StoreError};
use std::time::Duration;

/// The time limit for an answer of the store.
const ANSWER: Duration = Duration::from_secs(30);
/// The number of times an append is tried when its outcome is unknown, the disk is full, or another node was faster.
const TRIES: u32 = 3;

/// A change of the rules in force: the rule, and whether it is in force.
pub(crate) type Change = (Grant, bool);

/// The gate's position in the stream.
#[derive(Debug)]
pub(crate) struct Journal {
    store: Handle<StoreMsg>,
    clock: Clock,
    head: Seq,
    /// The fencing number; 0 until we own the stream.
    epoch: u64,
}

impl Journal {
    /// Starts reading at the beginning of the stream.
    pub(crate) const fn new(store: Handle<StoreMsg>, clock: Clock) -> Self {
        Self {
            store,
            clock,
            head: 0,
            epoch: 0,
        }
    }

    /// Reads the changes since the last read. An unknown event is an error: it may forbid something.
    pub(crate) async fn read(&mut self) -> Result<Vec<Change>, GateError> {
        let mut changes = Vec::new();
        loop {
            let range = Range::after(self.head);
            let load = |done| {
                StoreMsg::Read(Read::Load {
                    session: SessionId::NIL,
                    range,
                    done,
                })
            };
            let page = match self.store.call(ANSWER, load).await? {
                Ok(page) => page,
                Err(StoreError::NotFound(_)) => return Ok(changes),
                Err(error) => return Err(GateError::Store(error.to_string())),
            };
            for (seq, body) in page.events {
                let event =
                    EncodedEvent::decode(&body).map_err(|error| GateError::Store(error.to_string()))?;
                changes.push(change(event.body, seq)?);
                self.head = seq;
            }
            if !page.more {
                return Ok(changes);
            }
        }
    }

    /// Makes a change of the rules durable. Also returns changes that others wrote before it.
    pub(crate) async fn write(&mut self, body: &EventBody, by: &Principal) -> Result<Vec<Change>, GateError> {
        let mut changes = Vec::new();
        let mut append = None;
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(200) * attempt).await;
            }
            if append.is_none() {
                changes.extend(self.own().await?);
                append = Some(self.append(body.clone(), by.clone())?);
            }
            let Some(message) = append.clone() else { break };
            let head = message.head();
            match self
                .store
                .call(ANSWER, |done| StoreMsg::Append {
                    append: message,
                    done,
                })
                .await?
            {
                Outcome::Committed { .. } | Outcome::Duplicate { .. } => {
                    self.head = head;
                    self.epoch = self.epoch.max(1);
                    changes.push(change(body.clone(), head)?);
                    return Ok(changes);
                }
                Outcome::Fenced { .. } => {
                    self.epoch = 0;
                    append = None;
                }
                Outcome::Full | Outcome::Unknown => {}
                Outcome::KeyTaken { .. } => {
                    return Err(GateError::Store("an idempotency key was used twice".to_owned()));
                }
                Outcome::Failed(why) => return Err(GateError::Store(why)),
            }
        }
        // The outcome may be unknown: read the stream again before the next rule.
        self.epoch = 0;
        Err(GateError::Store(
            "the store did not accept the change of the rules".to_owned(),
        ))
    }

    /// Takes ownership of the stream, and reads what is new.
    async fn own(&mut self) -> Result<Vec<Change>, GateError> {
        if self.epoch > 0 {
            return Ok(Vec::new());
        }
        let claim = |done| StoreMsg::Claim {
            session: SessionId::NIL,
            without_files: false,
            done,
        };
        match self.store.call(ANSWER, claim).await? {
            Ok(claim) => {
                self.epoch = claim.epoch;
                self.read().await
            }
            // The first append creates the stream.
            Err(StoreError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(GateError::Store(error.to_string())),
        }
    }

    fn append(&self, body: EventBody, by: Principal) -> Result<Append, GateError> {
        let mut stamp = self.clock.stamp();
        let event = Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq: self.head + 1,
            at: stamp.at,
            by,
            turn: None,
            body,
        };
        let encoded = EncodedEvent::encode(&event).map_err(|error| GateError::Store(error.to_string()))?;
        let mut append = Append::new(SessionId::NIL, self.epoch.max(1), self.head, stamp.append());
        append.events.push(encoded);
        Ok(append)
    }
}

fn change(body: EventBody, seq: Seq) -> Result<Change, GateError> {
    match body {
        EventBody::RuleAdded(added) => Ok((grant(added.rule, added.reach), true)),
        EventBody::RuleRemoved(removed) => Ok((grant(removed.rule, removed.reach), false)),
        other => Err(GateError::Store(format!(
            "event {seq} is {:?}, not a rule",
            other.kind()
        ))),
    }
}

const fn grant(rule: String, reach: Option<Reach>) -> Grant {
    Grant { rule, reach }
}
