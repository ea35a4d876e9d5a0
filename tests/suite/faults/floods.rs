//! Clients that connect endlessly, die in the middle of a frame, or request more than the daemon can answer.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::{Client, ClientError, Push};
use agentd_protocol::{Block, Delivery, EndReason, Event, FaultClass, SendParams};
use agentd_tests::{Access, Daemon, Follower, Way, check_log, status_of, within};
use serde_json::Value;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};

/// Capacity for the requests of a viewer that connects again and again.
const ROOM: &str = "[http]\nlisten = \"127.0.0.1:0\"\nrequests_per_second = 100000\n";

/// Begins a request and disconnects.
async fn die_in_the_middle(way: &Way) {
    match way {
        Way::Socket(socket) => {
            let mut stream = UnixStream::connect(socket).await.unwrap();
            stream.write_all(&[0, 0, 1, 0, 0x82]).await.unwrap();
        }
        Way::Http(access) => {
            let mut stream = TcpStream::connect(&access.address).await.unwrap();
            stream.write_all(b"GET /v1/events HTTP/1.1\r\nHo").await.unwrap();
        }
    }
}

async fn connect_a_thousand_times(daemon: &Daemon, way: &Way) {
    const TIMES: usize = 1_000;
    let client = daemon.client().await;
    let session = session(daemon, &client, "plan:r steps=40 command=echo_{n}_>>_marks;").await;
    let mut seen = Vec::<Event>::new();
    for n in 0..TIMES {
        if n % 3 == 0 {
            die_in_the_middle(way).await;
            continue;
        }
        let last = seen.last().map(|event| event.seq);
        let mut source = way.source(&session, last).await.unwrap();
        while let Some(push) = within("a frame", source.next()).await {
            match push {
                Push::Event(stored) => seen.push(serde_json::from_slice(&stored.json).unwrap()),
                Push::Synced(_) => break,
                _ => {}
            }
        }
    }
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let log = check_log(&client, &session).await;
    assert!(
        log.starts_with(&seen),
        "I2: over all connections each event came once and in order"
    );
    let marks = std::fs::read_to_string(format!("{}/marks", daemon.workdir("project"))).unwrap();
    assert_eq!(marks.lines().count(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_i6_a_viewer_that_connects_a_thousand_times_costs_the_agent_nothing() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    connect_a_thousand_times(&daemon, &daemon.over_socket()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_i6_a_viewer_over_http_that_connects_a_thousand_times_costs_the_agent_nothing() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, &format!("{YOLO}{ROOM}")).await;
    connect_a_thousand_times(&daemon, &daemon.over_http().await).await;
}

/// One of the clients of a flood.
#[derive(Clone)]
enum Sender {
    Socket(Client),
    Http(reqwest::Client, Access),
}

impl Sender {
    fn over_http(access: Access) -> Self {
        Self::Http(
            agentd_provider::http_client(Duration::from_secs(60)).unwrap(),
            access,
        )
    }

    /// Sends an input; returns the class of the fault if it is refused.
    async fn send(&self, params: &SendParams) -> Result<(), FaultClass> {
        match self {
            Self::Socket(client) => match client.send(params).await {
                Ok(_) => Ok(()),
                Err(ClientError::Refused(fault)) => Err(fault.class),
                Err(error) => unreachable!("{error}"),
            },
            Self::Http(client, access) => {
                let SendParams { session, .. } = params;
                let url = format!("http://{}/v1/sessions/{session}/inputs", access.address);
                let mut body = serde_json::to_value(params).unwrap();
                body.as_object_mut().unwrap().remove("session");
                let request = client.post(url).bearer_auth(&access.token);
                let request = request.header("content-type", "application/json");
                let answer = request.body(body.to_string()).send().await.unwrap();
                let status = answer.status().as_u16();
                let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
                match status {
                    201 => Ok(()),
                    422 | 429 => Err(serde_json::from_value(body.get("class").cloned().unwrap()).unwrap()),
                    _ => unreachable!("{status}: {body}"),
                }
            }
        }
    }
}

/// Sends more than its queue can hold to a session whose model hangs.
async fn flood(daemon: &Daemon, sender: &Sender, each: usize) {
    const CLIENTS: usize = 8;
    const ROOM_KIB: u64 = 96 << 10;
    let client = daemon.client().await;
    let busy = session(daemon, &client, "plan:f steps=1 hang=0;").await;
    Follower::attach(&client, &busy)
        .await
        .until_text("Thinking")
        .await;
    let before = status_of(daemon.pid(), "VmRSS");
    let mut flood = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let sender = match sender {
            Sender::Socket(_) => Sender::Socket(daemon.client().await),
            Sender::Http(..) => sender.clone(),
        };
        let params = SendParams {
            session: busy.clone(),
            content: vec![Block::text("more ".repeat(100))],
            delivery: Some(Delivery::Queue),
            ..SendParams::default()
        };
        flood.spawn(async move {
            let mut refused = 0;
            for _ in 0..each / 50 {
                let many = (0..50).map(|_| sender.send(&params));
                for answer in futures_util::future::join_all(many).await {
                    if let Err(class) = answer {
                        assert!(matches!(class, FaultClass::Busy | FaultClass::Limit), "{class:?}");
                        refused += 1;
                    }
                }
            }
            refused
        });
    }
    let mut refused = 0;
    while let Some(done) = flood.join_next().await {
        refused += done.unwrap();
    }
    assert!(refused > CLIENTS * each * 9 / 10, "{refused} were refused");
    let after = status_of(daemon.pid(), "VmRSS");
    assert!(after < before + ROOM_KIB, "{before} KiB became {after} KiB");
    // The other sessions continue, and so does this one.
    let other = session(daemon, &client, "plan:o steps=1 command=true;").await;
    assert_eq!(
        Follower::attach(&client, &other)
            .await
            .turn_finished(1)
            .await
            .reason,
        EndReason::Completed
    );
    check_log(&client, &busy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_flood_of_commands_for_one_session_is_refused_and_memory_stays_flat() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    flood(&daemon, &Sender::Socket(daemon.client().await), 4_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_flood_of_one_token_over_http_is_refused_and_other_tokens_are_not() {
    let server = ModelServer::start(false).await.unwrap();
    let config = format!("{YOLO}[http]\nlisten = \"127.0.0.1:0\"\nrequests_per_second = 10\n");
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let [loud, quiet] = [(); 2].map(|()| Access::of(&client));
    let (loud, quiet) = (Sender::over_http(loud.await.unwrap()), quiet.await.unwrap());
    let flood = flood(&daemon, &loud, 1_000);
    let beside = async {
        // A token within its rate is served while the other one is not.
        let session = session(&daemon, &client, "plan:q steps=3 command=true;").await;
        let mut follower = Way::Http(quiet.clone()).follow(&session).await;
        assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
        let more = SendParams {
            session,
            content: vec![Block::text("plan:q2 steps=3 command=true;")],
            ..SendParams::default()
        };
        Sender::over_http(quiet).send(&more).await.unwrap();
        assert_eq!(follower.turn_finished(2).await.reason, EndReason::Completed);
    };
    tokio::join!(flood, beside);
}
