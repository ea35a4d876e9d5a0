//! The responses of the server.

use super::manner::Manner;
use super::speech::Speech;
use super::{Plan, Shared, Step};
use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A response that does not stream.
pub(super) fn plain(status: StatusCode, retry_after: Option<u64>, text: &str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed_unsync());
    *response.status_mut() = status;
    if let Some(seconds) = retry_after {
        response.headers_mut().insert("retry-after", seconds.into());
    }
    response
}

/// The content of a response, and its step.
pub(super) struct Saying {
    pub(super) speech: Speech,
    pub(super) plan: Plan,
    pub(super) done: usize,
    pub(super) step: Step,
    /// Whether the stream breaks off in the middle.
    pub(super) cut: bool,
}

/// A streaming response.
pub(super) fn stream(saying: Saying, manner: &Manner, shared: &Arc<Shared>) -> Response<Body> {
    let mut chunks = saying.speech.chunks(&saying.step);
    if saying.cut {
        chunks.truncate(chunks.len() / 2);
    }
    let first = saying.plan.first_ms.unwrap_or(manner.first_ms);
    let pieces = if manner.pieces == 0 && manner.gap_ms == 0 && shared.cheap {
        1
    } else {
        manner.pieces
    };
    let chunks = pieces_of(chunks, pieces);
    let end = if saying.cut {
        End::Break
    } else if saying.step.hang() {
        End::Never
    } else {
        End::Proper
    };
    let awaited = matches!(saying.step, Step::Calls(_)) && !saying.cut;
    let running = Running {
        shared: Arc::clone(shared),
        ended: false,
        unsaid: true,
        awaited: awaited.then_some((saying.plan.key, saying.done)),
    };
    running.shared.seen.send_modify(|seen| {
        seen.open += 1;
        seen.unsaid += 1;
        seen.most = seen.most.max(seen.unsaid);
    });
    let state = Going {
        chunks: chunks.into_iter(),
        wait: first,
        gap: manner.gap_ms,
        end,
        running,
    };
    let body = StreamBody::new(unfold(state, next));
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(
        "content-type",
        HeaderValue::from_static(saying.speech.content_type()),
    );
    response
}

/// The same bytes in this many pieces; 0: unchanged.
fn pieces_of(chunks: Vec<Bytes>, pieces: usize) -> Vec<Bytes> {
    if pieces == 0 || chunks.len() <= pieces {
        return chunks;
    }
    let per = chunks.len().div_ceil(pieces);
    chunks
        .chunks(per)
        .map(|group| Bytes::from(group.concat()))
        .collect()
}

#[derive(Debug, Clone, Copy)]
enum End {
    Proper,
    /// The connection stays open, but nothing more is sent.
    Never,
    /// The stream just ends.
    Break,
}

struct Going {
    chunks: std::vec::IntoIter<Bytes>,
    wait: u64,
    gap: u64,
    end: End,
    running: Running,
}

async fn next(mut going: Going) -> Option<(Result<Frame<Bytes>, Infallible>, Going)> {
    if going.wait > 0 {
        tokio::time::sleep(Duration::from_millis(going.wait)).await;
    }
    going.wait = going.gap;
    if let Some(chunk) = going.chunks.next() {
        if going.chunks.len() == 0 {
            going.running.said();
        }
        return Some((Ok(Frame::data(chunk)), going));
    }
    match going.end {
        End::Proper | End::Break => {
            going.running.ended = true;
            None
        }
        End::Never => std::future::pending().await,
    }
}

/// Counts one streaming answer. If it is dropped before its end, the client dropped it.
struct Running {
    shared: Arc<Shared>,
    ended: bool,
    unsaid: bool,
    awaited: Option<(String, usize)>,
}

impl Running {
    /// Called when the last piece is sent: the reader then knows what to do next.
    fn said(&mut self) {
        self.unsaid = false;
        self.shared.seen.send_modify(|seen| seen.unsaid -= 1);
        if let Some((key, done)) = self.awaited.take()
            && self.shared.cheap
        {
            self.shared.gaps.answered(&key, done);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let (ended, unsaid) = (self.ended, self.unsaid);
        self.shared.seen.send_modify(|seen| {
            seen.open -= 1;
            seen.unsaid -= u64::from(unsaid);
            if ended {
                seen.finished += 1;
            } else {
                seen.dropped += 1;
            }
        });
    }
}
