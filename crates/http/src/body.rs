//! Reads the body of a request: after its caller was judged, within a time limit, and within the memory that requests of all
//! connections share.

use crate::link::Link;
use crate::problem::Problem;
use crate::router::App;
use agentd_admission::Hold;
use agentd_protocol::Fault;
use agentd_settings::HttpConfig;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use std::time::Duration;
use tokio::time::timeout;

/// The most bytes of the body of a sign-in, which comes without a token.
const SIGN_IN: usize = 4 << 10;
/// A body without a length reserves this much, and the most that a body may have only when it is longer.
const UNKNOWN: usize = 16 << 10;

/// The limits of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    most: usize,
    time: Duration,
    /// How long it may wait for memory.
    memory: Duration,
}

impl Bounds {
    /// Those of a request with a token.
    pub(crate) fn of_calls(config: &HttpConfig) -> Self {
        Self {
            most: usize::try_from(config.max_body_bytes).unwrap_or(usize::MAX),
            time: Duration::from_millis(config.body_ms),
            memory: Duration::from_millis(config.body_wait_ms),
        }
    }

    /// Those of a sign-in.
    pub(crate) fn of_sign_in(config: &HttpConfig) -> Self {
        Self {
            most: SIGN_IN,
            time: Duration::from_millis(config.sign_in_ms),
            ..Self::of_calls(config)
        }
    }
}

/// A whole body, and the memory that is reserved for it until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Option<Hold>,
}

/// Reads a body within the bounds that `bounds` chooses. As long as it has not ended, another client can have the
/// connection's place.
pub(crate) async fn read(
    app: &App,
    request: Request,
    bounds: fn(&HttpConfig) -> Bounds,
) -> Result<Received, Problem> {
    let bounds = bounds(&app.api.loaded().settings.http);
    let (parts, body) = request.into_parts();
    let link = Link::of(&parts)?;
    let _reading = link.reading();
    let hint = body.size_hint();
    if hint.lower() > u64::try_from(bounds.most).unwrap_or(u64::MAX) {
        return Err(too_large());
    }
    let length = hint.exact().and_then(|length| usize::try_from(length).ok());
    if length == Some(0) {
        return Ok(Received::default());
    }
    let reserved = length.unwrap_or(UNKNOWN).min(bounds.most);
    let memory = reserve(&link, reserved, bounds.memory).await?;
    timeout(bounds.time, whole(&link, body, bounds, (reserved, memory)))
        .await
        .map_err(|_| {
            let fault = Fault::timeout("body_late", "the body did not end in time");
            Problem::with(StatusCode::REQUEST_TIMEOUT, fault)
        })?
}

async fn reserve(link: &Link, bytes: usize, limit: Duration) -> Result<Hold, Problem> {
    let taken = timeout(limit, link.account.take(bytes)).await.ok().flatten();
    taken.ok_or_else(|| {
        let message = "not enough memory for bodies became free in time";
        let fault = Fault::unavailable("bodies_full", message);
        fault.hint("try again later, or raise limits.frames_bytes").into()
    })
}

/// Reads to the end. A body that outgrows what is reserved has no length, and reserves the most that it may have.
async fn whole(
    link: &Link,
    body: Body,
    bounds: Bounds,
    (mut reserved, mut memory): (usize, Hold),
) -> Result<Received, Problem> {
    let mut bytes = BytesMut::new();
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| {
            Problem::from(Fault::invalid(
                "bad_body",
                format!("cannot read the body: {error}"),
            ))
        })?;
        let length = bytes.len() + part.len();
        if length > bounds.most {
            return Err(too_large());
        }
        if length > reserved {
            memory = reserve(link, bounds.most, bounds.memory).await?;
            reserved = bounds.most;
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Received {
        bytes: bytes.freeze(),
        memory: Some(memory),
    })
}

fn too_large() -> Problem {
    let fault = Fault::invalid("body_too_large", "the body is over the limit http.max_body_bytes");
    Problem::with(StatusCode::PAYLOAD_TOO_LARGE, fault)
}
