//! The way from an isolated session to the hosts that the operator listed (`sandbox.network`). It speaks HTTP as proxies do:
//! `CONNECT` for anything encrypted, and plain requests, each on a connection of its own.
//!
//! A name is judged as it was asked for, looked up once, and every address that it stands for is judged; the connection goes
//! to exactly such an address. What is not public is reached only where its address itself is listed.
//!
//! Invariants: I6 (connections, heads and waits are bounded), I7 (what is not listed, cannot be read, or has two meanings
//! is refused), I8 (headers for proxies are not passed on).
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
