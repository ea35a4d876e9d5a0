//! The asynchronous client of the control protocol, used by `agentctl`, the tests and the load tool.
//!
//! One connection carries many concurrent requests and any number of subscriptions. Every wait has a deadline.
//! Reconnecting is up to the caller, because only it knows the `seq` from which to continue (I2).
//!
//! Invariant: I8 (a token leaves only in the header of a connection that only the daemon can read, and is never printed).
//!
//! Flow: [`Client::connect`] or [`Client::connect_remote`] -> [`Client::call`] or a typed method -> answer; [`Client::attach`] -> [`Subscription::next`].

mod connect;
mod connection;
mod error;
mod methods;
mod pending;
mod subscription;
mod transport;
mod web;

pub use agentd_wire::{Ended, Limits, Push, StoredEvent, Welcome};
pub use connect::ConnectOptions;
pub use connection::Client;
pub use error::ClientError;
pub use subscription::Subscription;
pub use web::Remote;
