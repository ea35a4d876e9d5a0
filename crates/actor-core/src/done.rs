//! An answer that cannot get lost.

use ractor::{ActorRef, Message};
use std::fmt;
use tokio::sync::oneshot;

type Callback<T> = Box<dyn FnOnce(Option<T>) + Send>;

/// The slot for one answer. Dropping it unanswered (the actor died, the mailbox was discarded) notifies the caller: it
/// always gets either an answer or the news that none will come. Costs no task.
pub struct Done<T>(Way<T>);

/// The route of an answer.
enum Way<T> {
    Nobody,
    Channel(oneshot::Sender<T>),
    Call(Callback<T>),
}

impl<T: Send + 'static> Done<T> {
    /// Calls `f` with the answer, or with `None` if none will come. `f` must not block.
    pub fn new(f: impl FnOnce(Option<T>) + Send + 'static) -> Self {
        Self(Way::Call(Box::new(f)))
    }

    /// A slot whose answer is not needed.
    #[must_use]
    pub const fn nobody() -> Self {
        Self(Way::Nobody)
    }

    /// An answer for a task that waits on the receiver; a closed receiver means that no answer will come.
    #[must_use]
    pub fn channel() -> (Self, oneshot::Receiver<T>) {
        let (tx, rx) = oneshot::channel();
        (Self(Way::Channel(tx)), rx)
    }

    /// An answer that is sent to an actor as a message.
    pub fn cast<M: Message>(to: &ActorRef<M>, f: impl FnOnce(Option<T>) -> M + Send + 'static) -> Self {
        let to = to.clone();
        Self::new(move |answer| {
            let _ = to.cast(f(answer));
        })
    }

    /// Gives the answer.
    pub fn answer(mut self, answer: T) {
        match self.take() {
            Way::Nobody => {}
            // The caller may have stopped waiting, which is fine.
            Way::Channel(tx) => drop(tx.send(answer)),
            Way::Call(callback) => callback(Some(answer)),
        }
    }
}

impl<T> Done<T> {
    /// Whether the caller has stopped waiting, as far as this can be known.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(&self.0, Way::Channel(tx) if tx.is_closed())
    }

    fn take(&mut self) -> Way<T> {
        std::mem::replace(&mut self.0, Way::Nobody)
    }
}

impl<T> Drop for Done<T> {
    fn drop(&mut self) {
        if let Way::Call(callback) = self.take() {
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

    #[test]
    fn an_asker_that_stopped_waiting_is_seen() {
        let (done, rx) = Done::<u8>::channel();
        assert!(!done.is_gone());
        drop(rx);
        assert!(done.is_gone());
        done.answer(7);
    }
}
