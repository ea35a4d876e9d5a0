//! Inputs that meet a running turn: they steer it, wait for the next one, replace it, or are taken back; and pauses.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::{Client, Push};
use agentd_protocol::{
    Block, CancelInputParams, Delivery, Delta, EndReason, EventBody, InputId, RunState, SendParams,
};
use agentd_tests::{Daemon, Follower, check_log, within};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// A command that ends when [`open_gate`] was called.
const WAITS: &str = "steps=1 command=sh_wait.sh;";

fn gate(daemon: &Daemon) {
    let dir = daemon.workdir("project");
    std::fs::write(
        format!("{dir}/wait.sh"),
        "until test -e go; do sleep 0.02; done\n",
    )
    .unwrap();
}

fn open_gate(daemon: &Daemon) {
    std::fs::write(format!("{}/go", daemon.workdir("project")), "").unwrap();
}

async fn send(client: &Client, session: &str, text: &str, delivery: Delivery) -> InputId {
    let params = SendParams {
        session: session.to_owned(),
        content: vec![Block::text(text)],
        delivery: Some(delivery),
        ..SendParams::default()
    };
    client.send(&params).await.unwrap().input
}

async fn tool_runs(follower: &mut Follower) {
    follower
        .until("the tool runs", |body| matches!(body, EventBody::ToolStarted(_)))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_steer_joins_the_next_call_a_queued_input_the_next_turn_and_a_cancelled_one_none() {
    let server = ModelServer::start(true).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    gate(&daemon);
    let session = session(&daemon, &client, &format!("plan:q {WAITS}")).await;
    let mut follower = Follower::attach(&client, &session).await;
    tool_runs(&mut follower).await;
    let steer = send(&client, &session, "mind the umlauts", Delivery::Steer).await;
    let queued = daemon
        .agentctl(&["send", "-q", "--queue", &session, "plan:later text=Second.;"])
        .await;
    assert_eq!(queued.code, Some(0), "{}", queued.stderr);
    let queued: InputId = queued.stdout.trim().parse().expect("the input's id alone");
    let never = send(&client, &session, "forget the tests", Delivery::Queue).await;
    let waiting: Vec<_> = client
        .list_inputs(&session)
        .await
        .unwrap()
        .into_iter()
        .map(|input| (input.input, input.delivery, input.preview))
        .collect();
    assert_eq!(
        waiting,
        [
            (steer, Delivery::Steer, "mind the umlauts".to_owned()),
            (queued, Delivery::Queue, "plan:later text=Second.;".to_owned()),
            (never, Delivery::Queue, "forget the tests".to_owned()),
        ]
    );
    let take_back = CancelInputParams {
        session: session.clone(),
        input: Some(never),
    };
    client.cancel_input(&take_back).await.unwrap();
    assert_eq!(client.list_inputs(&session).await.unwrap().len(), 2);
    open_gate(&daemon);
    assert_eq!(follower.turn_finished(1).await.text, "All done.");
    assert_eq!(follower.turn_finished(2).await.text, "Second.");
    let bodies: Vec<String> = server
        .bodies()
        .iter()
        .map(|body| String::from_utf8_lossy(body).into_owned())
        .collect();
    let holds = |text: &str| -> Vec<bool> { bodies.iter().map(|body| body.contains(text)).collect() };
    assert_eq!(holds("mind the umlauts"), [false, true, true]);
    assert_eq!(holds("plan:later"), [false, false, true]);
    assert_eq!(holds("forget the tests"), [false, false, false]);
    let late = client.cancel_input(&take_back).await.unwrap_err();
    assert_eq!(
        agentd_protocol::Fault::from(late).class,
        agentd_protocol::FaultClass::Conflict
    );
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_queued_input_gets_the_answer_to_it_alone_on_stdout() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    gate(&daemon);
    let session = session(&daemon, &client, &format!("plan:w {WAITS}")).await;
    let mut follower = Follower::attach(&client, &session).await;
    tool_runs(&mut follower).await;
    let waits = daemon
        .agentctl_command(&["send", "--queue", "--wait", &session, "plan:own text=Second.;"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    follower
        .until(
            "the message is accepted",
            |body| matches!(body, EventBody::InputAccepted(input) if input.delivery == Delivery::Queue),
        )
        .await;
    // The running turn's answer comes after the message, so the command sees it.
    open_gate(&daemon);
    assert_eq!(follower.turn_finished(1).await.text, "All done.");
    let waited = within("it ends", waits.wait_with_output()).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&waited.stdout), "Second.\n");
    assert_eq!(waited.status.code(), Some(0));
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_running_turn_and_starts_its_own() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:i hang=0;").await;
    let mut follower = Follower::attach(&client, &session).await;
    follower.until_text("about it").await;
    let sent = daemon
        .agentctl(&[
            "send",
            "--interrupt",
            "--wait",
            &session,
            "plan:new text=Replaced.;",
        ])
        .await;
    assert_eq!(
        (sent.code, sent.stdout.as_str()),
        (Some(0), "Replaced.\n"),
        "{}",
        sent.stderr
    );
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Cancelled);
    let second = follower.turn_finished(2).await;
    assert_eq!(
        (second.reason, second.text.as_str()),
        (EndReason::Completed, "Replaced.")
    );
    let dropped = server.until(|seen| seen.open == 0 && seen.dropped >= 1);
    within("the first call is dropped", dropped).await;
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_session_asks_no_model_until_it_is_resumed() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    gate(&daemon);
    let session = session(&daemon, &client, &format!("plan:p {WAITS}")).await;
    let mut follower = Follower::attach(&client, &session).await;
    tool_runs(&mut follower).await;
    let paused = daemon.agentctl(&["pause", &session, "--reason", "lunch"]).await;
    assert_eq!(paused.code, Some(0), "{}", paused.stderr);
    open_gate(&daemon);
    loop {
        let status = match follower.next().await.expect("the subscription goes on") {
            Push::Delta(Delta::Status(status)) => status,
            Push::Synced(synced) => synced.status,
            _ => continue,
        };
        if status.state == RunState::Paused {
            break;
        }
    }
    assert!(
        matches!(
            follower.events.last().map(|event| &event.body),
            Some(EventBody::ToolFinished(_))
        ),
        "the command was let end, and its result is durable before the state is told"
    );
    assert_eq!(client.get(&session).await.unwrap().status.state, RunState::Paused);
    assert_eq!(server.seen().requests, 1);
    assert_eq!(daemon.agentctl(&["resume", &session]).await.code, Some(0));
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_takes_a_waiting_message_back_and_leaves_the_turn_of_another_alone() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    gate(&daemon);
    let session = session(&daemon, &client, &format!("plan:c {WAITS}")).await;
    let mut follower = Follower::attach(&client, &session).await;
    tool_runs(&mut follower).await;
    let mut waits = daemon
        .agentctl_command(&[
            "send",
            "--queue",
            "--wait",
            "-o",
            "jsonl",
            &session,
            "something else",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(waits.stdout.take().unwrap()).lines();
    // Its own input comes first: from then on it handles Ctrl-C.
    let line = within("the message is accepted", lines.next_line())
        .await
        .unwrap()
        .unwrap();
    assert!(line.contains("something else"), "{line}");
    let pid = waits.id().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(within("it ends", waits.wait()).await.unwrap().code(), Some(130));
    follower
        .until("the message is taken back", |body| {
            matches!(body, EventBody::InputCancelled(_))
        })
        .await;
    open_gate(&daemon);
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    assert_eq!(client.list_inputs(&session).await.unwrap(), []);
    check_log(&client, &session).await;
}
