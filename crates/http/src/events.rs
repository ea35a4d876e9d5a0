//! Events of a session and of the fleet: pages of JSON, or a stream of server-sent events.

use crate::call::{caller, path_params};
use crate::frames::{Ids, ended};
use crate::problem::Problem;
use crate::query::{self, Query};
use crate::router::App;
use crate::serve::stopping;
use crate::streams::OpenStream;
use agentd_api::{Push, Pushed};
use agentd_protocol::{Exported, Fault, Principal};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use bytes::BytesMut;
use futures_util::stream::unfold;
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Frames on the way to one client. Beyond that the subscription waits, and so lags.
pub(crate) const QUEUE: usize = 64;
/// Frames that are ready at the same time are sent together, up to about this many bytes.
const TOGETHER: usize = 32 << 10;
/// Most times, that many bytes are enough.
const USUAL: usize = 2 << 10;
/// A stream without frames sends a comment this often, so that proxies keep it and a dead peer is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The most events of a page.
const PAGE: u64 = 1_000;

pub(crate) const OF_SESSION: [(&str, Query); 5] = [
    ("after", Query::Number),
    ("tail", Query::Number),
    ("limit", Query::Number),
    ("deltas", Query::Flag),
    ("decides", Query::Flag),
];
pub(crate) const OF_FLEET: [(&str, Query); 4] = [
    ("after", Query::Number),
    ("limit", Query::Number),
    ("labels", Query::Selector),
    ("kinds", Query::Words),
];

/// `GET /v1/sessions/{session}/events`.
pub(crate) async fn session(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let (who, path) = (caller(&parts)?, path_params(&mut parts).await?);
    let mut params = asked(&parts, &OF_SESSION)?;
    let session = path.iter().next().map(|(_, session)| session).unwrap_or_default();
    params.insert("session".to_owned(), Value::from(session));
    let (after, limit) = (params.remove("after"), params.remove("limit"));
    if !streams(&parts.headers) {
        let after = after.unwrap_or(Value::from(0));
        let export = json!({"session": session, "after_seq": after, "limit": page(limit.as_ref())});
        return page_of_session(&app, &who, export).await;
    }
    let tail = params.get("tail").and_then(Value::as_u64);
    let from = after.as_ref().and_then(Value::as_u64).unwrap_or(0);
    if let Some(after) = after {
        params.insert("after_seq".to_owned(), after);
    }
    let open = app.streams.open(&who)?;
    let (subscribed, attachment) = app.api.attach(&who, Value::Object(params)).await?;
    let from = tail.map_or(from, |tail| subscribed.head.saturating_sub(tail));
    let (pushes, frames) = mpsc::channel(QUEUE);
    tokio::spawn(attachment.run(pushes));
    Ok(stream(&app, open, frames, Ids::Session(from)))
}

/// `GET /v1/events`.
pub(crate) async fn fleet(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let who = caller(&parts)?;
    let mut params = asked(&parts, &OF_FLEET)?;
    let limit = params.remove("limit");
    let open = app.streams.open(&who)?;
    let live = streams(&parts.headers);
    if !live {
        params.insert("once".to_owned(), Value::Bool(true));
        params.entry("after").or_insert(Value::from(0));
    }
    let (_, watching) = app.api.watch(&who, Value::Object(params)).await?;
    let (pushes, frames) = mpsc::channel(QUEUE);
    tokio::spawn(watching.run(pushes));
    if live {
        Ok(stream(&app, open, frames, Ids::Fleet))
    } else {
        page_of_fleet(frames, page(limit.as_ref())).await
    }
}

/// The parameters of the query; `Last-Event-ID` is a newer `after`.
fn asked(parts: &Parts, known: &[(&str, Query)]) -> Result<Map<String, Value>, Fault> {
    let mut params = query::read(parts.uri.query().unwrap_or_default(), known)?;
    if let Some(last) = parts.headers.get("last-event-id") {
        let last = last.to_str().ok().and_then(|last| last.parse::<u64>().ok());
        let last = last.ok_or_else(|| {
            Fault::invalid(
                "bad_params",
                "params: Last-Event-ID: expected the id of an event, a whole number",
            )
        })?;
        params.insert("after".to_owned(), Value::from(last));
        params.remove("tail");
    }
    Ok(params)
}

