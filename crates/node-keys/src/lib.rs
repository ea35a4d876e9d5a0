//! The keys of nodes, and the signed requests between them. The database of a fleet holds public keys only, so that who
//! reads it cannot pose as a node.
//!
//! Invariants: I7, a request that cannot be verified is refused; I8, a private key has no `Debug`, and only its file has it.
//!
//! Flow: [`read_or_create`] -> [`NodeKey`] -> [`Outgoing::sign`] -> the `authorization` header and the body -> [`Verifier::vouch`],
//! before the body is read -> [`Vouched::with`] -> [`Verified`], which nothing else makes and which the handlers of requests take.

mod answer;
mod file;
mod key;
mod nonces;
mod request;
mod verify;

pub use answer::{BadAnswer, Expected, sign_answer};
pub use file::{KeyFileError, read_or_create, replace};
pub use key::{NodeKey, PublicKey};
pub use request::{Identity, Outgoing, Proof, SCHEME, Signed};
pub use verify::{Arrived, Here, Keys, Refusal, Verified, Verifier, Vouched};

#[cfg(test)]
mod tests;
