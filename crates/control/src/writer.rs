//! Answers and pushed frames into a socket. Answers go first; a peer that takes nothing for too long is given up.

use agentd_api::{Push, Pushed};
use agentd_wire::{Ended, FrameLimits, ServerFrame, StoredEvent, WireError, encode};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long one frame may take to be written.
pub(crate) const WRITE: Duration = Duration::from_secs(30);
/// Answers that wait.
pub(crate) const ANSWERS: usize = 16;
/// Pushed frames that wait; beyond that the subscriptions wait, and so lag.
pub(crate) const PUSHES: usize = 64;

/// A frame's bytes.
pub(crate) fn bytes_of(frame: &ServerFrame) -> Result<Vec<u8>, WireError> {
    encode(frame, FrameLimits::of_answers().max_frame_bytes)
}

/// Writes until both queues are closed and empty, or the peer is gone or stalls.
pub(crate) async fn write_all(
    mut socket: OwnedWriteHalf,
    mut answers: mpsc::Receiver<ServerFrame>,
    mut pushes: mpsc::Receiver<Pushed>,
) {
    loop {
        let frame = tokio::select! {
            biased;
            Some(answer) = answers.recv() => answer,
            Some(pushed) = pushes.recv() => frame_of(pushed),
            else => break,
        };
        let bytes = match bytes_of(&frame) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::error!(%error, "a frame could not be written");
                let Some(bytes) = instead(&frame, &error) else {
                    continue;
                };
                bytes
            }
        };
        match timeout(WRITE, socket.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                tracing::info!("a client takes nothing any more; its connection is closed");
                return;
            }
        }
    }
    // The peer may have closed first.
    let _ = timeout(WRITE, socket.shutdown()).await;
}

/// What stands for a frame that cannot be written.
fn instead(frame: &ServerFrame, error: &WireError) -> Option<Vec<u8>> {
    let frame = match frame {
        ServerFrame::Ok { id, .. } | ServerFrame::Fault { id: Some(id), .. } => {
            let fault = agentd_protocol::Fault::limit("answer_too_large", error.to_string());
            ServerFrame::Fault {
                id: Some(*id),
                fault: fault.hint("ask for less at a time"),
            }
        }
        ServerFrame::Push { sub, .. } => {
            let ended = Ended {
                code: "failed".to_owned(),
                message: error.to_string(),
                cursor: None,
            };
            ServerFrame::Push {
                sub: *sub,
                push: agentd_wire::Push::Ended(ended),
            }
        }
        ServerFrame::Welcome(_) | ServerFrame::Fault { id: None, .. } | ServerFrame::Unknown => return None,
    };
    bytes_of(&frame).ok()
}

fn frame_of(Pushed { sub, push }: Pushed) -> ServerFrame {
    let push = match push {
        Push::Event { json, cursor } => agentd_wire::Push::Event(StoredEvent { json, cursor }),
        Push::Delta(delta) => agentd_wire::Push::Delta(delta.as_ref().clone()),
        Push::Synced(synced) => agentd_wire::Push::Synced(synced),
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
