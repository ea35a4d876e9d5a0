//! One attempt of a model call: the only I/O of this crate. Dropping the future drops the connection.

pub(crate) mod reading;

use crate::body::RequestBody;
use crate::decoder::Decoder;
use crate::dialect::{Codec, Framing, Preparation, codec};
use crate::error::ModelError;
use crate::pacing::Pace;
use crate::rates::Rates;
use crate::reply::{ModelEvent, ModelReply};
use crate::scripted;
use crate::spec::{Credential, ModelSpec};
use agentd_protocol::{Advice, FailureClass, Latency, Message, Usage};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reading::{
    Accepted, Head, NO_ANSWER, accept, collect, of_transport, read_answer, read_whole, request_id,
};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Client, Response};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::time::timeout_at;
use url::Url;

/// The request, and the model that gets it.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The model to call.
    pub spec: &'a ModelSpec,
    /// The credential; none for servers that need none.
    pub credential: Option<&'a Credential>,
    /// The names of the offered tools.
    pub tools: &'a [String],
    /// The body, for dialects that talk to a server.
    pub body: RequestBody,
    /// The conversation, for the scripted dialect.
    pub messages: &'a [Arc<Message>],
    /// The number of this attempt, from 1.
    pub attempt: u32,
}

/// Receives events while the answer streams. A slow sink slows the stream down.
pub trait Sink: Send {
    /// Takes one event; waits until there is room for it.
    fn send(&mut self, event: ModelEvent) -> impl Future<Output = ()> + Send;
}

/// The outcome of an attempt.
#[derive(Debug)]
pub struct Called {
    /// The answer and its latency, or the error. Every failure has its class; the message is bounded and contains
    /// no key (I8).
    pub answer: Result<(ModelReply, Latency), ModelError>,
    /// The rate limits that the server reported.
    pub rates: Rates,
    /// The tokens that the server counted before the answer failed.
    pub spent: Option<Usage>,
}

/// Makes one attempt and returns the complete answer.
pub async fn call<S: Sink>(client: &Client, request: Request<'_>, sink: &mut S) -> Called {
    let (spec, credential) = (request.spec, request.credential);
    let (mut rates, mut counted) = (Rates::default(), Usage::default());
    let answer = match codec(spec.dialect) {
        Some(codec) => over_http(client, request, codec, sink, (&mut rates, &mut counted)).await,
        None => scripted::call(&request, sink).await,
    };
    let secret = credential.map(|credential| &credential.secret);
    let failed = answer.is_err() && counted != Usage::default();
    Called {
        spent: failed.then_some(counted),
        answer: answer.map_err(|error| error.without(secret).naming_credential(spec, credential)),
        rates,
    }
}

async fn over_http<S: Sink>(
    client: &Client,
    request: Request<'_>,
    codec: &dyn Codec,
    sink: &mut S,
    (rates, counted): (&mut Rates, &mut Usage),
) -> Result<(ModelReply, Latency), ModelError> {
    let spec = request.spec;
    let mut pace = if spec.stream {
        Pace::start(spec.deadlines)
    } else {
        Pace::start(spec.deadlines).patient()
    };
    let decoder = Decoder::new(spec, request.tools)?;
    let own = codec.headers(spec, request.credential);
    let post = Post {
        client,
        spec,
        own: &own,
    };
    let body = match codec.preparation() {
        Some(preparation) => prepare(&post, preparation, request.body, &pace).await?,
        None => request.body,
    };
    let url = codec.url(spec);
    let response = post.send(url.clone(), body, &pace).await?;
    *rates = Rates::of(response.headers());
    let request_id = request_id(response.headers());
    let accepted = accept(response, spec.stream, codec.framing(), &pace).await;
    let answer = match accepted.map_err(|error| at(&url, error))? {
        Accepted::Stream(response) => {
            let decoder = (decoder, Head::of(response.headers()));
            read_answer(response.bytes_stream().boxed(), decoder, &mut pace, sink, counted).await
        }
        Accepted::Whole(response) => read_whole(response, decoder, &mut pace, sink, counted).await,
    };
    let (mut reply, first_ms) = answer.map_err(|error| at(&url, error))?;
    reply.request_id = request_id.or(reply.request_id);
    let total_ms = pace.elapsed_ms();
    Ok((
        reply,
        Latency {
            first_ms: first_ms.unwrap_or(total_ms),
            total_ms,
        },
    ))
}

