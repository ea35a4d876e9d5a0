//! The control protocol over WebSocket.

use crate::server::Http;
use agentd_wire::{ClientFrame, FrameLimits, Hello, Request, ServerFrame, VersionRange, decode, encode};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(http: &Http) -> Self {
        let mut request = format!("ws://{}/v1/wire", http.address)
            .into_client_request()
            .unwrap();
        let token = format!("Bearer {}", http.ana).parse().unwrap();
        request.headers_mut().insert("authorization", token);
        let stream = TcpStream::connect(http.address).await.unwrap();
        let mut socket = Self(client_async(request, stream).await.unwrap().0);
        let hello = Hello {
            protocol: VersionRange::OURS,
            client: "test/1".into(),
            token: None,
        };
        socket.send(&ClientFrame::Hello(hello)).await;
        let ServerFrame::Welcome(welcome) = socket.next().await.unwrap() else {
            panic!("no welcome");
        };
        assert_eq!(welcome.principal.0, "token:ana");
        socket
    }

    async fn send(&mut self, frame: &ClientFrame) {
        let bytes = encode(frame, 64 << 20).unwrap().split_off(4);
        self.0.send(Message::Binary(bytes.into())).await.unwrap();
    }

    async fn request(&mut self, method: &str, params: Value) -> ServerFrame {
        let method = method.to_owned();
        self.send(&ClientFrame::Request(Request {
            id: 1,
            method,
            params,
        }))
        .await;
        self.next().await.unwrap()
    }

    async fn next(&mut self) -> Option<ServerFrame> {
        loop {
            match self.0.next().await?.ok()? {
                Message::Binary(body) => return Some(decode(&body, FrameLimits::of_answers()).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn the_protocol_of_the_socket_runs_over_websocket() {
    let http = Http::start(|_| {}).await;
    let session = http.h.session("one").await;
    let mut socket = Socket::open(&http).await;
    let got = socket.request("session.get", json!({"session": session})).await;
    assert!(
        matches!(&got, ServerFrame::Ok { ok, .. } if ok["name"] == "one"),
        "{got:?}"
    );
    let attached = socket
        .request("session.attach", json!({"session": session}))
        .await;
    assert!(matches!(attached, ServerFrame::Ok { .. }), "{attached:?}");
    assert!(matches!(socket.next().await, Some(ServerFrame::Push { .. })));
    let large = "x".repeat(300_000);
    let refused = socket.request("session.get", json!({"session": large})).await;
    assert!(matches!(
        refused,
        ServerFrame::Push { .. } | ServerFrame::Fault { .. }
    ));
    http.shutdown.send_replace(true);
    let mut last = None;
    while let Some(frame) = socket.next().await {
        last = Some(frame);
    }
    assert!(
        matches!(&last, Some(ServerFrame::Fault { id: None, fault }) if fault.code == "stopping"),
        "{last:?}"
    );
}

#[tokio::test]
async fn an_invalid_frame_gets_a_fault_and_ends_the_connection() {
    let http = Http::start(|_| {}).await;
    for junk in [
        Message::text("{}"),
        Message::binary(vec![0xc1; 9]),
        Message::binary(Vec::new()),
    ] {
        let mut socket = Socket::open(&http).await;
        socket.0.send(junk).await.unwrap();
        let refused = socket.next().await;
        assert!(
            matches!(&refused, Some(ServerFrame::Fault { fault, .. }) if fault.code == "malformed_frame"),
            "{refused:?}"
        );
        assert_eq!(socket.next().await, None);
    }
}

#[tokio::test]
async fn a_revoked_token_ends_its_connection() {
    let http = Http::start(|_| {}).await;
    let mut socket = Socket::open(&http).await;
    http.h.call("token.revoke", json!({"name": "ana"})).await.unwrap();
    let last = socket.next().await;
    assert!(
        matches!(&last, Some(ServerFrame::Fault { id: None, fault }) if fault.code == "token_ended"),
        "{last:?}"
    );
    assert_eq!(socket.next().await, None);
}
