//! The open event streams of each token.

use agentd_protocol::{Fault, Principal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts streams by principal.
#[derive(Debug)]
pub(crate) struct Streams {
    most: usize,
    open: Mutex<BTreeMap<Principal, usize>>,
}

impl Streams {
    pub(crate) fn new(most: u32) -> Arc<Self> {
        Arc::new(Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            open: Mutex::default(),
        })
    }

    /// Counts a stream until the returned value is dropped.
    pub(crate) fn open(self: &Arc<Self>, who: &Principal) -> Result<OpenStream, Fault> {
        let mut open = self.lock();
        let count = open.entry(who.clone()).or_default();
        if *count >= self.most {
            let message =
                format!("{who} has {count} open streams, the most that http.streams_per_token allows");
            return Err(
                Fault::busy("too_many_streams", message).hint("close some, or follow the fleet on one")
            );
        }
        *count += 1;
        drop(open);
        Ok(OpenStream {
            streams: Arc::clone(self),
            who: who.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Principal, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open stream.
#[derive(Debug)]
pub(crate) struct OpenStream {
    streams: Arc<Streams>,
    who: Principal,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(count) = open.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_the_streams_of_one_token_are_bounded_and_those_of_another_are_not_affected() {
        let streams = Streams::new(2);
        let [ci, bot] = ["token:ci", "token:bot"].map(|who| Principal(who.to_owned()));
        let first = streams.open(&ci).unwrap();
        let _second = streams.open(&ci).unwrap();
        assert_eq!(streams.open(&ci).unwrap_err().code, "too_many_streams");
        let _other = streams.open(&bot).unwrap();
        drop(first);
        streams.open(&ci).map(drop).unwrap();
    }
}