/// Sends the preparatory request of a dialect, within the deadlines of the call.
async fn prepare(
    post: &Post<'_>,
    preparation: &dyn Preparation,
    body: RequestBody,
    pace: &Pace,
) -> Result<RequestBody, ModelError> {
    let response = post.send(preparation.url(post.spec), body.clone(), pace).await?;
    let (Accepted::Stream(response) | Accepted::Whole(response)) =
        accept(response, false, Framing::Events, pace).await?;
    // A copy: the preparation must not count as progress of the call.
    let mut pace = pace.clone();
    let answer = collect(response.bytes_stream().boxed(), &mut pace).await?;
    let answer = serde_json::from_slice(&answer)
        .map_err(|error| ModelError::transient(format!("the answer is not JSON: {error}")))?;
    preparation.body(&body, &answer)
}

/// Sends requests of one call.
pub(crate) struct Post<'a> {
    pub(crate) client: &'a Client,
    pub(crate) spec: &'a ModelSpec,
    /// The headers of the protocol, including the key.
    pub(crate) own: &'a [(&'static str, String)],
}

impl Post<'_> {
    pub(crate) async fn send(
        &self,
        url: String,
        body: RequestBody,
        pace: &Pace,
    ) -> Result<Response, ModelError> {
        let sending = self
            .client
            .post(url)
            .headers(headers(self.spec, self.own, &body)?)
            .body(stream_body(body))
            .send();
        timeout_at(pace.deadline(), sending)
            .await
            .map_err(|_| pace.expired())?
            .map_err(unsent)
    }
}

/// Reports only the host and the port of the address: the rest may contain a secret. A name that has no address is
/// named once, without the layers through which the error came.
fn unsent(error: reqwest::Error) -> ModelError {
    let url = error.url();
    if let (Some(why), Some(host)) = (of_lookup(&error), url.and_then(|url| url.host_str())) {
        let missing = NO_SUCH_HOST.iter().any(|words| why.contains(words));
        return ModelError {
            advice: missing.then_some(Advice::NoSuchHost),
            ..ModelError::transient(format!("no address for {host}: {why}"))
        };
    }
    let host = url.and_then(|url| url.host_str()).unwrap_or("the server");
    let port = url
        .and_then(|url| url.port_or_known_default())
        .unwrap_or_default();
    of_transport(&format!("could not send the request to {host}:{port}"), error)
}

/// The words of resolvers for a name that does not exist.
const NO_SUCH_HOST: [&str; 5] = [
    "Name or service not known",
    "nodename nor servname",
    "No address associated",
    "Name does not resolve",
    "no such name",
];

/// Why the name of the server has no address, if that is the cause.
fn of_lookup(error: &reqwest::Error) -> Option<String> {
    let (mut found, mut cause) = (false, std::error::Error::source(error));
    let mut why = String::new();
    while let Some(error) = cause {
        why = error.to_string();
        found |= why.starts_with("dns error");
        cause = error.source();
    }
    let plain = why.trim_start_matches("failed to lookup address information: ");
    found.then(|| plain.to_owned())
}

/// The address of a request without user, password, query and fragment, which may contain secrets.
pub(crate) fn shown(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    // An address that cannot have them has none.
    let _ = (url.set_username(""), url.set_password(None));
    Some(url.into())
}

/// Statuses of a server that does not serve the API at this address: it moved, or the path is wrong.
const ELSEWHERE: [u16; 7] = [301, 302, 307, 308, 404, 405, 410];

/// Adds the address to an error that a wrong base URL may have caused.
fn at(url: &str, mut error: ModelError) -> ModelError {
    let suspect = error.status.is_some_and(|status| ELSEWHERE.contains(&status))
        || error.message.starts_with(NO_ANSWER);
    if let Some(url) = shown(url).filter(|_| suspect) {
        error.message.push_str(&format!(" (POST {url})"));
    }
    error
}

/// The headers of a request: those of the protocol, including the key, and the configured ones.
pub(crate) fn headers(
    spec: &ModelSpec,
    own: &[(&'static str, String)],
    body: &RequestBody,
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let accepted = if spec.stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    headers.insert(ACCEPT, HeaderValue::from_static(accepted));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    let configured = spec
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain(configured)
    {
        let bad = |what: &str| {
            ModelError::new(
                FailureClass::Auth,
                format!("the {what} of header {name} is not valid"),
            )
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

fn stream_body(body: RequestBody) -> Body {
    Body::wrap_stream(stream::iter(
        body.into_fragments().into_iter().map(Ok::<Bytes, Infallible>),
    ))
}

#[cfg(test)]
mod tests;
