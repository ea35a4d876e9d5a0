//! An answer that cannot get lost.

use ractor::{ActorRef, Message};
use std::fmt;
use tokio::sync::oneshot;

type Callback<T> = Box<dyn FnOnce(Option<T>) + Send>;

/// The place for one answer. Dropping it unanswered (the actor died, the mailbox was thrown away) tells the asker so:
/// an answer, or the word that there will be none, always arrives. Costs no task.
pub struct Done<T>(Option<Callback<T>>);

impl<T: Send + 'static> Done<T> {
    /// Calls `f` with the answer, or with `None` when there will be none. `f` must not block.
    pub fn new(f: impl FnOnce(Option<T>) + Send + 'static) -> Self {
        Self(Some(Box::new(f)))
    }

    /// Nobody wants the answer.
    #[must_use]
    pub const fn nobody() -> Self {
        Self(None)
    }

    /// An answer for a task that waits on the receiver; a closed receiver is an answer that will not come.
    #[must_use]
    pub fn channel() -> (Self, oneshot::Receiver<T>) {
        let (tx, rx) = oneshot::channel();
        let done = Self::new(move |answer| {
            if let Some(answer) = answer {
                // The asker may have stopped waiting; that is its right.
                let _ = tx.send(answer);
            }
        });
        (done, rx)
    }

    /// An answer that becomes a message to an actor.
    pub fn cast<M: Message>(to: &ActorRef<M>, f: impl FnOnce(Option<T>) -> M + Send + 'static) -> Self {
        let to = to.clone();
        Self::new(move |answer| {
            let _ = to.cast(f(answer));
        })
    }

    /// Gives the answer.
    pub fn answer(mut self, answer: T) {
        if let Some(callback) = self.0.take() {
            callback(Some(answer));
        }
    }
}

impl<T> Drop for Done<T> {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback(None);
        }
    }
}

impl<T> fmt::Debug for Done<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Done")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_an_answer_dropped_on_the_floor_is_reported() {
        let (tx, rx) = std::sync::mpsc::channel();
        drop(Done::<u8>::new(move |answer| {
            let _ = tx.send(answer);
        }));
        assert_eq!(rx.recv(), Ok(None));
    }

    #[tokio::test]
    async fn an_answer_arrives_once() {
        let (done, rx) = Done::channel();
        done.answer(7);
        assert_eq!(rx.await, Ok(7));
        let (done, rx) = Done::<u8>::channel();
        drop(done);
        assert!(rx.await.is_err());
    }
}
