//! One attempt of a model call: the only I/O of this crate. Dropping the future drops the connection.

use crate::body::RequestBody;
use crate::classify::{classify, classify_stream_error};
use crate::decoder::Decoder;
use crate::error::ModelError;
use crate::pacing::Pace;
use crate::reply::{ModelEvent, ModelReply};
use crate::spec::{ModelSpec, dialect_name};
use crate::{anthropic, chat, scripted};
use agentd_protocol::{FailureClass, Latency, Message};
use agentd_settings::Dialect;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Client, Response};
use std::convert::Infallible;
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{timeout, timeout_at};

/// How much of an error's body is read, and for how long.
const ERROR_BODY: usize = 64 << 10;
const ERROR_BODY_TIME: Duration = Duration::from_secs(10);

/// What to send.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// To whom.
    pub spec: &'a ModelSpec,
    /// The body, for dialects that talk to a server.
    pub body: RequestBody,
    /// The conversation, for the scripted dialect.
    pub messages: &'a [Arc<Message>],
    /// The attempt, from 1.
    pub attempt: u32,
}

/// Where the pieces go while the answer streams. Not taking a piece slows the stream down.
pub trait Sink: Send {
    /// Takes one piece; waits while there is no room for it.
    fn send(&mut self, event: ModelEvent) -> impl Future<Output = ()> + Send;
}

/// Makes one attempt and returns the complete answer.
///
/// # Errors
/// Every failure has its class; the message is bounded and has no key in it (I8).
pub async fn call<S: Sink>(
    client: &Client,
    request: Request<'_>,
    sink: &mut S,
) -> Result<(ModelReply, Latency), ModelError> {
    let spec = request.spec;
    let secret = spec.credential().map(|credential| credential.secret.clone());
    let answer = match spec.dialect {
        Dialect::Scripted => scripted::call(&request, sink).await,
        Dialect::Anthropic => {
            over_http(
                client,
                request,
                anthropic::url(spec),
                &anthropic::headers(spec),
                sink,
            )
            .await
        }
        Dialect::OpenaiChat => over_http(client, request, chat::url(spec), &chat::headers(spec), sink).await,
        other @ (Dialect::OpenaiResponses | Dialect::Gemini | Dialect::LlamaCompletion | Dialect::Ollama) => {
            let what = format!("the dialect {} is not available yet", dialect_name(other));
            Err(ModelError::new(FailureClass::InvalidRequest, what))
        }
    };
    answer.map_err(|error| error.naming_credential(spec).without(secret.as_ref()))
}

async fn over_http<S: Sink>(
    client: &Client,
    request: Request<'_>,
    url: String,
    own: &[(&'static str, String)],
    sink: &mut S,
) -> Result<(ModelReply, Latency), ModelError> {
    let spec = request.spec;
    let mut pace = Pace::start(spec.deadlines);
    let decoder = Decoder::new(spec)?;
    let sending = client
        .post(url)
        .headers(headers(spec, own, &request.body)?)
        .body(stream_body(request.body))
        .send();
    let response = timeout_at(pace.deadline(), sending)
        .await
        .map_err(|_| pace.expired())?
        .map_err(|error| of_transport("the request could not be sent", error))?;
    let response = accept(response).await?;
    let request_id = request_id(response.headers());
    let (mut reply, first_ms) =
        read_answer(response.bytes_stream().boxed(), decoder, &mut pace, sink).await?;
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

fn headers(
    spec: &ModelSpec,
    own: &[(&'static str, String)],
    body: &RequestBody,
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
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

/// Refuses every answer that is not a stream, with what its body says.
async fn accept(response: Response) -> Result<Response, ModelError> {
    let status = response.status().as_u16();
    let json = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"));
    if response.status().is_success() && !json {
        return Ok(response);
    }
    let headers = response.headers().clone();
    let body = error_body(response).await;
    if status >= 300 {
        return Err(classify(status, &headers, &body));
    }
    Err(match serde_json::from_slice::<serde_json::Value>(&body) {
        Ok(frame) if frame.get("error").is_some() => classify_stream_error(&frame),
        Ok(_) | Err(_) => ModelError::new(
            FailureClass::InvalidRequest,
            "the server answered without streaming",
        ),
    })
}

/// The beginning of an error's body; what cannot be read in time is left out.
async fn error_body(response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    let reading = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            body.extend_from_slice(&chunk);
            if body.len() >= ERROR_BODY {
                break;
            }
        }
    };
    // Out of time is no failure of its own: the status tells enough.
    let _ = timeout(ERROR_BODY_TIME, reading).await;
    body.truncate(ERROR_BODY);
    body
}

/// Reads a stream to its end. Returns the answer and when its first piece came.
async fn read_answer<T, S: Sink>(
    mut bytes: T,
    mut decoder: Decoder,
    pace: &mut Pace,
    sink: &mut S,
) -> Result<(ModelReply, Option<u64>), ModelError>
where
    T: Stream<Item = reqwest::Result<Bytes>> + Unpin,
{
    let mut first_ms = None;
    let mut events = Vec::new();
    loop {
        let chunk = match timeout_at(pace.deadline(), bytes.next()).await {
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(_))) | Err(_) if decoder.is_complete() => break,
            Ok(None) => break,
            Ok(Some(Err(error))) => return Err(of_transport("the stream broke", error)),
            Err(_) => return Err(pace.expired()),
        };
        let progress = decoder.feed(&chunk, &mut events)?;
        if !events.is_empty() {
            first_ms.get_or_insert_with(|| pace.elapsed_ms());
            forward(&mut events, pace, sink).await?;
        }
        pace.note(progress);
        if decoder.is_complete() {
            pace.complete();
        }
    }
    let reply = decoder.finish(&mut events)?;
    forward(&mut events, pace, sink).await?;
    Ok((reply, first_ms))
}

async fn forward<S: Sink>(events: &mut Vec<ModelEvent>, pace: &Pace, sink: &mut S) -> Result<(), ModelError> {
    for event in events.drain(..) {
        timeout_at(pace.end(), sink.send(event))
            .await
            .map_err(|_| pace.expired())?;
    }
    Ok(())
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    ["request-id", "x-request-id"]
        .into_iter()
        .find_map(|name| headers.get(name).and_then(|value| value.to_str().ok()))
        .map(str::to_owned)
}

/// An error below HTTP, with its causes and without its address: addresses can carry passwords.
fn of_transport(what: &str, error: reqwest::Error) -> ModelError {
    let class = if error.is_builder() {
        FailureClass::InvalidRequest
    } else {
        FailureClass::Transient
    };
    let error = error.without_url();
    let mut message = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    ModelError::new(class, message)
}

#[cfg(test)]
mod tests;
