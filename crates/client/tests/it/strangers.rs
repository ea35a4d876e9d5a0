//! The client against missing sockets and misbehaving servers.

use agentd_client::{Client, ClientError, ConnectOptions};
use agentd_protocol::{AttachParams, Fault, FaultClass, Principal};
use agentd_wire::{
    ClientFrame, Decoder, FrameLimits, Limits, Request, ServerFrame, Welcome, decode_client, encode,
};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

const LIMITS: FrameLimits = FrameLimits::of_answers();

/// The server's end of one connection, driven by the test.
struct Server {
    stream: UnixStream,
    decoder: Decoder,
}

impl Server {
    async fn accept(listener: &UnixListener) -> Self {
        let (stream, _) = listener.accept().await.unwrap();
        Self {
            stream,
            decoder: Decoder::new(LIMITS),
        }
    }

    async fn welcome(listener: &UnixListener) -> Self {
        let mut server = Self::accept(listener).await;
        assert!(matches!(server.next().await, ClientFrame::Hello(_)));
        let limits = Limits {
            max_frame_bytes: 10_000,
            max_input_bytes: 1_000,
            max_in_flight: 4,
        };
        let (principal, scopes) = (Principal::user("ana"), Vec::new());
        server
            .send(&ServerFrame::Welcome(Welcome {
                protocol: 1,
                node: "n".into(),
                principal,
                scopes,
                limits,
            }))
            .await;
        server
    }

    async fn next(&mut self) -> ClientFrame {
        loop {
            if let Some(body) = self.decoder.next_frame().unwrap() {
                return decode_client(&body, LIMITS).unwrap();
            }
            let mut chunk = [0; 1_024];
            let length = self.stream.read(&mut chunk).await.unwrap();
            assert_ne!(length, 0, "the client closed");
            self.decoder.feed(&chunk[..length]);
        }
    }

    async fn request(&mut self) -> Request {
        match self.next().await {
            ClientFrame::Request(request) => request,
            ClientFrame::Hello(hello) => panic!("a second hello: {hello:?}"),
        }
    }

    async fn send(&mut self, frame: &ServerFrame) {
        self.stream
            .write_all(&encode(frame, LIMITS.max_frame_bytes).unwrap())
            .await
            .unwrap();
    }
}

async fn connect(path: &Path) -> Result<Client, ClientError> {
    Client::connect(path, &ConnectOptions::default()).await
}

fn class(error: ClientError) -> FaultClass {
    Fault::from(error).class
}

async fn ask(client: &Client, n: u64) -> Result<Value, ClientError> {
    client
        .call("session.get", &json!({ "n": n }), Duration::from_secs(60))
        .await
}

#[tokio::test]
async fn an_abandoned_attach_is_detached_whenever_its_answer_arrives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (client, mut server) = tokio::join!(connect(&path), Server::welcome(&listener));
    let client = client.unwrap();
    let attach = || {
        let client = client.clone();
        tokio::spawn(async move { client.attach(&AttachParams::default()).await })
    };
    let subscribed = |id, sub| ServerFrame::Ok {
        id,
        ok: json!({ "sub": sub, "head": 0 }),
    };
    let left = |request: Request| (request.method, request.params);
    let detach = |sub| ("session.detach".to_owned(), json!({ "sub": sub }));
    // The caller stops waiting before the answer.
    let caller = attach();
    let asked = server.request().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    server.send(&subscribed(asked.id, 7)).await;
    assert_eq!(left(server.request().await), detach(7));
    // The caller receives the subscription and drops it.
    let caller = attach();
    let asked = server.request().await;
    server.send(&subscribed(asked.id, 8)).await;
    drop(caller.await.unwrap().unwrap());
    assert_eq!(left(server.request().await), detach(8));
    // A refused request leaves no subscription to end.
    let caller = attach();
    let asked = server.request().await;
    caller.abort();
    let fault = Fault::not_found("unknown_session", "there is none");
    server
        .send(&ServerFrame::Fault {
            id: Some(asked.id),
            fault,
        })
        .await;
    let (answer, next) = tokio::join!(ask(&client, 1), async {
        let next = server.request().await;
        server
            .send(&ServerFrame::Ok {
                id: next.id,
                ok: json!(1),
            })
            .await;
        next.method
    });
    assert_eq!((answer.unwrap(), next.as_str()), (json!(1), "session.get"));
}

