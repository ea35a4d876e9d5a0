//! `POST /v1/node/call` and `POST /v1/node/follow`: what other nodes of the fleet ask. The secret of this node's incarnation,
//! which only nodes on the same store know, takes the place of a token. With `http.tls.nodes`, they need a certificate, too.

use crate::body::{self, Bounds};
use crate::link::{Client, Link, busy};
use crate::problem::Problem;
use crate::router::App;
use crate::tls::CertifiedNode;
use agentd_admission::{Hold, Work};
use agentd_api::{Fragments, PeerCall, PeerFollow};
use agentd_protocol::Fault;
use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::Response;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::stream;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How often an empty line shows that the stream is alive.
const ALIVE: Duration = Duration::from_secs(5);

/// What another node asks, with what it takes until the answer.
struct Asked<T> {
    asked: T,
    memory: Option<Hold>,
    work: Option<Work<Client>>,
}

/// Reads a request of another node. The body of a stranger is not read.
async fn read<T: DeserializeOwned>(app: &App, request: Request) -> Result<Asked<T>, Problem> {
    let needs_certificate = !app.api.loaded().settings.http.tls.nodes.is_empty();
    if needs_certificate && request.extensions().get::<CertifiedNode>().is_none() {
        let message = "other nodes need a certificate that is signed by one of http.tls.nodes";
        return Err(Problem::from(Fault::denied("no_certificate", message)));
    }
    let secret = request.headers().get(header::AUTHORIZATION);
    let secret = secret.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if !app.api.is_peer(secret.unwrap_or_default()) {
        let fault = Fault::denied("bad_secret", "this is not the secret of this node");
        return Err(Problem::unauthorized(fault));
    }
    let work = Link::admit(&request, Client::Node);
    let received = body::read(app, request, Bounds::of_calls).await?;
    let asked = serde_json::from_slice(&received.bytes)
        .map_err(|error| Fault::invalid("bad_body", error.to_string()))?;
    Ok(Asked {
        asked,
        memory: received.memory,
        work,
    })
}

/// Runs a method for a client of another node. Answers with `{ok}` or `{fault}`.
pub(crate) async fn peer_call(State(app): State<Arc<App>>, request: Request) -> Result<Json<Value>, Problem> {
    let call: Asked<PeerCall> = read(&app, request).await?;
    let done = app.api.peer_call(call.asked).await;
    drop((call.memory, call.work));
    Ok(Json(match done {
        Ok(answer) => json!({"ok": answer}),
        Err(fault) => json!({"fault": fault}),
    }))
}

/// Streams the live fragments of a session, one per line.
pub(crate) async fn peer_follow(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let follow: Asked<PeerFollow> = read(&app, request).await?;
    let fragments = app.api.peer_follow(follow.asked).await?;
    drop(follow.memory);
    let lines = stream::unfold(fragments, |mut fragments| async move {
        let line = lines(&mut fragments).await?;
        Some((Ok::<Bytes, Infallible>(line), fragments))
    });
    Ok(busy(Response::new(Body::from_stream(lines)), follow.work))
}

/// The next lines; `None`: the subscription is over.
async fn lines(fragments: &mut Fragments) -> Option<Bytes> {
    let mut out = BytesMut::new();
    match timeout(ALIVE, fragments.next()).await {
        Ok(None) => return None,
        Ok(Some(deltas)) => {
            for delta in deltas {
                serde_json::to_writer((&mut out).writer(), delta.as_ref()).ok()?;
                out.put_u8(b'\n');
            }
        }
        Err(_) => out.put_u8(b'\n'),
    }
    Some(out.freeze())
}
