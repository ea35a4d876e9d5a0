//! Sends and receives the messages between the daemon and a warden.

use crate::error::SandboxError;
use crate::frame::{self, Report};
use crate::warden::Commands;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::sync::Arc;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};

/// A message to the warden, with the descriptors to pass along.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl Outgoing {
    pub(crate) const fn plain(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            descriptors: Vec::new(),
        }
    }
}

/// Sends requests in order. Ends when the warden is to close; the warden then sees the end of its socket.
pub(crate) async fn write_requests(
    stream: Arc<UnixStream>,
    mut queue: mpsc::Receiver<Outgoing>,
    mut closed: watch::Receiver<bool>,
) {
    let send_all = async {
        while let Some(message) = queue.recv().await {
            if send(&stream, &message).await.is_err() {
                break;
            }
        }
    };
    let told = async { drop(closed.wait_for(|closed| *closed).await) };
    tokio::select! {
        () = told => {}
        () = send_all => {}
    }
    let _ = rustix::net::shutdown(stream.as_fd(), rustix::net::Shutdown::Write);
}

async fn send(stream: &UnixStream, message: &Outgoing) -> io::Result<()> {
    let mut sent = 0;
    while let Some(rest) = message.bytes.get(sent..).filter(|rest| !rest.is_empty()) {
        sent += stream
            .async_io(Interest::WRITABLE, || {
                let fds: Vec<_> = message.descriptors.iter().map(|fd| fd.as_fd()).collect();
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                // The descriptors travel with the first bytes, which are the length.
                if sent == 0 && !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
                    return Err(io::Error::other("no space for the file descriptors"));
                }
                Ok(sendmsg(
                    stream,
                    &[IoSlice::new(rest)],
                    &mut control,
                    SendFlags::NOSIGNAL,
                )?)
            })
            .await?;
    }
    Ok(())
}

/// Reads reports until the warden is gone, then fails all waiters. Returns whether the warden reported a clean end.
pub(crate) async fn read_reports(
    stream: Arc<UnixStream>,
    commands: Arc<Commands>,
    ended: oneshot::Sender<bool>,
) {
    let mut clean = false;
    while let Ok(report) = read_report(&stream).await {
        clean |= report == Report::Ended;
        commands.learn(report);
    }
    commands.gone();
    let _ = ended.send(clean);
}

async fn read_report(stream: &UnixStream) -> Result<Report, SandboxError> {
    let mut header = [0; 4];
    fill(stream, &mut header).await?;
    let mut body = vec![0; frame::body_length(header)?];
    fill(stream, &mut body).await?;
    frame::decode(&body)
}

async fn fill(stream: &UnixStream, mut buffer: &mut [u8]) -> Result<(), SandboxError> {
    let lost = |error: io::Error| SandboxError::Message(error.to_string());
    while !buffer.is_empty() {
        stream.readable().await.map_err(lost)?;
        match stream.try_read(buffer) {
            Ok(0) => return Err(SandboxError::WardenGone),
            Ok(count) => buffer = buffer.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(lost(error)),
        }
    }
    Ok(())
}
