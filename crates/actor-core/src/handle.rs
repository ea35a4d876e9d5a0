//! Handles that survive their actor's restart.

use crate::done::Done;
use ractor::{ActorRef, Message};
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;

/// A call that got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The actor is down, or went down with the message.
    #[error("{0} is not running")]
    Gone(&'static str),
    /// No answer in time.
    #[error("{0} did not answer in time")]
    Timeout(&'static str),
}

/// The root's end: points all handles of one actor at its current incarnation.
pub struct Pointer<M>(watch::Sender<Option<ActorRef<M>>>, &'static str);

/// The end for everyone else. A message to an actor that is down is dropped, which its [`Done`] reports.
pub struct Handle<M>(watch::Receiver<Option<ActorRef<M>>>, &'static str);

impl<M: Message> Pointer<M> {
    /// A pointer to nothing; `name` appears in errors.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self(watch::channel(None).0, name)
    }

    /// Points the handles to an incarnation.
    pub fn set(&self, actor: ActorRef<M>) {
        self.0.send_replace(Some(actor));
    }

    /// Records that the actor is down.
    pub fn clear(&self) {
        self.0.send_replace(None);
    }

    /// A new handle.
    #[must_use]
    pub fn handle(&self) -> Handle<M> {
        Handle(self.0.subscribe(), self.1)
    }
}

impl<M: Message> Handle<M> {
    /// A handle that always points to `actor`; for tests and for parts that never restart.
    #[must_use]
    pub fn fixed(name: &'static str, actor: ActorRef<M>) -> Self {
        let (tx, rx) = watch::channel(Some(actor));
        drop(tx);
        Self(rx, name)
    }

    /// Sends a message; a message to an actor that is down is dropped.
    pub fn cast(&self, message: M) {
        let actor = self.0.borrow().clone();
        if let Some(actor) = actor {
            let _ = actor.cast(message);
        }
    }

    /// Sends a message and waits at most `within` for the answer.
    ///
    /// # Errors
    /// [`CallError`] if the actor is down or too slow. It may still handle the message later.
    pub async fn call<T: Send + 'static>(
        &self,
        within: Duration,
        message: impl FnOnce(Done<T>) -> M,
    ) -> Result<T, CallError> {
        let (done, answer) = Done::channel();
        self.cast(message(done));
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(CallError::Gone(self.1)),
            Err(_) => Err(CallError::Timeout(self.1)),
        }
    }

    /// The current incarnation.
    #[must_use]
    pub fn actor(&self) -> Option<ActorRef<M>> {
        self.0.borrow().clone()
    }
}

impl<M> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1)
    }
}

impl<M> fmt::Debug for Handle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.1)
    }
}

impl<M> fmt::Debug for Pointer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pointer({})", self.1)
    }
}
