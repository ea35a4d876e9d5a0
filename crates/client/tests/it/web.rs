//! The client over WebSocket: a bridge to the real control server stands in for the daemon's HTTP side.

use crate::daemon::Daemon;
use agentd_client::{Client, ClientError, ConnectOptions, Push, Remote};
use agentd_protocol::{AttachParams, ClearToken, CreateParams, FaultClass, ListParams};
use futures_util::{SinkExt as _, StreamExt as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;

const TOKEN: &str = "agentd_test";

/// Takes the token, then carries frames between a WebSocket and the control socket.
#[expect(clippy::result_large_err, reason = "the library's type")]
async fn carry(stream: TcpStream, socket: PathBuf) {
    let check = |request: &Request, response: Response| {
        let given = request
            .headers()
            .get("authorization")
            .map(|value| value.to_str().unwrap());
        if given == Some("Bearer agentd_test") && request.uri().path() == "/v1/wire" {
            return Ok(response);
        }
        let problem =
            r#"{"class":"denied","code":"bad_token","detail":"the token is not valid","hint":"ask"}"#;
        let mut refusal = ErrorResponse::new(Some(problem.to_owned()));
        *refusal.status_mut() = StatusCode::UNAUTHORIZED;
        Err(refusal)
    };
    let Ok(web) = tokio_tungstenite::accept_hdr_async(stream, check).await else {
        return;
    };
    let (mut to_client, mut from_client) = web.split();
    let (mut from_daemon, mut to_daemon) = UnixStream::connect(socket).await.unwrap().into_split();
    let down = async {
        while let Ok(length) = from_daemon.read_u32().await {
            let mut body = vec![0; length as usize];
            from_daemon.read_exact(&mut body).await.unwrap();
            to_client.send(Message::Binary(body.into())).await.unwrap();
        }
    };
    let up = async {
        while let Some(Ok(message)) = from_client.next().await {
            if let Message::Binary(body) = message {
                to_daemon
                    .write_u32(u32::try_from(body.len()).unwrap())
                    .await
                    .unwrap();
                to_daemon.write_all(&body).await.unwrap();
            }
        }
    };
    tokio::select! { () = down => {}, () = up => {} }
}

/// Accepts connections until dropped.
async fn bridge(daemon: &Daemon) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, socket) = (listener.local_addr().unwrap(), daemon.path.clone());
    let task = tokio::spawn(async move {
        let mut carried = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            carried.spawn(carry(stream, socket.clone()));
        }
    });
    (address, task)
}

async fn connect(address: SocketAddr, token: &str) -> Result<Client, ClientError> {
    let remote = Remote::new(&format!("http://{address}"), ClearToken::read(token), None).unwrap();
    let options = ConnectOptions {
        deadline: Duration::from_secs(60),
        ..ConnectOptions::default()
    };
    Client::connect_remote(&remote, &options).await
}

#[tokio::test]
async fn i2_the_same_frames_go_over_a_websocket() {
    let daemon = Daemon::start(|_| {}).await;
    let (address, bridge) = bridge(&daemon).await;
    let client = connect(address, TOKEN).await.unwrap();
    assert_eq!(client.welcome().node, "a1");
    let params = CreateParams {
        workdir: daemon.h.workdir(),
        title: Some("one".into()),
        ..CreateParams::default()
    };
    let created = client.create(&params).await.unwrap();
    assert_eq!(client.list(&ListParams::default()).await.unwrap().len(), 1);
    let attach = AttachParams {
        session: "one".into(),
        ..AttachParams::default()
    };
    let mut live = client.attach(&attach).await.unwrap();
    assert!(matches!(live.next().await, Some(Push::Event(_))));
    assert!(matches!(live.next().await, Some(Push::Synced(_))));
    daemon.h.log.note(created.session, &"x".repeat(1 << 20)).await;
    let Some(Push::Event(event)) = live.next().await else {
        panic!("no event")
    };
    assert!(event.json.len() > 1 << 20, "a large frame comes whole");
    bridge.abort();
    assert!(live.next().await.is_none());
    let lost = client.lost().unwrap();
    assert_eq!(
        (lost.class, lost.code.as_str()),
        (FaultClass::Unavailable, "connection_lost")
    );
}

#[tokio::test]
async fn a_refused_token_differs_from_a_missing_daemon() {
    let daemon = Daemon::start(|_| {}).await;
    let (address, bridge) = bridge(&daemon).await;
    let refused = connect(address, "agentd_other").await.unwrap_err();
    let ClientError::Refused(fault) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (fault.code.as_str(), fault.hint.as_deref()),
        ("bad_token", Some("ask"))
    );
    bridge.abort();
    let _ = bridge.await;
    let gone = connect(address, TOKEN).await.unwrap_err();
    assert!(matches!(gone, ClientError::Unreachable { .. }), "{gone:?}");
    assert!(!format!("{gone:?} {gone}").contains(TOKEN), "I8: {gone:?}");
}
