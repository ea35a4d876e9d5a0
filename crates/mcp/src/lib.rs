//! Tool servers of the Model Context Protocol (MCP): started, kept, asked and ended outside sessions.
//!
//! What a server says is somebody else's: names are put into a name space, texts are cleaned and cut, schemas have a size,
//! and what it claims about its tools (annotations) changes nothing.
//!
//! Invariants: I3 (a call comes to exactly one [`ToolOutcome`](agentd_protocol::ToolOutcome), also when the server dies,
//! hangs or talks nonsense), I5 (a server runs under a warden of its own, which ends with the pool or the daemon), I6 (each
//! wait has a deadline, each list, text and message a bound; a server that fails is left alone for longer each time), I7
//! (a tool has the effect that the operator gave it, else the strictest: exec), I8 (a server sees an allow-list of the
//! environment and its own variables, whose values are in no error and no `Debug`). A server is behind the same walls as
//! the node's commands unless the operator says otherwise by name.
//!
//! Flow: [`ServerSpec`] -> [`Pool::offers`] -> [`Offer`] (a tool for the model) -> [`Pool::call`] -> [`Answer`]. Sessions
//! reach the pool through the port [`agentd_tools::Remote`].

mod answer;
mod call;
mod cleaning;
mod connection;
mod error;
mod health;
mod hearing;
mod launch;
mod name;
mod offer;
mod pacing;
mod pool;
mod reach;
mod remote;
mod server;
mod spec;
mod warden;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Media};
pub use call::{Call, Heard, OnProgress};
pub use error::McpError;
pub use launch::{Child, Launch, Process};
pub use name::tool_name;
pub use offer::{LeftOut, Offer, Offers};
pub use pool::{Bounds, Listing, Pool};
pub use reach::http_client;
pub use server::{ServerState, ServerStatus};
pub use spec::{Command, Limits, Scope, ServerSpec, Transport, Walls};
pub use warden::WardenLaunch;
