//! The HTTP API: a codec over [`agentd_api::Api`]. No method is implemented here.
//!
//! Invariants: I2 (an event stream has no gap and no duplicate; its ids are the seqs of the log, so a client resumes where
//! it stopped), I6 (each connection, token, body, header and stream has a limit, and a client that does not read is cut),
//! I7 (a request without a valid token is refused, also on loopback).
//!
//! Flow: [`bind`] -> [`Server::serve`] -> host and token (`guard`) -> route (`routes`) -> [`agentd_api::Api::call`] -> JSON
//! or a problem (`problem`); streams of events: [`agentd_api::Api::attach`] -> `sse`.

mod bind;
mod body;
mod call;
mod conditional;
mod error;
mod events;
mod frames;
mod framing;
mod guard;
mod hosts;
mod link;
mod openapi;
mod pages;
mod params;
mod peer;
mod problem;
mod query;
mod replay;
mod router;
mod routes;
mod serve;
mod several;
mod shown;
mod sign_in;
mod stall;
mod streams;
mod strict;
mod tls;
mod ui;
mod wait;
mod wire;

pub use bind::{Bound, bind};
pub use error::HttpError;
pub use openapi::openapi;
pub use routes::{ROUTES, Route, STREAMS, Verb};
pub use serve::Server;
pub use wire::Wire;
