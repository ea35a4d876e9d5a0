//! Reads what a server sent: errors, streams, and answers in one piece.

use crate::call::Sink;
use crate::classify::classify;
use crate::decoder::crowded;
use crate::decoder::{Decoder, Progress};
use crate::dialect::Framing;
use crate::error::ModelError;
use crate::pacing::Pace;
use crate::reply::{ModelEvent, ModelReply};
use crate::room::ROOM;
use agentd_protocol::{FailureClass, Usage};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use std::error::Error as _;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How much of an error's body is read; `ERROR_BODY_TIME` limits for how long.
const ERROR_BODY: usize = 64 << 10;
const ERROR_BODY_TIME: Duration = Duration::from_secs(10);
/// The longest unstreamed answer: parsed, it takes a multiple of its length.
pub(crate) const MAX_WHOLE: usize = 16 << 20;
/// The known content encodings.
const PACKINGS: [&str; 7] = [
    "gzip",
    "x-gzip",
    "deflate",
    "br",
    "zstd",
    "compress",
    "x-compress",
];
/// How many characters of a page (HTML, say) an error quotes.
const QUOTED: usize = 200;

/// A successful response.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// The answer is streamed.
    Stream(Response),
    /// The answer is in one piece, by request or because the server cannot stream.
    Whole(Response),
}

