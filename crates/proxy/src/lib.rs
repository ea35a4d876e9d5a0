//! The proxy from an isolated session to the hosts that the operator listed (`sandbox.network`). It speaks the HTTP proxy
//! protocol: `CONNECT` for anything encrypted, and plain requests, each on its own connection.
//!
//! It judges a name as requested, looks it up once, and judges each of its addresses; then it connects to exactly such an
//! address. An address that is not public must itself be listed.
//!
//! Invariants: I6 (connections, heads and waits are bounded), I7 (anything unlisted, unreadable or ambiguous is refused),
//! I8 (proxy headers are not forwarded).
//!
//! Flow: socket of a session -> [`Proxy`] -> head -> rules -> look-up -> rules -> connection.

mod head;
mod pass;
mod proxy;
mod rules;

pub use proxy::Proxy;
pub use rules::Rules;

#[cfg(test)]
mod tests;
