//! What a request knows of its connection: its seat, its address, and its share of the memory for requests.

use crate::problem::Problem;
use crate::strict::Upgrade;
use agentd_admission::{Account, Reading, Seat, Work};
use agentd_protocol::{Fault, Principal};
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use http_body_util::BodyExt as _;
use std::net::IpAddr;
use std::sync::Arc;

/// Who holds a seat.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// No request on the connection has shown a valid token yet.
    At(IpAddr),
    Known(Principal),
    /// Another node of the fleet.
    Node,
}

/// A connection, among the extensions of each of its requests.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) seat: Arc<Seat<Client>>,
    pub(crate) account: Arc<Account>,
    /// The address of this machine that the client connected to.
    pub(crate) local: Option<IpAddr>,
    pub(crate) upgrade: Arc<Upgrade>,
}

impl Link {
    /// The connection of a request.
    pub(crate) fn of(parts: &Parts) -> Result<Self, Problem> {
        let link = parts.extensions.get::<Self>().cloned();
        link.ok_or_else(|| Fault::internal("no_connection", "the request belongs to no connection").into())
    }

    /// Records whose request it is. The connection is busy until the returned value is dropped.
    pub(crate) fn admit(request: &Request, client: Client) -> Option<Work<Client>> {
        let link = request.extensions().get::<Self>()?;
        link.seat.belongs_to(client);
        Some(link.seat.work())
    }

    /// Until the returned value is dropped, a client in need of a seat can have this one.
    pub(crate) fn reading(&self) -> Reading<Client> {
        self.seat.reading()
    }
}

/// Keeps the connection busy until the last byte of its answer.
pub(crate) fn busy(response: Response, work: Option<Work<Client>>) -> Response {
    response.map(|body| {
        // The body owns its closure, and so the work.
        Body::new(body.map_err(move |error| {
            let _until_the_end = &work;
            error
        }))
    })
}
