//! `POST /v1/node/call` and `POST /v1/node/follow`: what other nodes of the fleet ask. The signature of a node takes the place of
//! a token. With `http.tls.nodes`, they need a certificate, too.

use crate::body::{self, Bounds};
use crate::link::{Client, Link, busy};
use crate::problem::Problem;
use crate::router::App;
use crate::tls::CertifiedNode;
use agentd_admission::{Hold, Work};
use agentd_api::Fragments;
use agentd_node_keys::{Arrived, Verified};
use agentd_protocol::{Fault, FaultClass};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, Uri, header};
use axum::response::Response;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::stream;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How often an empty line shows that the stream is alive.
const ALIVE: Duration = Duration::from_secs(5);
/// The header that proves an answer.
const ANSWER: &str = "agentd-node-answer";

/// A request of another node, with what it takes until the answer.
struct Asked {
    request: Verified,
    memory: Option<Hold>,
    work: Option<Work<Client>>,
}

/// Reads a request of another node. The body of a stranger is not read.
async fn read(app: &App, request: Request) -> Result<Asked, Problem> {
    let needs_certificate = !app.api.loaded().settings.http.tls.nodes.is_empty();
    if needs_certificate && request.extensions().get::<CertifiedNode>().is_none() {
        let message = "other nodes need a certificate that is signed by one of http.tls.nodes";
        return Err(Problem::from(Fault::denied("no_certificate", message)));
    }
    let head = Head::of(&request);
    let vouched = app.api.vouch(&head.arrived()).await.map_err(refused)?;
    let work = Link::admit(&request, Client::Node);
    let received = body::read(app, request, Bounds::of_calls).await?;
    let request = vouched.with(received.bytes);
    Ok(Asked {
        request: request.map_err(|refusal| refused(refusal.into()))?,
        memory: received.memory,
        work,
    })
}

/// The head of a request, without its body.
struct Head {
    method: Method,
    place: Uri,
    authorization: Option<HeaderValue>,
}

impl Head {
    fn of(request: &Request) -> Self {
        Self {
            method: request.method().clone(),
            place: request.uri().clone(),
            authorization: request.headers().get(header::AUTHORIZATION).cloned(),
        }
    }

    fn arrived(&self) -> Arrived<'_> {
        let authorization = self.authorization.as_ref();
        Arrived {
            method: self.method.as_str(),
            path: self.place.path_and_query().map_or("", |place| place.as_str()),
            authorization: authorization
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default(),
        }
    }
}

/// 401 says that the request was not run.
fn refused(fault: Fault) -> Problem {
    match fault.class {
        FaultClass::Denied => Problem::unauthorized(fault),
        _ => Problem::from(fault),
    }
}

/// Runs a method for a client of another node. Answers with `{ok}` or `{fault}`.
pub(crate) async fn peer_call(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let call = read(&app, request).await?;
    let done = app.api.peer_call(&call.request).await;
    let answer = match done {
        Ok(answer) => json!({"ok": answer}),
        Err(fault) => json!({"fault": fault}),
    };
    let body = answer.to_string();
    let proof = app.api.prove_answer(&call.request, body.as_bytes());
    drop((call.memory, call.work));
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    if let Some(proof) = proof.and_then(|proof| HeaderValue::from_str(&proof).ok()) {
        headers.insert(ANSWER, proof);
    }
    Ok(response)
}

/// Streams the live fragments of a session, one per line.
pub(crate) async fn peer_follow(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let follow = read(&app, request).await?;
    let fragments = app.api.peer_follow(&follow.request).await?;
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
