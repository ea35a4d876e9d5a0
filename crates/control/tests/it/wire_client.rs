//! A client that builds frames by hand, so that it can misbehave.

use crate::harness::Harness;
use agentd_control::{Connections, bind, serve};
use agentd_settings::Settings;
use agentd_wire::{
    ClientFrame, Decoder, FrameLimits, Hello, Push, Request, ServerFrame, VersionRange, decode, encode,
};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const LIMITS: FrameLimits = FrameLimits::of_answers();

/// A daemon's socket.
pub(crate) struct Server {
    pub(crate) h: Harness,
    pub(crate) connections: Arc<Connections>,
    pub(crate) path: PathBuf,
    pub(crate) shutdown: watch::Sender<bool>,
    pub(crate) task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(change: impl FnOnce(&mut Settings)) -> Self {
        let h = Harness::with(change).await;
        let path = h.dir.path().join("run/agentd.sock");
        let listener = bind(&path).await.unwrap();
        let (shutdown, stop) = watch::channel(false);
        let connections = Arc::new(Connections::new(Arc::clone(&h.api)));
        let task = tokio::spawn(serve(listener, Arc::clone(&connections), stop));
        Self {
            h,
            connections,
            path,
            shutdown,
            task,
        }
    }

    /// A connection without a hello.
    pub(crate) async fn silent(&self) -> Raw {
        let stream = UnixStream::connect(&self.path).await.unwrap();
        Raw {
            stream,
            decoder: Decoder::new(LIMITS),
        }
    }

    /// A connection after the welcome.
    pub(crate) async fn client(&self) -> Raw {
        let mut raw = self.silent().await;
        raw.hello(VersionRange::OURS).await;
        match raw.next().await {
            Some(ServerFrame::Welcome(_)) => raw,
            other => panic!("no welcome: {other:?}"),
        }
    }
}

pub(crate) struct Raw<S = UnixStream> {
    pub(crate) stream: S,
    decoder: Decoder,
}

impl Raw<DuplexStream> {
    pub(crate) const fn over(stream: DuplexStream) -> Self {
        Self {
            stream,
            decoder: Decoder::new(LIMITS),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub(crate) async fn hello(&mut self, protocol: VersionRange) {
        let hello = Hello {
            protocol,
            client: "test/1".into(),
            token: None,
        };
        self.send(&ClientFrame::Hello(hello)).await;
    }

    pub(crate) async fn send(&mut self, frame: &ClientFrame) {
        self.stream
            .write_all(&encode(frame, 64 << 20).unwrap())
            .await
            .unwrap();
    }

    pub(crate) async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(&ClientFrame::Request(Request {
            id,
            method: method.into(),
            params,
        }))
        .await;
    }

    /// The next frame; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<ServerFrame> {
        loop {
            if let Some(body) = self.decoder.next_frame().unwrap() {
                return Some(decode(&body, LIMITS).unwrap());
            }
            let mut chunk = [0; 4_096];
            let read = timeout(Duration::from_secs(60), self.stream.read(&mut chunk))
                .await
                .unwrap();
            match read {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.decoder.feed(&chunk[..length]),
            }
        }
    }

    /// The answer to a request; skips all frames pushed meanwhile.
    pub(crate) async fn call(&mut self, id: u64, method: &str, params: Value) -> ServerFrame {
        self.request(id, method, params).await;
        loop {
            match self.next().await.unwrap() {
                ServerFrame::Push { .. } => {}
                answer => return answer,
            }
        }
    }

    pub(crate) async fn ok(&mut self, method: &str, params: Value) -> Value {
        match self.call(1, method, params).await {
            ServerFrame::Ok { id: 1, ok } => ok,
            other => panic!("not ok: {other:?}"),
        }
    }

    pub(crate) async fn push(&mut self) -> Push {
        match self.next().await {
            Some(ServerFrame::Push { push, .. }) => push,
            other => panic!("not a push: {other:?}"),
        }
    }

    /// The class-independent code of the last fault before the stream ends.
    pub(crate) async fn last_word(&mut self) -> Option<String> {
        let word = match self.next().await? {
            ServerFrame::Fault { id: None, fault } => fault.code,
            other => panic!("not a last word: {other:?}"),
        };
        assert_eq!(self.next().await, None);
        Some(word)
    }
}