/// Turns every unsuccessful response into an error with the message of its body; also refuses unreadable bodies.
pub(crate) async fn accept(
    response: Response,
    streamed: bool,
    framing: Framing,
    pace: &Pace,
) -> Result<Accepted, ModelError> {
    let status = response.status();
    let headers = response.headers().clone();
    // A small compressed body may expand to any size, so a body that is compressed without a request for it is refused.
    let encoding = header(&headers, &CONTENT_ENCODING);
    let packed = encoding
        .split(',')
        .any(|one| PACKINGS.contains(&one.trim().to_ascii_lowercase().as_str()));
    if !status.is_success() {
        let body = if packed {
            Vec::new()
        } else {
            error_body(response, pace).await
        };
        return Err(classify(status.as_u16(), &headers, &body));
    }
    if packed {
        let what = format!("the answer is compressed ({encoding}), but agentd did not request that");
        return Err(ModelError::transient(what));
    }
    let kind = header(&headers, &CONTENT_TYPE).to_ascii_lowercase();
    let is = |name: &str| kind.starts_with(name);
    let whole = if is("text/event-stream") || is("application/x-ndjson") {
        false
    } else if is("application/json") {
        // One object is also a line, and some servers use this type for many lines.
        !(streamed && framing == Framing::Lines)
    } else {
        !streamed
    };
    Ok(if whole {
        Accepted::Whole(response)
    } else {
        Accepted::Stream(response)
    })
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// The start of a stream before any event: it may be an unstreamed answer or error, or the page of a proxy. The content
/// decides; servers often declare the wrong type.
#[derive(Debug, Default)]
pub(crate) struct Head {
    bytes: Vec<u8>,
    over: bool,
    /// The server says that this is text for people. Some servers label their streams so.
    plain: bool,
}

impl Head {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let kind = header(headers, &CONTENT_TYPE).to_ascii_lowercase();
        Self {
            plain: kind.starts_with("text/plain") || kind.starts_with("text/html"),
            ..Self::default()
        }
    }

    /// The error for what arrived, if that is no answer of the API.
    fn page(&self) -> Option<ModelError> {
        page(&self.bytes, self.plain && !self.is_json())
    }

    fn keep(&mut self, chunk: &[u8]) {
        if !self.over {
            self.bytes.extend_from_slice(chunk);
            let first = self.bytes.trim_ascii_start().first();
            let odd = first.is_none_or(|first| matches!(first, b'{' | b'<'));
            let most = if self.plain && !self.is_json() {
                ERROR_BODY
            } else {
                MAX_WHOLE
            };
            if !(odd || self.plain) || self.bytes.len() > most {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.over = true;
        self.bytes = Vec::new();
    }

    fn is_json(&self) -> bool {
        self.bytes.trim_ascii_start().starts_with(b"{")
    }
}

/// The beginning of an error about an answer that does not come from the API.
pub(crate) const NO_ANSWER: &str = "the server sent a ";

/// Turns a page or a text (of a proxy, say), sent instead of an answer, into an error.
fn page(bytes: &[u8], plain: bool) -> Option<ModelError> {
    let begun = bytes.get(..bytes.len().min(ERROR_BODY)).unwrap_or_default();
    let kind = match begun.trim_ascii_start().first()? {
        b'<' => "web page",
        _ if plain => "text",
        _ => return None,
    };
    let said = quote(begun);
    Some(ModelError::transient(format!(
        "{NO_ANSWER}{kind} instead of an answer: {said}"
    )))
}

/// The text of a page, without its tags.
fn quote(page: &[u8]) -> String {
    let mut inside = false;
    let text: String = String::from_utf8_lossy(page)
        .chars()
        .map(|one| {
            inside = one == '<' || (inside && one != '>');
            if inside || one == '>' { ' ' } else { one }
        })
        .collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(QUOTED).collect()
}

/// Reads an answer that is not streamed.
pub(crate) async fn read_whole<S: Sink>(
    response: Response,
    mut decoder: Decoder,
    pace: &mut Pace,
    sink: &mut S,
    counted: &mut Usage,
) -> Result<(ModelReply, Option<u64>), ModelError> {
    let body = collect(response.bytes_stream().boxed(), pace).await?;
    let mut events = Vec::new();
    let begun = body.trim_ascii_start();
    // Some servers label a stream as JSON.
    let streamed = [&b"data:"[..], b"event:", b":"]
        .iter()
        .any(|mark| begun.starts_with(mark));
    let plain = !streamed && !matches!(begun.first(), Some(b'{' | b'['));
    if let Some(page) = page(&body, plain) {
        return Err(page);
    }
    let taken = if streamed {
        decoder.feed(&body, &mut events).map(drop)
    } else {
        decoder.take_whole(&body, &mut events)
    };
    *counted = decoder.usage();
    taken?;
    let reply = decoder.finish(&mut events)?;
    forward(&mut events, pace, sink).await?;
    Ok((reply, None))
}

/// Collects a whole body. Some servers send white space as a keep-alive.
pub(crate) async fn collect<T>(mut bytes: T, pace: &mut Pace) -> Result<Vec<u8>, ModelError>
where
    T: Stream<Item = reqwest::Result<Bytes>> + Unpin,
{
    let (mut body, mut held) = (Vec::new(), ROOM.hold());
    loop {
        let chunk = timeout_at(pace.deadline(), bytes.next())
            .await
            .map_err(|_| pace.expired())?;
        match chunk {
            Some(Ok(chunk)) if body.len() + chunk.len() <= MAX_WHOLE => {
                let blank = chunk.iter().all(u8::is_ascii_whitespace);
                pace.note(if blank { Progress::Alive } else { Progress::Moved });
                held.grow(body.len() + chunk.len()).map_err(crowded)?;
                body.extend_from_slice(&chunk);
            }
            Some(Ok(_)) => {
                return Err(ModelError::transient(
                    "the answer is one piece of more than 16 MiB",
                ));
            }
            Some(Err(error)) => return Err(of_transport("the answer ended early", error)),
            None => return Ok(body),
        }
    }
}

/// The beginning of an error's body, as far as it arrives in time.
async fn error_body(response: Response, pace: &Pace) -> Vec<u8> {
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
    // A time-out here is not a failure of its own: the status says enough.
    let _ = timeout(ERROR_BODY_TIME, timeout_at(pace.end(), reading)).await;
    body.truncate(ERROR_BODY);
    body
}

/// Reads a stream to its end. Returns the answer and the time of its first delta.
pub(crate) async fn read_answer<T, S: Sink>(
    mut bytes: T,
    (mut decoder, mut head): (Decoder, Head),
    pace: &mut Pace,
    sink: &mut S,
    counted: &mut Usage,
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
            Ok(Some(Err(error))) => return Err(of_transport("the stream ended with an error", error)),
            Err(_) => return Err(pace.expired()),
        };
        head.keep(&chunk);
        let fed = decoder.feed(&chunk, &mut events);
        *counted = decoder.usage();
        let progress = fed.map_err(|error| head.page().unwrap_or(error))?;
        if progress == Progress::Moved {
            head.close();
        }
        if !events.is_empty() {
            first_ms.get_or_insert_with(|| pace.elapsed_ms());
            forward(&mut events, pace, sink).await?;
        }
        pace.note(progress);
        if decoder.is_complete() {
            pace.complete();
            if Instant::now() >= pace.deadline() {
                break;
            }
        }
    }
    let reply = if head.is_json() {
        let taken = decoder.take_whole(&head.bytes, &mut events);
        *counted = decoder.usage();
        taken?;
        decoder.finish(&mut events)?
    } else {
        let ended = decoder.finish(&mut events);
        ended.map_err(|error| head.page().unwrap_or(error))?
    };
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

/// The provider's id of the request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    ["request-id", "x-request-id"]
        .into_iter()
        .find_map(|name| headers.get(name).and_then(|value| value.to_str().ok()))
        .map(str::to_owned)
}

/// An error below HTTP, with its causes but without its URL: URLs can contain passwords.
pub(crate) fn of_transport(what: &str, error: reqwest::Error) -> ModelError {
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
