//! Resources of a daemon disappear: directories, descriptors, the sandbox.

use super::signals::results;
use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::{Client, ConnectOptions};
use agentd_protocol::{Block, CreateParams, EndReason, SendParams, ToolStatus};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, eventually, skipped, status_of, within};

async fn send(client: &Client, session: &str, plan: &str) {
    let params = SendParams {
        session: session.to_owned(),
        content: vec![Block::text(plan)],
        ..SendParams::default()
    };
    client.send(&params).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_i6_a_working_directory_that_is_gone_fails_calls_and_nothing_else_until_it_is_back() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:one steps=1 command=true;").await;
    let mut viewer = Follower::attach(&client, &session).await;
    viewer.turn_finished(1).await;
    let workdir = daemon.workdir("project");
    std::fs::remove_dir_all(&workdir).unwrap();
    send(&client, &session, "plan:two steps=1 command=true;").await;
    assert_eq!(viewer.turn_finished(2).await.reason, EndReason::Completed);
    std::fs::create_dir(&workdir).unwrap();
    send(&client, &session, "plan:three steps=1 command=echo_{n}_>_back;").await;
    viewer.turn_finished(3).await;
    let told = results(&check_log(&client, &session).await);
    assert_eq!(told[0].status, ToolStatus::Ok);
    assert_eq!(told[1].status, ToolStatus::Error, "{}", told[1].llm_text);
    assert_eq!(told.len(), 3, "each call has its result");
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_without_descriptors_clients_are_turned_away_and_the_daemon_recovers() {
    const LIMIT: u64 = 96;
    let server = ModelServer::start(false).await.unwrap();
    let script = format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"");
    let daemon = Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: YOLO.to_owned(),
        wrapper: vec!["/bin/sh".to_owned(), "-c".to_owned(), script],
        ..DaemonOptions::default()
    })
    .await;
    // Opens connections until no descriptor is left; the daemon cannot accept the rest, which wait in the kernel.
    let mut held = Vec::new();
    for _ in 0..2 * LIMIT {
        match tokio::net::UnixStream::connect(daemon.socket()).await {
            Ok(stream) => held.push(stream),
            Err(_) => break,
        }
    }
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map_or(0, Iterator::count);
    // A hardened process hides its descriptors from others; then only its sockets are known.
    let known = descriptors() > 0;
    if known {
        eventually("no descriptor is left", || descriptors() as u64 + 4 >= LIMIT).await;
    }
    let ticks = || status_of(daemon.pid(), "voluntary_ctxt_switches");
    let before = ticks();
    drop(held);
    let client = within("a client can connect again", async {
        let mut again = tokio::time::interval(std::time::Duration::from_millis(50));
        loop {
            again.tick().await;
            if let Ok(client) = Client::connect(&daemon.socket(), &ConnectOptions::default()).await {
                return client;
            }
        }
    })
    .await;
    assert!(
        ticks() < before + 100_000,
        "it does not spin while it has no descriptor"
    );
    let session = session(&daemon, &client, "plan:fd steps=2 command=echo_{n}_>>_marks;").await;
    let end = Follower::attach(&client, &session).await.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed);
    let told = results(&check_log(&client, &session).await);
    assert!(
        told.iter().all(|outcome| outcome.status == ToolStatus::Ok),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_when_the_sandbox_goes_away_calls_are_refused_and_say_why() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: format!("{YOLO}[sandbox]\nlevel = \"isolated\"\nrequire = \"isolated\"\n"),
        ..DaemonOptions::default()
    })
    .await;
    let client = daemon.client().await;
    let params = |dir: &str, plan: &str| CreateParams {
        prompt: Some(vec![Block::text(plan)]),
        workdir: daemon.workdir(dir),
        ..CreateParams::default()
    };
    let first = client.create(&params("a", "plan:a steps=1 command=true;")).await;
    let first = match first {
        Ok(created) => created.session.to_string(),
        Err(error) => return skipped("the sandbox goes away", &format!("kernel: isolated: {error}")),
    };
    Follower::attach(&client, &first).await.turn_finished(1).await;
    // The sandbox needs a private directory, and now none can be created.
    let temp = daemon.data_dir().join("tmp");
    std::fs::remove_dir_all(&temp).unwrap();
    std::fs::write(&temp, "").unwrap();
    let second = client
        .create(&params("b", "plan:b steps=1 command=echo_ran_>_ran;"))
        .await;
    let second = second.unwrap().session.to_string();
    let end = Follower::attach(&client, &second).await.turn_finished(1).await;
    assert_eq!(
        end.reason,
        EndReason::Completed,
        "the model is told and ends the turn"
    );
    let told = results(&check_log(&client, &second).await);
    assert_eq!(told[0].status, ToolStatus::Error);
    assert!(
        told[0].llm_text.contains(&temp.display().to_string()),
        "{}",
        told[0].llm_text
    );
    let ran = format!("{}/ran", daemon.workdir("b"));
    assert!(
        !std::path::Path::new(&ran).exists(),
        "I7: nothing runs without its walls"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_data_directory_that_is_deleted_stops_the_store_and_nothing_is_promised_any_more() {
    let server = ModelServer::start(false).await.unwrap();
    let mut daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:one steps=1 command=true;").await;
    Follower::attach(&client, &session).await.turn_finished(1).await;
    std::fs::remove_dir_all(daemon.data_dir()).unwrap();
    let params = SendParams {
        session,
        content: vec![Block::text("plan:two steps=1 command=true;")],
        ..SendParams::default()
    };
    let sent = within("an answer", client.send(&params)).await;
    assert!(
        sent.is_err(),
        "I1: it was promised to a file that is gone: {sent:?}"
    );
    assert_eq!(daemon.ended().await.code(), Some(70), "{}", daemon.said());
    let again = daemon.restart(None).await;
    assert!(again.client().await.status().await.is_ok(), "and begins again");
}
