//! Requests and event streams over plain HTTP/1.1. Does as little as possible, since it runs next to what it measures.

use crate::daemon::Bench;
use agentd_protocol::{CreateTokenParams, PermissionMode};
use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The maximum size of a read.
const CHUNK: usize = 16 << 10;

/// Where the daemon serves HTTP, with a token.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    address: String,
    token: String,
}

impl Server {
    /// The server of the daemon under load.
    pub(crate) async fn of(bench: &Bench) -> Result<Self> {
        let url = bench.client.status().await?.http;
        let address = url.strip_prefix("http://").context("HTTP is off")?.to_owned();
        let params = CreateTokenParams {
            name: "bench".to_owned(),
            scopes: ["read", "steer"].map(str::to_owned).to_vec(),
            dirs: vec!["/".to_owned()],
            mode: Some(PermissionMode::Yolo),
            ..CreateTokenParams::default()
        };
        let token = bench.client.create_token(&params).await?;
        Ok(Self {
            address,
            token: token.token.expose().to_owned(),
        })
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> Result<Line> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(Line {
            stream,
            read: Vec::new(),
            token: self.token.clone(),
        })
    }

    /// Opens a stream of events and waits until it has caught up.
    pub(crate) async fn follow(&self, path: &str) -> Result<Line> {
        let mut line = self.connect().await?;
        line.send("GET", path, "Accept: text/event-stream\r\n", "")
            .await?;
        line.until(&[b"event: synced"]).await?;
        Ok(line)
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    read: Vec<u8>,
    token: String,
}

impl Line {
    /// Sends a request; returns the body of its answer.
    pub(crate) async fn ask(&mut self, verb: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        self.send(verb, path, "Content-Type: application/json\r\n", body)
            .await?;
        let head = self.part(b"\r\n\r\n").await?;
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|length| length.split("\r\n").next());
        let length: usize = length.context("an answer has no length")?.parse()?;
        while self.read.len() < length {
            self.more().await?;
        }
        let rest = self.read.split_off(length);
        let body = std::mem::replace(&mut self.read, rest);
        if !head.starts_with("http/1.1 20") {
            bail!("{verb} {path}: {head}{}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }

    async fn send(&mut self, verb: &str, path: &str, headers: &str, body: &str) -> Result<()> {
        let request = format!(
            "{verb} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            self.token,
            body.len()
        );
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    /// Reads frames until one that contains one of these.
    pub(crate) async fn until(&mut self, wanted: &[&[u8]]) -> Result<()> {
        loop {
            let frame = self.part(b"\n\n").await?;
            if wanted.iter().any(|wanted| memmem::find(&frame, wanted).is_some()) {
                return Ok(());
            }
        }
    }

    /// Counts the ends of frames, until the connection ends. It does less than a real viewer, who would run on another
    /// machine.
    pub(crate) async fn count(mut self, seen: Arc<AtomicU64>) {
        let mut last = b' ';
        loop {
            let mut ends = memmem::find_iter(&self.read, b"\n\n").count();
            ends += usize::from(last == b'\n' && self.read.first() == Some(&b'\n'));
            seen.fetch_add(u64::try_from(ends).unwrap_or(u64::MAX), Ordering::Relaxed);
            last = self.read.last().copied().unwrap_or(last);
            self.read.clear();
            if self.more().await.is_err() {
                return;
            }
        }
    }

    /// Everything up to this end, with it.
    async fn part(&mut self, end: &[u8]) -> Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let unsearched = self.read.get(searched..).unwrap_or_default();
            if let Some(at) = memmem::find(unsearched, end) {
                let rest = self.read.split_off(searched + at + end.len());
                return Ok(std::mem::replace(&mut self.read, rest));
            }
            searched = self.read.len().saturating_sub(end.len());
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<()> {
        self.read.reserve(CHUNK);
        let length = self.stream.read_buf(&mut self.read).await?;
        ensure!(
            length > 0,
            "the daemon closed a connection after {:?}",
            String::from_utf8_lossy(&self.read)
        );
        Ok(())
    }
}
