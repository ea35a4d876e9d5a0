//! Requests that wait for their answers, and the subscriptions of one connection.

use crate::error::ClientError;
use crate::subscription::Inbox;
use agentd_protocol::{Fault, Subscribed};
use agentd_wire::{Push, ServerFrame};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

pub(crate) type Answer = Result<Value, ClientError>;

/// What the reader task and the callers share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes the reader when a full subscription was read, left, or a request waits.
    pub(crate) room: Notify,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    waiting: BTreeMap<u64, Waiter>,
    subscriptions: BTreeMap<u64, Inbox>,
    lost: Option<ClientError>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Answer>,
    /// A subscription starts with the answer: its pushes may follow at once.
    inbox: Option<Inbox>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number and a place for one answer.
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

    /// Nobody waits for this answer any more.
    pub(crate) fn forget(&self, id: u64) {
        self.state().waiting.remove(&id);
    }

    /// The subscription's reader is gone. Says whether it was still open.
    pub(crate) fn unsubscribe(&self, sub: u64) -> bool {
        let known = self.state().subscriptions.remove(&sub).is_some();
        self.room.notify_one();
        known
    }

    /// Whether a request waits: then the reader must go on even with a full subscription.
    pub(crate) fn someone_waits(&self) -> bool {
        !self.state().waiting.is_empty()
    }

    /// Hands a frame to whom it is for. `Some` is the inbox of a push, to which the reader delivers.
    pub(crate) fn route(&self, frame: ServerFrame) -> Result<Option<(Inbox, Push)>, ClientError> {
        match frame {
            ServerFrame::Ok { id, ok } => self.answer(id, Ok(ok)),
            ServerFrame::Fault { id: Some(id), fault } => self.answer(id, Err(ClientError::Refused(fault))),
            ServerFrame::Fault { id: None, fault } => return Err(ClientError::Refused(fault)),
            ServerFrame::Push { sub, push } => {
                let mut state = self.state();
                let inbox = match push {
                    Push::Ended(_) => state.subscriptions.remove(&sub),
                    _ => state.subscriptions.get(&sub).cloned(),
                };
                return Ok(inbox.map(|inbox| (inbox, push)));
            }
            ServerFrame::Welcome(_) | ServerFrame::Unknown => {}
        }
        Ok(None)
    }

    fn answer(&self, id: u64, answer: Answer) {
        let mut state = self.state();
        let Some(waiter) = state.waiting.remove(&id) else {
            return;
        };
        if let (Some(inbox), Ok(ok)) = (waiter.inbox, &answer)
            && let Ok(Subscribed { sub, .. }) = serde_json::from_value(ok.clone())
        {
            state.subscriptions.insert(sub, inbox);
        }
        drop(state);
        // The caller may have given up; then nobody reads the answer.
        let _ = waiter.answer.send(answer);
    }

    /// The connection is gone: everybody who waits is told, all subscriptions end.
    pub(crate) fn lose(&self, why: &ClientError) {
        let mut state = self.state();
        if state.lost.is_none() {
            state.lost = Some(why.clone());
        }
        let waiting = std::mem::take(&mut state.waiting);
        state.subscriptions.clear();
        drop(state);
        for waiter in waiting.into_values() {
            let _ = waiter.answer.send(Err(why.clone()));
        }
    }

    /// What to tell a caller whose answer will not come.
    pub(crate) fn lost_error(&self) -> ClientError {
        let lost = self.state().lost.clone();
        lost.unwrap_or_else(|| ClientError::Lost("the connection is closed".to_owned()))
    }

    /// Why the connection is gone, if it is.
    pub(crate) fn lost(&self) -> Option<Fault> {
        self.state().lost.clone().map(Fault::from)
    }
}
