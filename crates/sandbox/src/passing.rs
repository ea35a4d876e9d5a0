//! Messages with descriptors over a blocking socket, for processes without a runtime.

use crate::error::SandboxError;
use crate::frame;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;

/// Receives the next message.
///
/// # Errors
/// [`SandboxError::WardenGone`] when the peer is gone; another error after a timeout or for an invalid message.
pub(crate) fn receive<T: DeserializeOwned>(
    mut socket: impl Read + AsFd,
) -> Result<(T, Vec<OwnedFd>), SandboxError> {
    let mut header = [0_u8; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        &socket,
        &mut [IoSliceMut::new(&mut header)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )
    .map_err(|errno| lost(errno.into()))?
    .bytes;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    if received == 0 {
        return Err(SandboxError::WardenGone);
    }
    let rest = header.get_mut(received..).unwrap_or_default();
    socket.read_exact(rest).map_err(lost)?;
    let mut body = vec![0; frame::body_length(header)?];
    socket.read_exact(&mut body).map_err(lost)?;
    Ok((frame::decode(&body)?, descriptors))
}

/// Sends a message; the descriptors travel with its first bytes.
pub(crate) fn send<T: Serialize>(
    mut socket: impl Write + AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), SandboxError> {
    let bytes = frame::encode(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(SandboxError::Message(
            "no space for the file descriptors".to_owned(),
        ));
    }
    let sent = sendmsg(
        &socket,
        &[IoSlice::new(&bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )
    .map_err(|errno| lost(errno.into()))?;
    socket
        .write_all(bytes.get(sent..).unwrap_or_default())
        .map_err(lost)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn lost(error: std::io::Error) -> SandboxError {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
            SandboxError::WardenGone
        }
        _ => SandboxError::Message(error.to_string()),
    }
}