#[tokio::test]
async fn a_missing_and_a_dead_socket_are_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    assert_eq!(class(connect(&path).await.unwrap_err()), FaultClass::Unavailable);
    drop(UnixListener::bind(&path).unwrap());
    let fault = Fault::from(connect(&path).await.unwrap_err());
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Unavailable, "daemon_unreachable")
    );
}

#[tokio::test]
async fn a_silent_server_is_unavailable_after_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    tokio::time::pause();
    assert_eq!(class(connect(&path).await.unwrap_err()), FaultClass::Unavailable);
}

#[tokio::test]
async fn a_refusal_arrives_even_if_the_server_closes_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let refuse = async {
        let mut server = Server::accept(&listener).await;
        let fault = Fault::version("protocol_version", "the client is too old");
        server.send(&ServerFrame::Fault { id: None, fault }).await;
    };
    let (client, ()) = tokio::join!(connect(&path), refuse);
    assert_eq!(class(client.unwrap_err()), FaultClass::Version);
}

#[tokio::test]
async fn answers_match_their_requests_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (client, mut server) = tokio::join!(connect(&path), Server::welcome(&listener));
    let client = client.unwrap();
    let serve = async {
        let mut requests = Vec::new();
        for _ in 0..3 {
            requests.push(server.request().await);
        }
        for Request { id, params, .. } in requests.into_iter().rev() {
            server.send(&ServerFrame::Ok { id, ok: params }).await;
        }
        server
    };
    let (a, b, c, server) = tokio::join!(ask(&client, 1), ask(&client, 2), ask(&client, 3), serve);
    assert_eq!(
        [a.unwrap(), b.unwrap(), c.unwrap()],
        [json!({ "n": 1 }), json!({ "n": 2 }), json!({ "n": 3 })]
    );
    drop(server);
}

#[tokio::test]
async fn a_missing_answer_is_a_timeout_and_a_late_one_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (client, mut server) = tokio::join!(connect(&path), Server::welcome(&listener));
    let client = client.unwrap();
    tokio::time::pause();
    assert_eq!(class(ask(&client, 1).await.unwrap_err()), FaultClass::Timeout);
    tokio::time::resume();
    let late = server.request().await.id;
    server
        .send(&ServerFrame::Ok {
            id: late,
            ok: json!("late"),
        })
        .await;
    let serve = async {
        let id = server.request().await.id;
        server
            .send(&ServerFrame::Ok {
                id,
                ok: json!("good"),
            })
            .await;
    };
    let (answer, ()) = tokio::join!(ask(&client, 2), serve);
    assert_eq!(answer.unwrap(), json!("good"));
}

#[tokio::test]
async fn a_lost_connection_ends_every_call() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (client, mut server) = tokio::join!(connect(&path), Server::welcome(&listener));
    let client = client.unwrap();
    let die = async {
        server.request().await;
        drop(server);
    };
    let (answer, ()) = tokio::join!(ask(&client, 1), die);
    assert_eq!(class(answer.unwrap_err()), FaultClass::Unavailable);
    assert_eq!(class(ask(&client, 2).await.unwrap_err()), FaultClass::Unavailable);
}

#[tokio::test]
async fn an_invalid_frame_from_a_server_closes_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (client, mut server) = tokio::join!(connect(&path), Server::welcome(&listener));
    let client = client.unwrap();
    let junk = async {
        server.request().await;
        server.stream.write_all(&[0, 0, 0, 1, 0x90]).await.unwrap();
    };
    let (answer, ()) = tokio::join!(ask(&client, 1), junk);
    assert!(matches!(answer.unwrap_err(), ClientError::Wire(_)));
    assert!(client.lost().is_some());
}

#[tokio::test]
async fn a_request_too_large_for_the_server_is_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (client, _server) = tokio::join!(connect(&path), Server::welcome(&listener));
    let client = client.unwrap();
    let params = json!({ "x": "y".repeat(20_000) });
    let error = client
        .call::<_, Value>("input.send", &params, Duration::from_secs(60))
        .await
        .unwrap_err();
    assert_eq!(Fault::from(error).code, "frame_too_large");
    assert_eq!(client.lost(), None);
}
