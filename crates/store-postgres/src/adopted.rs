//! The claims of sessions that this node took over and has not loaded yet.
//!
//! Invariant I9: each claim is given once. A node that takes the session away raises its epoch, which fences the claim.

use agentd_protocol::SessionId;
use agentd_store::Claim;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The claims.
#[derive(Debug, Default)]
pub(crate) struct Adopted(Mutex<HashMap<SessionId, Claim>>);

impl Adopted {
    pub(crate) fn add(&self, claims: impl IntoIterator<Item = (SessionId, Claim)>) {
        self.all().extend(claims);
    }

    /// The claim of a session, for the one who loads it.
    pub(crate) fn take(&self, session: SessionId) -> Option<Claim> {
        self.all().remove(&session)
    }

    /// The node gives up sessions, or is a new incarnation.
    pub(crate) fn clear(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
