//! Pending requests and the subscriptions of one connection.

use crate::error::ClientError;
use crate::subscription::Inbox;
use agentd_protocol::{Fault, Subscribed};
use agentd_wire::{Push, ServerFrame};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

pub(crate) type Answer = Result<Value, ClientError>;

/// The state shared by the reader task and the callers.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes the reader when a full subscription was read or dropped, or when a request becomes pending.
    pub(crate) room: Notify,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    waiting: BTreeMap<u64, Waiter>,
    subscriptions: BTreeMap<u64, Open>,
    /// Abandoned requests for subscriptions: when the answer arrives, the new subscription must be ended at once.
    abandoned: BTreeSet<u64>,
    lost: Option<ClientError>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Answer>,
    /// For a request that starts a subscription, whose pushes may follow the answer immediately.
    inbox: Option<Inbox>,
}

/// A subscription that the daemon has started.
#[derive(Debug)]
struct Open {
    /// The id of the request that started it.
    request: u64,
    inbox: Inbox,
}

/// The reader's next action for a frame.
#[derive(Debug)]
pub(crate) enum Routed {
    /// Nothing.
    Done,
    /// Deliver the push to the inbox.
    Push(Inbox, Push),
    /// End this subscription: its caller stopped waiting.
    Unwanted(u64),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request; returns its id and the receiver of its answer.
    pub(crate) fn register(
        &self,
        inbox: Option<Inbox>,
    ) -> Result<(u64, oneshot::Receiver<Answer>), ClientError> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        state.next_id += 1;
        let id = state.next_id;
        state.waiting.insert(id, Waiter { answer, inbox });
        drop(state);
        self.room.notify_one();
        Ok((id, receiver))
    }

    /// The caller has received its answer.
    pub(crate) fn taken(&self, id: u64) {
        self.state().waiting.remove(&id);
    }

    /// The caller stopped waiting. Returns the subscription that the request has already started.
    pub(crate) fn abandon(&self, id: u64) -> Option<u64> {
        let mut state = self.state();
        if let Some(waiter) = state.waiting.remove(&id) {
            if waiter.inbox.is_some() && state.lost.is_none() {
                state.abandoned.insert(id);
            }
            return None;
        }
        let begun = state.subscriptions.iter().find(|(_, open)| open.request == id);
        begun.map(|(sub, _)| *sub)
    }

    /// The subscription was dropped. Returns whether it was still open.
    pub(crate) fn unsubscribe(&self, sub: u64) -> bool {
        let known = self.state().subscriptions.remove(&sub).is_some();
        self.room.notify_one();
        known
    }

    /// Whether a request is pending, in which case the reader must continue even with a full subscription.
    pub(crate) fn someone_waits(&self) -> bool {
        !self.state().waiting.is_empty()
    }

    /// Routes a frame to its recipient, or returns what the reader must do.
    pub(crate) fn route(&self, frame: ServerFrame) -> Result<Routed, ClientError> {
        match frame {
            ServerFrame::Ok { id, ok } => Ok(self.answer(id, Ok(ok))),
            ServerFrame::Fault { id: Some(id), fault } => {
                Ok(self.answer(id, Err(ClientError::Refused(fault))))
            }
            ServerFrame::Fault { id: None, fault } => Err(ClientError::Refused(fault)),
            ServerFrame::Push { sub, push } => {
                let mut state = self.state();
                let inbox = match push {
                    Push::Ended(_) => state.subscriptions.remove(&sub).map(|open| open.inbox),
                    _ => state.subscriptions.get(&sub).map(|open| open.inbox.clone()),
                };
                Ok(inbox.map_or(Routed::Done, |inbox| Routed::Push(inbox, push)))
            }
            ServerFrame::Welcome(_) | ServerFrame::Unknown => Ok(Routed::Done),
        }
    }

    fn answer(&self, id: u64, answer: Answer) -> Routed {
        let begun = |answer: &Answer| {
            let ok = answer.as_ref().ok()?.clone();
            Some(serde_json::from_value::<Subscribed>(ok).ok()?.sub)
        };
        let mut state = self.state();
        let Some(waiter) = state.waiting.remove(&id) else {
            let left = state.abandoned.remove(&id).then(|| begun(&answer)).flatten();
            return left.map_or(Routed::Done, Routed::Unwanted);
        };
        if let Some(inbox) = waiter.inbox
            && let Some(sub) = begun(&answer)
        {
            state.subscriptions.insert(sub, Open { request: id, inbox });
        }
        drop(state);
        // If the caller has stopped waiting meanwhile, dropping its request ends the new subscription.
        let _ = waiter.answer.send(answer);
        Routed::Done
    }

    /// The connection was lost: fails all pending requests and ends all subscriptions.
    pub(crate) fn lose(&self, why: &ClientError) {
        let mut state = self.state();
        if state.lost.is_none() {
            state.lost = Some(why.clone());
        }
        let waiting = std::mem::take(&mut state.waiting);
        state.subscriptions.clear();
        state.abandoned.clear();
        drop(state);
        for waiter in waiting.into_values() {
            let _ = waiter.answer.send(Err(why.clone()));
        }
    }

    /// The error for a caller whose answer will not arrive.
    pub(crate) fn lost_error(&self) -> ClientError {
        let lost = self.state().lost.clone();
        lost.unwrap_or_else(|| ClientError::Lost("the connection is closed".to_owned()))
    }

    /// Why the connection was lost; `None` while it is open.
    pub(crate) fn lost(&self) -> Option<Fault> {
        self.state().lost.clone().map(Fault::from)
    }
}
