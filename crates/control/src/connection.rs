//! One connection, from its first byte to its last.

use crate::greeting::greet;
use crate::reader::{FrameReader, ReadEnd};
use crate::requests::Requests;
use crate::writer::{ANSWERS, PUSHES, WRITE, write_all};
use agentd_admission::{Budget, Seat};
use agentd_api::Api;
use agentd_protocol::{Fault, Principal};
use agentd_wire::{ClientFrame, FrameLimits, ServerFrame, WireError};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The state that serves a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) api: Arc<Api>,
    pub(crate) shutdown: watch::Receiver<bool>,
    pub(crate) frames: Arc<Budget>,
    pub(crate) seat: Arc<Seat<i32>>,
    /// Whether it came over the Unix socket.
    pub(crate) local: bool,
}

impl Connection {
    /// Serves a stream of bytes to its end. A peer that is not admitted gets the reason.
    pub(crate) async fn run(
        self,
        (read, write): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin + Send + 'static),
        admitted: Result<Principal, Fault>,
    ) {
        // Held until the last byte is written.
        let seat = Arc::clone(&self.seat);
        let _counted = self.api.connection_opened();
        let limit = usize::try_from(self.api.loaded().settings.limits.max_frame_bytes).unwrap_or(usize::MAX);
        let reader = FrameReader::new(read, FrameLimits::of_requests(limit), self.frames.account());
        let (answers, answers_rx) = mpsc::channel(ANSWERS);
        let (pushes, pushes_rx) = mpsc::channel(PUSHES);
        let mut writer = tokio::spawn(write_all(write, answers_rx, pushes_rx));
        let requests = Requests::new(Arc::clone(&self.api), answers.clone(), pushes, seat, self.local);
        let last_word = match admitted {
            Ok(who) => self.talk(reader, who, requests, &answers, &mut writer).await,
            Err(fault) => {
                tracing::warn!(%fault, "refused a connection");
                // The writer ends when all of its senders are gone.
                drop(requests);
                Some(fault)
            }
        };
        if let Some(fault) = last_word {
            // If the writer is gone, no one can receive the fault.
            let _ = answers.send(ServerFrame::Fault { id: None, fault }).await;
        }
        drop(answers);
        if !writer.is_finished() && timeout(WRITE, &mut writer).await.is_err() {
            writer.abort();
        }
    }

    /// Reads requests until the peer closes, breaks the protocol, stalls, or the daemon stops. `Some` is the final fault.
    async fn talk(
        mut self,
        mut reader: FrameReader<impl AsyncRead + Unpin>,
        who: Principal,
        mut requests: Requests,
        answers: &mpsc::Sender<ServerFrame>,
        writer: &mut JoinHandle<()>,
    ) -> Option<Fault> {
        let greeted = tokio::select! {
            () = self.seat.wanted() => return Some(seat_wanted()),
            greeted = greet(&mut reader, &self.api, &who) => greeted,
        };
        let welcome = match greeted {
            Ok(welcome) => welcome?,
            Err(fault) => return Some(fault),
        };
        self.seat.greeted();
        answers.send(ServerFrame::Welcome(welcome)).await.ok()?;
        loop {
            let frame = tokio::select! {
                // The writer ended because the peer no longer reads.
                _ = &mut *writer => return None,
                () = stopping(&mut self.shutdown) => {
                    requests.finish().await;
                    return Some(Fault::unavailable("stopping", "the daemon is stopping"));
                }
                () = self.seat.wanted() => {
                    requests.finish().await;
                    return Some(seat_wanted());
                }
                () = self.api.revoked(&who) => {
                    return Some(Fault::denied("token_ended", "the token was revoked or has expired"));
                }
                frame = reader.next() => frame,
            };
            match frame {
                Ok((ClientFrame::Request(request), memory)) => requests.start(&who, request, memory).await,
                Ok((ClientFrame::Hello(_), _)) => {
                    return Some(Fault::invalid(
                        "hello_again",
                        "a connection can have only one hello, as its first frame",
                    ));
                }
                Err(ReadEnd::Closed) => {
                    // A peer may close its sending end and still read, so its requests are answered.
                    requests.finish().await;
                    return None;
                }
                Err(ReadEnd::Slow) => {
                    return Some(Fault::timeout(
                        "frame_late",
                        "a frame did not arrive completely in time",
                    ));
                }
                Err(ReadEnd::Crowded) => {
                    let message = "not enough frame memory became free in time for a large frame";
                    return Some(
                        Fault::busy("frames_full", message)
                            .hint("try again later, or raise limits.frames_bytes"),
                    );
                }
                Err(ReadEnd::Bad(WireError::Unfit { id, why })) => {
                    let fault = WireError::Unfit { id, why }.into();
                    answers.send(ServerFrame::Fault { id, fault }).await.ok()?;
                }
                Err(ReadEnd::Bad(error)) => return Some(error.into()),
            }
        }
    }
}

fn seat_wanted() -> Fault {
    let message = "all connections were in use, and this one was idle";
    Fault::busy("idle_connection_closed", message).hint("connect again, or raise limits.connections")
}

/// Waits until the daemon stops; a dropped sender means the same.
pub(crate) async fn stopping(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}
