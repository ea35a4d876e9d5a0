//! Tool servers of the Model Context Protocol (MCP), which run outside sessions: starts, calls and ends them.
//!
//! Data from a server is untrusted: names get a prefix, texts are cleaned and cut, schemas have a size limit, and its
//! claims about its tools (annotations) have no effect.
//!
//! Invariants: I3 (a call comes to exactly one [`ToolOutcome`](agentd_protocol::ToolOutcome), even if the server dies,
//! hangs or sends garbage), I5 (a server runs under its own warden, which ends with the pool or the daemon), I6 (each
//! wait has a deadline; each list, text and message has a limit; restarts of a failing server are delayed longer each
//! time), I7 (a tool has the effect that the operator gave it, or else the strictest: exec), I8 (a server sees an
//! allow-list of the environment and its own variables, whose values appear in no error and no `Debug`). A server runs
//! in the same sandbox as the node's commands unless the operator exempts it by name.
//!
//! Flow: [`ServerSpec`] -> [`Pool::offers`] -> [`Offer`] (a tool for the model) -> [`Pool::call`] -> [`CallAnswer`]. Sessions
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
mod reading;
mod remote;
mod server;
mod spec;
mod warden;

#[cfg(test)]
mod tests;

pub use answer::{CallAnswer, Media};
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
