//! Idempotency keys: the same key and body get the stored answer, a different body is a conflict.

use crate::api::Api;
use crate::dispatch::answer;
use crate::sight::Caller;
use crate::turns::KeyTurn;
use agentd_actor_kit::Read;
use agentd_protocol::Fault;
use agentd_store::{IdempotencyKey, StoredKey};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The longest key.
const MAX_KEY: usize = 200;
/// How long a request waits for another one with its key; a client waits slightly longer than this for its answer.
const KEY_WAIT: Duration = Duration::from_secs(30);

/// The state of a request's key in the store.
pub(crate) enum Keyed {
    /// The request was carried out before, with this answer.
    Before(Value),
    /// It was not; store this key with it. Other requests with the key wait until the turn is dropped.
    New(Option<IdempotencyKey>, Option<KeyTurn>),
}

impl Api {
    /// Looks up a request's key.
    pub(crate) async fn keyed<P: Serialize + Sync>(
        &self,
        who: &Caller,
        method: &str,
        key: Option<&str>,
        params: &P,
    ) -> Result<Keyed, Fault> {
        let Some(key) = key else {
            return Ok(Keyed::New(None, None));
        };
        check_key(key)?;
        let mine = IdempotencyKey {
            principal: who.key_owner(),
            key: key.to_owned(),
            method: method.to_owned(),
            body_hash: hash(params)?,
            answer: String::new(),
        };
        let turn = self.turns.enter(&who.key_owner(), key, KEY_WAIT).await?;
        match self.stored(&mine).await? {
            Some(answer) => Ok(Keyed::Before(answer)),
            None => Ok(Keyed::New(Some(mine), Some(turn))),
        }
    }

    /// The outcome of a keyed command. When another request with the same key was faster, returns that one's answer.
    pub(crate) async fn settle<A: Serialize + Sync>(
        &self,
        key: Option<IdempotencyKey>,
        outcome: Result<A, Fault>,
    ) -> Result<Value, Fault> {
        match (outcome, key) {
            (Ok(done), _) => answer(&done),
            (Err(fault), Some(key)) if fault.code == "retry" => match self.stored(&key).await? {
                Some(answer) => Ok(answer),
                None => Err(fault),
            },
            (Err(fault), _) => Err(fault),
        }
    }

    async fn stored(&self, mine: &IdempotencyKey) -> Result<Option<Value>, Fault> {
        let (principal, key) = (mine.principal.clone(), mine.key.clone());
        let stored = self.read(|done| Read::Key { principal, key, done }).await?;
        let Some(StoredKey {
            method,
            body_hash,
            answer,
        }) = stored
        else {
            return Ok(None);
        };
        if method != mine.method || body_hash != mine.body_hash {
            return Err(key_reused(&mine.key));
        }
        let answer = serde_json::from_str(&answer).map_err(|error| {
            Fault::internal(
                "bad_stored_answer",
                format!("cannot read a stored answer: {error}"),
            )
        })?;
        Ok(Some(answer))
    }
}

/// Refuses what cannot be a key.
///
/// # Errors
/// It is empty, too long, or has control characters.
pub fn check_key(key: &str) -> Result<(), Fault> {
    if key.is_empty() || key.len() > MAX_KEY || key.chars().any(char::is_control) {
        let message = format!("the idempotency key must have 1 to {MAX_KEY} printable characters");
        return Err(Fault::invalid("bad_key", message));
    }
    Ok(())
}

/// The fault of a key that stands for another request.
#[must_use]
pub fn key_reused(key: &str) -> Fault {
    let message = format!("the idempotency key {key:?} was used for another request");
    Fault::conflict("key_reused", message).hint("use a new key for a new request")
}

/// The fault of a request that waited too long for another one with its key.
#[must_use]
pub fn key_busy() -> Fault {
    let message = "another request with this idempotency key is taking too long";
    Fault::timeout("key_busy", message).hint("retry with the same key")
}

/// A key derived from another one, for a step of a command. One that would be too long is replaced by its hash.
pub(crate) fn beside(what: &str, key: &str) -> String {
    let plain = format!("{what} {key}");
    if plain.len() <= MAX_KEY {
        return plain;
    }
    let hash: String = Sha256::digest(key)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{what} sha256:{hash}")
}

fn hash<P: Serialize>(params: &P) -> Result<[u8; 32], Fault> {
    let body = serde_json::to_vec(params)
        .map_err(|error| Fault::internal("bad_params", format!("cannot hash the parameters: {error}")))?;
    Ok(Sha256::digest(&body).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_derived_from_the_longest_one_stays_within_the_limit() {
        let longest = "k".repeat(MAX_KEY);
        let (one, other) = (
            beside("/undo", &longest),
            beside("/undo", &format!("{}x", &longest[1..])),
        );
        assert!(one.len() <= MAX_KEY && one != other, "{one} {other}");
        let fits = "k".repeat(MAX_KEY - "/undo ".len());
        assert_eq!(beside("/undo", &fits), format!("/undo {fits}"));
        assert!(beside("/undo", &format!("{fits}k")).starts_with("/undo sha256:"));
    }
}