/// Whether the client wants server-sent events.
pub(crate) fn streams(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter();
    let mut accepts = accepts.filter_map(|value| value.to_str().ok());
    accepts.any(|value| value.contains("text/event-stream"))
}

fn page(limit: Option<&Value>) -> u64 {
    match limit.and_then(Value::as_u64) {
        Some(0) | None => PAGE,
        Some(limit) => limit.min(PAGE),
    }
}

/// A page of a session's log; the events are the stored lines.
async fn page_of_session(app: &App, who: &Principal, params: Value) -> Result<Response, Problem> {
    let after = params.get("after_seq").and_then(Value::as_u64).unwrap_or(0);
    let exported = app.api.call(who, "session.export", params).await?;
    let Exported { lines, head } = serde_json::from_value(exported)
        .map_err(|error| Fault::internal("bad_answer", format!("cannot read the export: {error}")))?;
    let last = after + u64::try_from(lines.len()).unwrap_or(u64::MAX);
    let next = if last < head {
        last.to_string()
    } else {
        "null".to_owned()
    };
    let items = lines.join(",");
    Ok(json_text(format!(
        r#"{{"items":[{items}],"next":{next},"head":{head}}}"#
    )))
}

/// A page of the fleet's log.
async fn page_of_fleet(mut frames: mpsc::Receiver<Pushed>, limit: u64) -> Result<Response, Problem> {
    let (mut items, mut count, mut next) = (String::new(), 0, None);
    while let Some(Pushed { push, .. }) = frames.recv().await {
        match push {
            Push::Event { json, cursor } => {
                if count == limit {
                    break;
                }
                count += 1;
                let separator = if items.is_empty() { "" } else { "," };
                let cursor = cursor.unwrap_or(0);
                next = Some(cursor);
                let event = String::from_utf8_lossy(&json);
                items.push_str(&format!(r#"{separator}{{"cursor":{cursor},"event":{event}}}"#));
            }
            Push::Ended {
                code: "end", cursor, ..
            } => {
                next = cursor.or(next);
                break;
            }
            Push::Ended { code, message, .. } => return Err(Fault::unavailable(code, message).into()),
            _ => {}
        }
    }
    let next = next.map_or_else(|| "null".to_owned(), |cursor| cursor.to_string());
    Ok(json_text(format!(r#"{{"items":[{items}],"next":{next}}}"#)))
}

fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The frames of a subscription on their way to a client.
struct Stream {
    frames: mpsc::Receiver<Pushed>,
    ids: Ids,
    shutdown: watch::Receiver<bool>,
    over: bool,
    _open: OpenStream,
}

/// The response that pushes frames until their end.
pub(crate) fn stream(app: &App, open: OpenStream, frames: mpsc::Receiver<Pushed>, ids: Ids) -> Response {
    let stream = Stream {
        frames,
        ids,
        shutdown: app.shutdown.clone(),
        over: false,
        _open: open,
    };
    let body = Body::from_stream(unfold(stream, Stream::next));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, body).into_response()
}

impl Stream {
    /// The next bytes; `None` at the end.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if self.over {
            return None;
        }
        let mut bytes = BytesMut::new();
        let received = tokio::select! {
            biased;
            received = timeout(HEARTBEAT, self.frames.recv()) => Some(received),
            () = stopping(&mut self.shutdown) => None,
        };
        match received {
            Some(Ok(Some(pushed))) => {
                bytes.reserve(USUAL);
                self.gather(&mut bytes, &pushed);
            }
            Some(Ok(None)) => return None,
            Some(Err(_)) => bytes.extend_from_slice(b": still here\n\n"),
            None => {
                ended(&mut bytes, "stopping", "the daemon is stopping");
                self.over = true;
            }
        }
        Some((Ok(bytes.freeze()), self))
    }

    /// Adds a frame, and those that are queued after it.
    fn gather(&mut self, bytes: &mut BytesMut, first: &Pushed) {
        self.over = self.ids.add(bytes, first);
        while !self.over
            && bytes.len() < TOGETHER
            && let Ok(next) = self.frames.try_recv()
        {
            self.over = self.ids.add(bytes, &next);
        }
    }
}
