//! The answer to a request, signed by the node that it was sent to and bound to that request: without TLS, a stranger at the
//! address of a node could answer otherwise.

use crate::key::{NodeKey, PublicKey};
use crate::nonces::Nonce;
use crate::request::{Signed, sha256};
use crate::verify::Verified;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

/// The beginning of the signed bytes.
const DOMAIN: &[u8] = b"agentd node answer 1\0";

/// The answer is not that of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadAnswer;

fn message(nonce: &Nonce, body: &[u8]) -> Vec<u8> {
    [DOMAIN, nonce, &sha256(body)].concat()
}

/// The text that proves this answer to a request.
#[must_use]
pub fn sign_answer(key: &NodeKey, request: &Verified, body: &[u8]) -> String {
    let signature = key.sign(&message(request.nonce(), body));
    format!("{}.{}", key.public(), BASE64.encode(signature))
}

/// The answer that a sender waits for.
#[derive(Debug)]
pub struct Expected(Nonce);

impl From<&Signed> for Expected {
    fn from(request: &Signed) -> Self {
        Self(request.nonce)
    }
}

impl Expected {
    /// The key with which this answer was signed.
    ///
    /// # Errors
    /// It is not signed, or is the answer to another request, or was changed.
    pub fn signer(&self, proof: &str, body: &[u8]) -> Result<PublicKey, BadAnswer> {
        let (key, signature) = proof.split_once('.').ok_or(BadAnswer)?;
        let key = PublicKey::parse(key).ok_or(BadAnswer)?;
        let signature = BASE64.decode(signature).map_err(|_| BadAnswer)?;
        match key.verifies(&message(&self.0, body), &signature) {
            true => Ok(key),
            false => Err(BadAnswer),
        }
    }
}
