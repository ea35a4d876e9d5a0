//! A stream of server-sent events, read from a connection of its own.

use agentd_client::{Push, StoredEvent};
use serde::de::DeserializeOwned;
use std::io::{Error, ErrorKind, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

/// The receive buffer of a stream: small, so that the daemon soon notices a viewer who stalls.
const RECEIVED: u32 = 8 << 10;

/// Where a daemon serves HTTP, and a token for it.
#[derive(Debug, Clone)]
pub struct Access {
    /// `ADDRESS:PORT`.
    pub address: String,
    /// A token that reads and steers all sessions.
    pub token: String,
}

/// An open stream of a session's events.
#[derive(Debug)]
pub struct Sse {
    stream: BufReader<TcpStream>,
    /// The id of the last event.
    pub last: Option<u64>,
}

impl Sse {
    /// Follows a session, with deltas, after this event.
    ///
    /// # Errors
    /// The connection broke before the stream began, or the daemon refused.
    pub async fn open(access: &Access, session: &str, after: Option<u64>) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(RECEIVED)?;
        let address = access.address.parse().map_err(Error::other)?;
        let mut stream = BufReader::new(socket.connect(address).await?);
        let last = after.map(|after| format!("Last-Event-ID: {after}\r\n"));
        let request = format!(
            "GET /v1/sessions/{session}/events?deltas=true HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {}\r\nAccept: text/event-stream\r\n{}\r\n",
            access.token,
            last.unwrap_or_default()
        );
        stream.write_all(request.as_bytes()).await?;
        let status = line(&mut stream).await?;
        if status != "HTTP/1.1 200 OK\r\n" {
            return Err(Error::other(status));
        }
        Ok(Self { stream, last: after })
    }

    /// The next frame; `None` at the end. A frame without its end is none, so the client asks for it again.
    pub async fn next(&mut self) -> Option<Push> {
        let (mut name, mut id, mut data) = (String::new(), None, None);
        loop {
            // Headers and the sizes of chunks end with CRLF, and each chunk is a whole number of frames.
            let line = line(&mut self.stream).await.ok()?;
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", event)) => event.clone_into(&mut name),
                Some(("id", number)) => id = number.parse().ok(),
                Some(("data", text)) => data = Some(text.to_owned()),
                _ => {}
            }
            let Some(data) = data.take_if(|_| line == "\n") else {
                continue;
            };
            self.last = id.or(self.last);
            return Some(match name.as_str() {
                "" => Push::Event(StoredEvent {
                    json: data.into(),
                    cursor: None,
                }),
                "delta" => Push::Delta(read(&data)),
                "synced" => Push::Synced(read(&data)),
                "lagged" => Push::Lagged(read(&data)),
                "ended" => Push::Ended(read(&data)),
                _ => Push::Unknown,
            });
        }
    }
}

fn read<T: DeserializeOwned>(data: &str) -> T {
    serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"))
}

/// A whole line with its end.
async fn line(stream: &mut BufReader<TcpStream>) -> Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    if line.ends_with('\n') {
        Ok(line)
    } else {
        Err(Error::from(ErrorKind::UnexpectedEof))
    }
}
