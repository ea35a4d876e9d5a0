//! Writes answers and pushed frames to a stream of bytes. Answers go first; a connection whose peer does not read is closed.

use agentd_api::{Push, Pushed};
use agentd_wire::{DeltaFrame, Ended, FrameLimits, ServerFrame, StoredEvent, WireError, encode_after};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The time limit for writing one frame.
pub(crate) const WRITE: Duration = Duration::from_secs(30);
/// The maximum number of queued answers.
pub(crate) const ANSWERS: usize = 16;
/// The maximum number of queued pushed frames; beyond that the subscriptions wait, and so lag.
pub(crate) const PUSHES: usize = 64;

/// Frames that are ready at the same time are written together, up to about this many bytes.
const TOGETHER: usize = 32 << 10;

/// A frame to write.
#[derive(Debug)]
enum Frame {
    Answer(ServerFrame),
    Push(Pushed),
}

/// Writes until both queues are closed and empty, or the peer is gone or stalls.
pub(crate) async fn write_all(
    mut stream: impl AsyncWrite + Unpin,
    mut answers: mpsc::Receiver<ServerFrame>,
    mut pushes: mpsc::Receiver<Pushed>,
) {
    loop {
        let first = tokio::select! {
            biased;
            Some(answer) = answers.recv() => Frame::Answer(answer),
            Some(pushed) = pushes.recv() => Frame::Push(pushed),
            else => break,
        };
        let bytes = together(first, || {
            let answer = answers.try_recv().map(Frame::Answer);
            answer.or_else(|_| pushes.try_recv().map(Frame::Push)).ok()
        });
        match timeout(WRITE, stream.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                tracing::info!("closing the connection of a client that stopped reading");
                return;
            }
        }
    }
    // The peer may have closed first.
    let _ = timeout(WRITE, stream.shutdown()).await;
}

/// The bytes of a frame and of the frames that are queued after it.
fn together(first: Frame, mut ready: impl FnMut() -> Option<Frame>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut next = Some(first);
    while let Some(frame) = next {
        add(&mut bytes, &frame);
        next = if bytes.len() < TOGETHER { ready() } else { None };
    }
    bytes
}

fn add(bytes: &mut Vec<u8>, frame: &Frame) {
    let limit = FrameLimits::of_answers().max_frame_bytes;
    let written = match frame {
        // Shared with other viewers, so it is encoded without a copy.
        Frame::Push(Pushed {
            sub,
            push: Push::Delta(delta),
        }) => encode_after(bytes, &DeltaFrame { sub: *sub, delta }, limit),
        Frame::Push(pushed) => encode_after(bytes, &frame_of(pushed.clone()), limit),
        Frame::Answer(frame) => encode_after(bytes, frame, limit),
    };
    let Err(error) = written else { return };
    tracing::error!(%error, "could not encode a frame");
    if let Some(frame) = instead(frame, &error)
        && let Err(error) = encode_after(bytes, &frame, limit)
    {
        tracing::error!(%error, "could not encode the replacement frame either");
    }
}

/// The replacement for a frame that cannot be written.
fn instead(frame: &Frame, error: &WireError) -> Option<ServerFrame> {
    match frame {
        Frame::Answer(ServerFrame::Ok { id, .. } | ServerFrame::Fault { id: Some(id), .. }) => {
            let fault = agentd_protocol::Fault::limit("answer_too_large", error.to_string());
            Some(ServerFrame::Fault {
                id: Some(*id),
                fault: fault.hint("ask for less at a time"),
            })
        }
        Frame::Answer(_) => None,
        Frame::Push(Pushed { sub, .. }) => {
            let ended = Ended {
                code: "failed".to_owned(),
                message: error.to_string(),
                cursor: None,
            };
            Some(ServerFrame::Push {
                sub: *sub,
                push: agentd_wire::Push::Ended(ended),
            })
        }
    }
}

fn frame_of(Pushed { sub, push }: Pushed) -> ServerFrame {
    let push = match push {
        Push::Event { json, cursor } => agentd_wire::Push::Event(StoredEvent { json, cursor }),
        Push::Delta(delta) => agentd_wire::Push::Delta(delta.as_ref().clone()),
        Push::Synced(synced) => agentd_wire::Push::Synced(*synced),
        Push::CaughtUp(caught_up) => agentd_wire::Push::CaughtUp(caught_up),
        Push::Lagged(lagged) => agentd_wire::Push::Lagged(lagged),
        Push::Ended {
            code,
            message,
            cursor,
        } => agentd_wire::Push::Ended(Ended {
            code: code.to_owned(),
            message,
            cursor,
        }),
    };
    ServerFrame::Push { sub, push }
}
