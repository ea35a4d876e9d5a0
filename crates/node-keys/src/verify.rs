//! Whether a request is what a node of the fleet signed for this one, now and once. Pure, but for what it remembers.

use crate::key::PublicKey;
use crate::nonces::{Nonce, Nonces, Noted};
use crate::request::{Identity, Proof, VERSION, opened, sha256};
use agentd_protocol::{Fault, Timestamp};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The head of a request that arrives.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// The method of HTTP.
    pub method: &'a str,
    /// The path.
    pub path: &'a str,
    /// The `authorization` header; empty: there is none.
    pub authorization: &'a str,
}

/// The node that gets requests.
#[derive(Debug)]
pub struct Here {
    /// Its name and incarnation.
    pub node: Identity,
    /// Its time.
    pub now: Timestamp,
    /// How far the time of a request may be from its own, in milliseconds.
    pub window_ms: u64,
    /// The most requests that it remembers.
    pub most: usize,
}

/// The live nodes with their keys that are in force.
#[derive(Debug, Default)]
pub struct Keys(HashSet<(Identity, PublicKey)>);

impl FromIterator<(Identity, PublicKey)> for Keys {
    fn from_iter<I: IntoIterator<Item = (Identity, PublicKey)>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}

impl Keys {
    /// Whether this is a key of a live node.
    #[must_use]
    pub fn hold(&self, node: &Identity, key: PublicKey) -> bool {
        self.0.contains(&(node.clone(), key))
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is not signed: perhaps a node of an earlier version sent it.
    Unsigned,
    /// The header is not one of this version.
    Malformed,
    /// No live node has the key, or it was removed.
    UnknownKey(String),
    /// The signature is not that of the key.
    Signature,
    /// It was signed for another node, or for another start of this one.
    Target(Identity),
    /// It was signed for another method or path.
    Place,
    /// The clocks of the nodes differ too much, or it was kept. How many milliseconds.
    Time(u64),
    /// It came before.
    Replay,
    /// There is no room to remember it.
    Full,
    /// The body is not the one that was signed.
    Body,
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let denied = |code: &str, message: &str| Self::denied(code, message);
        match refusal {
            Refusal::Unsigned => Self::version(
                "node_unsigned",
                "the request of the other node is not signed: that node runs an older version",
            )
            .hint("upgrade all nodes"),
            Refusal::Malformed => denied("bad_node_request", "the request is not one that a node signs"),
            Refusal::UnknownKey(name) => {
                let message = format!("no live node {name:?} has this key, or the key was removed");
                denied("unknown_node_key", &message)
                    .hint("`agentctl node key admit NAME` admits a node with a new key; see docs/fleet.md")
            }
            Refusal::Signature => denied("bad_node_signature", "the signature is not that of the key"),
            Refusal::Target(to) => {
                let message = format!(
                    "the request is for node {:?}, incarnation {}",
                    to.name, to.incarnation
                );
                denied("wrong_node", &message)
            }
            Refusal::Place => denied(
                "bad_node_request",
                "the request was signed for another method or path",
            ),
            Refusal::Time(ms) => {
                let message =
                    format!("the time of the request differs from the clock of this node by {ms} ms");
                denied("clock_skew", &message).hint(
                    "let the clocks of all nodes follow the same time (NTP), or raise fleet.clock_window",
                )
            }
            Refusal::Replay => denied("replayed", "the request came before"),
            Refusal::Full => Self::busy("too_many_requests", "too many requests of other nodes at once")
                .hint("raise fleet.remembered_requests"),
            Refusal::Body => denied("bad_node_request", "the body is not the one that was signed"),
        }
    }
}

/// The head of a request that a node of the fleet signed for this one.
#[derive(Debug)]
pub struct Vouched {
    from: Identity,
    by: Proof,
    nonce: Nonce,
    body: [u8; 32],
}

impl Vouched {
    /// The request with its body.
    ///
    /// # Errors
    /// The body is not the one that was signed.
    pub fn with(self, body: Bytes) -> Result<Verified, Refusal> {
        if sha256(&body) != self.body {
            return Err(Refusal::Body);
        }
        Ok(Verified {
            from: self.from,
            by: self.by,
            nonce: self.nonce,
            body,
        })
    }
}

/// A request that a node of the fleet signed. Only a [`Verifier`] leads to one.
#[derive(Debug)]
pub struct Verified {
    from: Identity,
    by: Proof,
    nonce: Nonce,
    body: Bytes,
}

impl Verified {
    /// The node that signed it.
    #[must_use]
    pub const fn from(&self) -> &Identity {
        &self.from
    }

    /// The caller.
    #[must_use]
    pub const fn by(&self) -> &Proof {
        &self.by
    }

    pub(crate) const fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// What its body says.
    ///
    /// # Errors
    /// The body is none of this type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body).map_err(|error| Fault::invalid("bad_body", error.to_string()))
    }
}

/// Verifies requests, and remembers those that it accepted.
#[derive(Debug, Default)]
pub struct Verifier(Mutex<Nonces>);

impl Verifier {
    /// Verifies the head of a request. It is accepted once.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn vouch(&self, arrived: &Arrived<'_>, here: &Here, keys: &Keys) -> Result<Vouched, Refusal> {
        let scheme = arrived.authorization.split(' ').next();
        if scheme != Some(crate::request::SCHEME) {
            return Err(Refusal::Unsigned);
        }
        let (envelope, signed, signature) = opened(arrived.authorization).ok_or(Refusal::Malformed)?;
        if envelope.v != VERSION {
            return Err(Refusal::Malformed);
        }
        if !keys.hold(&envelope.from, envelope.key) {
            return Err(Refusal::UnknownKey(envelope.from.name));
        }
        if !envelope.key.verifies(&signed, &signature) {
            return Err(Refusal::Signature);
        }
        if envelope.to != here.node {
            return Err(Refusal::Target(envelope.to));
        }
        if (envelope.method.as_str(), envelope.path.as_str()) != (arrived.method, arrived.path) {
            return Err(Refusal::Place);
        }
        let apart = envelope.at.0.abs_diff(here.now.0);
        if apart > here.window_ms {
            return Err(Refusal::Time(apart));
        }
        let until = envelope.at.0.saturating_add(here.window_ms);
        let mut nonces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match nonces.note(envelope.nonce, until, here.now.0, here.most) {
            Noted::New => {}
            Noted::Again => return Err(Refusal::Replay),
            Noted::Full => return Err(Refusal::Full),
        }
        Ok(Vouched {
            from: envelope.from,
            by: envelope.by,
            nonce: envelope.nonce,
            body: envelope.body,
        })
    }
}
