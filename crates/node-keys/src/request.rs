//! A request as its sender signs it. The signature is over the very bytes that are sent, so that there is one reading of them.

use crate::key::{NodeKey, PublicKey, hex, unhex};
use crate::nonces::Nonce;
use agentd_protocol::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The scheme of the `authorization` header.
pub const SCHEME: &str = "Agentd-Node";
/// The beginning of the signed bytes, so that a signature of anything else is not one of a request.
pub(crate) const DOMAIN: &[u8] = b"agentd node request 1\0";
/// The version of the envelope.
pub(crate) const VERSION: u32 = 1;
/// The longest header.
const LONGEST: usize = 8 << 10;

/// A node, as of one of its starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its incarnation in the database.
    pub incarnation: u64,
}

/// The caller of a request, with the proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Proof {
    /// For a local user of the node that signs. Another node gives such a user limited rights.
    User(String),
    /// For a token: the receiver looks up what it may do.
    Token {
        /// Its name.
        name: String,
        /// The SHA-256 of its text.
        #[serde(with = "digest")]
        hash: [u8; 32],
    },
    /// For the node itself.
    Node,
}

/// The signed content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Envelope {
    pub(crate) v: u32,
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(with = "digest")]
    pub(crate) body: [u8; 32],
    pub(crate) to: Identity,
    pub(crate) from: Identity,
    pub(crate) key: PublicKey,
    pub(crate) at: Timestamp,
    #[serde(with = "digest")]
    pub(crate) nonce: Nonce,
    pub(crate) by: Proof,
}

/// A request that is to be signed.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The method of HTTP.
    pub method: &'a str,
    /// The path.
    pub path: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// The node that gets it.
    pub to: Identity,
    /// The node that sends it.
    pub from: Identity,
    /// When it is sent.
    pub at: Timestamp,
    /// The caller.
    pub by: Proof,
}

/// A signed request: the value of its `authorization` header, and what its answer is bound to.
#[derive(Debug)]
pub struct Signed {
    /// The value of the header.
    pub authorization: String,
    pub(crate) nonce: Nonce,
}

impl Outgoing<'_> {
    /// Signs it. `None`: the system has no random numbers.
    #[must_use]
    pub fn sign(self, key: &NodeKey) -> Option<Signed> {
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).ok()?;
        let envelope = Envelope {
            v: VERSION,
            method: self.method.to_owned(),
            path: self.path.to_owned(),
            body: sha256(self.body),
            to: self.to,
            from: self.from,
            key: key.public(),
            at: self.at,
            nonce,
            by: self.by,
        };
        let authorization = sealed(&envelope, key)?;
        Some(Signed { authorization, nonce })
    }
}

pub(crate) fn sealed(envelope: &Envelope, key: &NodeKey) -> Option<String> {
    let bytes = serde_json::to_vec(envelope).ok()?;
    let signature = key.sign(&[DOMAIN, &bytes].concat());
    let (bytes, signature) = (BASE64.encode(bytes), BASE64.encode(signature));
    Some(format!("{SCHEME} {bytes}.{signature}"))
}

/// The parts of a header: the envelope, the bytes that are signed, and the signature.
pub(crate) fn opened(authorization: &str) -> Option<(Envelope, Vec<u8>, Vec<u8>)> {
    if authorization.len() > LONGEST {
        return None;
    }
    let (scheme, rest) = authorization.split_once(' ')?;
    let (bytes, signature) = rest.split_once('.').filter(|_| scheme == SCHEME)?;
    let (bytes, signature) = (BASE64.decode(bytes).ok()?, BASE64.decode(signature).ok()?);
    let envelope = serde_json::from_slice(&bytes).ok()?;
    Some((envelope, [DOMAIN, &bytes].concat(), signature))
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Bytes as hexadecimal digits.
mod digest {
    use super::{hex, unhex};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        from: D,
    ) -> Result<[u8; N], D::Error> {
        let text = String::deserialize(from)?;
        unhex(&text).ok_or_else(|| D::Error::custom("expected hexadecimal digits"))
    }
}
