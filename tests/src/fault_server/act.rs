//! The actions of a server on a connection, act by act.

use super::Seen;
use bytes::Bytes;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

/// Act after act.
pub type Acts = Vec<Act>;

/// One thing that a server does.
#[derive(Clone)]
pub enum Act {
    /// Writes these bytes.
    Say(Bytes),
    /// Writes these bytes one at a time, with this pause between them.
    Drip(Bytes, Duration),
    /// Writes pieces numbered from 0, while the client takes them.
    Flood(u64, Arc<dyn Fn(u64) -> Bytes + Send + Sync>),
    /// Writes the same again and again, with this pause, until the client leaves.
    ForEver(Bytes, Duration),
    /// Does nothing for a while.
    Pause(Duration),
    /// Does nothing until the test says so.
    Until(watch::Receiver<bool>),
    /// Holds the connection in silence until the client leaves it.
    Stall,
    /// Tears the connection down: the client gets a reset, not an end.
    Reset,
    /// Ends its own half of the connection and keeps the other open until the client leaves.
    HalfClose,
    /// Takes the next request on the same connection.
    Next,
}

impl Act {
    /// Writes this text.
    pub fn say(text: impl Into<Bytes>) -> Self {
        Self::Say(text.into())
    }

    /// Writes `count` pieces.
    pub fn flood(count: u64, piece: impl Fn(u64) -> Bytes + Send + Sync + 'static) -> Self {
        Self::Flood(count, Arc::new(piece))
    }
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Say(bytes) => write!(f, "Say({} bytes)", bytes.len()),
            Self::Drip(bytes, pause) => write!(f, "Drip({} bytes, {pause:?})", bytes.len()),
            Self::Flood(count, _) => write!(f, "Flood({count})"),
            Self::ForEver(bytes, pause) => write!(f, "ForEver({} bytes, {pause:?})", bytes.len()),
            Self::Pause(pause) => write!(f, "Pause({pause:?})"),
            Self::Until(_) => f.write_str("Until"),
            Self::Stall => f.write_str("Stall"),
            Self::Reset => f.write_str("Reset"),
            Self::HalfClose => f.write_str("HalfClose"),
            Self::Next => f.write_str("Next"),
        }
    }
}

/// Performs the acts. True: the connection goes on with another request.
pub(super) async fn perform(socket: &mut TcpStream, acts: Acts, seen: &Seen) -> io::Result<bool> {
    let sent = |bytes: &Bytes| seen.note(|counted| counted.sent += bytes.len() as u64);
    for act in acts {
        match act {
            Act::Say(bytes) => {
                socket.write_all(&bytes).await?;
                sent(&bytes);
            }
            Act::Drip(bytes, pause) => {
                for byte in bytes.chunks(1) {
                    socket.write_all(byte).await?;
                    rest(pause).await;
                }
                sent(&bytes);
            }
            Act::Flood(count, piece) => {
                for n in 0..count {
                    let bytes = piece(n);
                    socket.write_all(&bytes).await?;
                    sent(&bytes);
                }
            }
            Act::ForEver(bytes, pause) => loop {
                socket.write_all(&bytes).await?;
                sent(&bytes);
                rest(pause).await;
            },
            Act::Pause(pause) => rest(pause).await,
            Act::Until(mut told) => drop(told.wait_for(|told| *told).await),
            Act::Stall => {
                until_gone(socket).await;
                return Ok(false);
            }
            Act::Reset => {
                socket.set_zero_linger()?;
                return Ok(false);
            }
            Act::HalfClose => {
                socket.shutdown().await?;
                until_gone(socket).await;
                return Ok(false);
            }
            Act::Next => return Ok(true),
        }
    }
    Ok(false)
}

/// Slowness is the fault that is played here, not a way to wait for something.
async fn rest(pause: Duration) {
    if pause.is_zero() {
        tokio::task::yield_now().await;
    } else {
        sleep(pause).await;
    }
}

async fn until_gone(socket: &mut TcpStream) {
    let mut ignored = [0; 1_024];
    while !matches!(socket.read(&mut ignored).await, Ok(0) | Err(_)) {}
}

/// The first line of an answer.
#[must_use]
pub fn status_line(status: u16) -> String {
    format!("HTTP/1.1 {status} Because\r\n")
}

/// A whole answer with its length; the connection ends with it.
#[must_use]
pub fn http(status: u16, headers: &[(&str, &str)], body: &str) -> Act {
    let mut text = status_line(status);
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!(
        "content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    Act::say(text)
}

/// A page for people.
#[must_use]
pub fn html(status: u16) -> Act {
    let page = "<!doctype html>\n<html><head><title>Oops</title></head><body><h1>Something is wrong</h1></body></html>";
    http(status, &[("content-type", "text/html; charset=utf-8")], page)
}

/// Go there.
#[must_use]
pub fn redirect(status: u16, location: &str) -> Act {
    http(status, &[("location", location)], "")
}

/// The head of an answer that streams until its connection ends.
#[must_use]
pub fn stream_head(content_type: &str) -> Act {
    let line = status_line(200);
    Act::say(format!(
        "{line}content-type: {content_type}\r\nconnection: close\r\n\r\n"
    ))
}
