//! A client over HTTP whose connection is cut again and again, in either direction, at any byte.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::{ModelServer, fraction};
use agentd_client::{Client, Push};
use agentd_protocol::{Block, Event, EventBody, ExportParams, SendParams};
use agentd_tests::{Access, Sse, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How often the connection is cut.
const CUTS: u64 = 1_000;
const SEED: u64 = 16;
const TASK: &str = "plan:cuts steps=20 tool=read;";

/// The number of bytes that a connection forwards.
#[derive(Clone, Copy)]
struct Limits {
    request: u64,
    answer: u64,
    /// Ends one direction and leaves the other one open; otherwise the connection is reset.
    half: bool,
}

impl Limits {
    /// The limits of the n-th connection; none after the last cut.
    fn of(n: u64) -> Self {
        if n >= CUTS {
            return Self {
                request: u64::MAX,
                answer: u64::MAX,
                half: true,
            };
        }
        let random = |which, below: f64| whole(fraction(SEED, n * 4 + which) * below);
        // Most connections end within the headers or the first frames; some forward a large frame.
        let most = match random(0, 16.0) {
            0 => 40_000.0,
            1..=4 => 2_500.0,
            _ => 600.0,
        };
        Self {
            // Most requests are shorter.
            request: random(1, 1_000.0),
            answer: random(2, most),
            half: random(3, 2.0) == 1,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number below a small positive one"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

/// Forwards connections, each up to its limits.
async fn relay(listener: TcpListener, to: String) {
    let mut open = JoinSet::new();
    for n in 0.. {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(&to).await.unwrap();
        open.spawn(pass(client, server, Limits::of(n)));
        while open.try_join_next().is_some() {}
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, limits: Limits) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
        if !limits.half {
            // Dropping it resets the connection.
            stream.set_zero_linger().unwrap();
        }
    }
    let ((from, to_client), (answers, to_server)) = (client.split(), server.split());
    let asked = copy(from, to_server, limits.request, limits.half);
    let answered = copy(answers, to_client, limits.answer, limits.half);
    if limits.half {
        tokio::join!(asked, answered);
    } else {
        tokio::select! {
            () = asked => {}
            () = answered => {}
        }
    }
}

async fn copy(from: ReadHalf<'_>, mut to: WriteHalf<'_>, limit: u64, close: bool) {
    // Either side may already be closed.
    let _ = tokio::io::copy(&mut from.take(limit), &mut to).await;
    if close {
        let _ = to.shutdown().await;
    }
}

/// Sends the session its next task.
async fn go_on(client: &Client, session: &str) {
    let params = SendParams {
        session: session.to_owned(),
        content: vec![Block::text(TASK)],
        ..SendParams::default()
    };
    client.send(&params).await.unwrap();
}

/// The log's lines.
async fn exported(client: &Client, session: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let params = ExportParams {
            session: session.to_owned(),
            after_seq: u64::try_from(lines.len()).unwrap(),
            limit: 0,
        };
        let page = client.export(&params).await.unwrap();
        lines.extend(page.lines);
        if u64::try_from(lines.len()).unwrap() >= page.head {
            return lines;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_a_client_that_is_cut_off_a_thousand_times_ends_with_the_log_byte_for_byte() {
    let server = ModelServer::start(false).await.unwrap();
    let config = format!("{YOLO}[http]\nlisten = \"127.0.0.1:0\"\nrequests_per_second = 100000\n");
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, TASK).await;
    let mut access = Access::of(&client).await.unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let near = listener.local_addr().unwrap().to_string();
    let relaying = tokio::spawn(relay(listener, std::mem::replace(&mut access.address, near)));
    let (mut seen, mut last, mut lost) = (Vec::new(), None, 0);
    'following: loop {
        if let Ok(mut sse) = within("an answer", Sse::open(&access, &session, last)).await {
            while let Some(push) = within("a frame", sse.next()).await {
                let Push::Event(stored) = push else { continue };
                let event: Event = serde_json::from_slice(&stored.json).unwrap();
                assert_eq!(sse.last, Some(event.seq));
                seen.push(stored.json);
                if matches!(event.body, EventBody::TurnFinished(_)) {
                    if lost == CUTS {
                        break 'following;
                    }
                    go_on(&client, &session).await;
                }
            }
            last = sse.last;
        }
        lost += 1;
    }
    relaying.abort();
    let log = exported(&client, &session).await;
    assert_eq!(seen.len(), log.len());
    assert!(seen.iter().zip(&log).all(|(seen, line)| seen == line));
}
