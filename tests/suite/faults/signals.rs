//! Signals: the daemon is stopped for a while; tools, their sandbox and their warden are stopped or killed.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{
    Block, CancelTurnParams, CreateParams, EndReason, Event, EventBody, ToolOutcome, ToolStatus,
};
use agentd_tests::{
    Daemon, Follower, check_log, children_of, eventually, marked, signal, skipped, state_of, working_in,
};
use rustix::process::Signal;

pub(crate) fn results(log: &[Event]) -> Vec<ToolOutcome> {
    let outcome = |event: &Event| match &event.body {
        EventBody::ToolFinished(done) => Some(done.outcome.clone()),
        _ => None,
    };
    log.iter().filter_map(outcome).collect()
}

/// A named pipe: a command that reads it waits until something is written.
pub(super) fn pipe_at(place: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, place, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe can be made");
}

/// Waits until a command with this mark in its command line runs.
async fn runs(mark: &str) -> u32 {
    let needle = format!("sleep\0{mark}");
    eventually("the command runs", || !marked(&needle).is_empty()).await;
    marked(&needle).first().copied().expect("seen a moment ago")
}

fn mark(n: u32) -> String {
    format!("7654{n}{}", std::process::id())
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_daemon_that_was_stopped_for_a_while_kills_nobody_and_its_clients_go_on() {
    const SESSIONS: usize = 4;
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let mut viewers = Vec::new();
    for n in 0..SESSIONS {
        let plan = format!("plan:s{n} steps=1 command=touch_up_&&_cat_wait_&&_echo_{{n}}_>>_marks;");
        let pipe = std::path::Path::new(&daemon.workdir(&format!("s{n}"))).join("wait");
        pipe_at(&pipe);
        let params = CreateParams {
            prompt: Some(vec![Block::text(plan)]),
            workdir: daemon.workdir(&format!("s{n}")),
            ..CreateParams::default()
        };
        let session = client.create(&params).await.unwrap().session.to_string();
        let mut viewer = Follower::attach(&client, &session).await;
        viewer
            .until("a tool", |body| matches!(body, EventBody::ToolStarted(_)))
            .await;
        viewers.push((session, viewer));
    }
    let up = |n: usize| {
        std::path::Path::new(&daemon.workdir(&format!("s{n}")))
            .join("up")
            .exists()
    };
    eventually("the commands run", || (0..SESSIONS).all(up)).await;
    daemon.signal(Signal::STOP);
    eventually("the daemon stands still", || state_of(daemon.pid()) == Some('T')).await;
    // All commands end while the daemon is stopped.
    for n in 0..SESSIONS {
        let pipe = format!("{}/wait", daemon.workdir(&format!("s{n}")));
        tokio::fs::write(pipe, "go\n").await.unwrap();
    }
    let ended =
        |n: usize| std::fs::read_to_string(format!("{}/marks", daemon.workdir(&format!("s{n}")))).is_ok();
    eventually("the commands end", || (0..SESSIONS).all(ended)).await;
    daemon.signal(Signal::CONT);
    for (session, viewer) in &mut viewers {
        assert_eq!(viewer.turn_finished(1).await.reason, EndReason::Completed);
        let log = check_log(&client, session).await;
        assert!(
            results(&log)
                .iter()
                .all(|outcome| outcome.status == ToolStatus::Ok),
            "no command was killed for the time that stood still"
        );
    }
    assert!(client.status().await.is_ok());
}

/// As when a laptop sleeps: all processes stop at once, for longer than any deadline.
#[tokio::test(flavor = "multi_thread")]
async fn i3_i5_a_daemon_that_sleeps_with_all_its_processes_goes_on_with_one_result_for_each_call() {
    let server = ModelServer::start(false).await.unwrap();
    let config = format!("{YOLO}[tools]\nbash_timeout_ms = 1500\n");
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let plan = "plan:z steps=2 command=touch_up_&&_sleep_1;";
    let session = session(&daemon, &client, plan).await;
    let up = std::path::Path::new(&daemon.workdir("project")).join("up");
    eventually("a command runs", || up.exists()).await;
    let work = daemon.dir.path().join("work");
    let mut all = vec![daemon.pid()];
    all.extend(children_of(daemon.pid()));
    all.extend(working_in(&work));
    for pid in &all {
        signal(*pid, Signal::STOP);
    }
    eventually("all stand still", || {
        all.iter()
            .all(|pid| state_of(*pid).is_none_or(|state| "TZ".contains(state)))
    })
    .await;
    let slept = std::time::Instant::now();
    eventually("deadlines have passed", || slept.elapsed().as_secs() >= 3).await;
    for pid in &all {
        signal(*pid, Signal::CONT);
    }
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let told = results(&check_log(&client, &session).await);
    assert_eq!(told.len(), 2);
    let fits = |status| matches!(status, ToolStatus::Ok | ToolStatus::Timeout);
    assert!(told.iter().all(|outcome| fits(outcome.status)), "{told:?}");
    drop(client);
    drop(daemon);
    eventually("I5: nothing is left", || working_in(&work).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_i5_a_tool_that_stops_itself_is_ended_in_time_and_one_that_kills_itself_is_told() {
    let server = ModelServer::start(false).await.unwrap();
    // A deadline must end only the command that stops itself; a loaded machine must not end the other one, too.
    for (signal, status, timeout) in [
        ("STOP", ToolStatus::Timeout, "bash_timeout_ms = 1500"),
        ("KILL", ToolStatus::Error, ""),
    ] {
        let daemon = daemon(&server, &format!("{YOLO}[tools]\n{timeout}\n")).await;
        let client = daemon.client().await;
        let plan = format!("plan:{signal} steps=1 command=kill_-{signal}_$$;");
        let session = session(&daemon, &client, &plan).await;
        let end = Follower::attach(&client, &session).await.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed);
        let log = check_log(&client, &session).await;
        let told = results(&log);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].status, status, "{}", told[0].llm_text);
        let work = daemon.dir.path().join("work");
        drop(client);
        drop(daemon);
        eventually("I5: nothing is left", || working_in(&work).is_empty()).await;
    }
}

/// The warden of the only session that runs a command.
fn warden_of(daemon: &Daemon) -> u32 {
    let wardens = marked("__warden");
    let fork_servers = children_of(daemon.pid());
    let mine: Vec<u32> = fork_servers.into_iter().flat_map(children_of).collect();
    wardens
        .into_iter()
        .find(|pid| mine.contains(pid))
        .expect("a warden of this daemon")
}

async fn with_a_command(daemon: &Daemon, client: &Client, mark: &str) -> (String, Follower) {
    let plan = format!("plan:w steps=2 command=sleep_{mark};");
    let session = session(daemon, client, &plan).await;
    let follower = Follower::attach(client, &session).await;
    runs(mark).await;
    (session, follower)
}

async fn cancel(client: &Client, session: &str) {
    let params = CancelTurnParams {
        session: session.to_owned(),
        ..CancelTurnParams::default()
    };
    client.cancel_turn(&params).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_i5_when_the_warden_is_killed_its_command_dies_and_the_next_one_gets_another() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let mark = mark(1);
    let (session, mut follower) = with_a_command(&daemon, &client, &mark).await;
    let (warden, command) = (warden_of(&daemon), runs(&mark).await);
    signal(warden, Signal::KILL);
    follower
        .until("its result", |body| matches!(body, EventBody::ToolFinished(_)))
        .await;
    eventually("I5: its command is dead", || {
        state_of(command).is_none_or(|state| state == 'Z')
    })
    .await;
    // The second step's command is the same one, under another warden.
    let second = runs(&mark).await;
    assert_ne!(second, command);
    cancel(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Cancelled);
    let log = check_log(&client, &session).await;
    assert_ne!(results(&log)[0].status, ToolStatus::Ok);
    eventually("I5: nothing is left", || {
        marked(&format!("sleep\0{mark}")).is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_i5_when_the_warden_is_stopped_a_cancel_still_ends_the_turn_and_the_command() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let mark = mark(2);
    let (session, mut follower) = with_a_command(&daemon, &client, &mark).await;
    let warden = warden_of(&daemon);
    signal(warden, Signal::STOP);
    eventually("the warden stands still", || state_of(warden) == Some('T')).await;
    cancel(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Cancelled);
    check_log(&client, &session).await;
    let params = agentd_protocol::LifecycleParams {
        session,
        force: true,
        ..agentd_protocol::LifecycleParams::default()
    };
    client.close(&params).await.unwrap();
    drop(client);
    drop(daemon);
    eventually("I5: nothing is left", || {
        marked(&format!("sleep\0{mark}")).is_empty()
    })
    .await;
    eventually("the warden is gone, too", || {
        state_of(warden).is_none_or(|state| state == 'Z')
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_i5_when_the_holder_of_namespaces_is_killed_its_command_dies_and_is_told() {
    let server = ModelServer::start(false).await.unwrap();
    let config = format!("{YOLO}[sandbox]\nlevel = \"isolated\"\nrequire = \"isolated\"\n");
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let probe = CreateParams {
        workdir: daemon.workdir("probe"),
        ..CreateParams::default()
    };
    if let Err(error) = client.create(&probe).await {
        return skipped(
            "the holder of namespaces is killed",
            &format!("kernel: isolated: {error}"),
        );
    }
    let mark = mark(3);
    let (session, mut follower) = with_a_command(&daemon, &client, &mark).await;
    // It is the parent of the warden and a child of the fork server.
    let below = |pid: u32| children_of(pid).into_iter();
    let family: Vec<u32> = below(daemon.pid())
        .flat_map(|pid| std::iter::once(pid).chain(below(pid)))
        .collect();
    let holder = family.into_iter().find(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "agentd-holder"
    });
    signal(holder.expect("a holder of this daemon"), Signal::KILL);
    let told = follower
        .until("its result", |body| matches!(body, EventBody::ToolFinished(_)))
        .await;
    assert!(matches!(&told.body, EventBody::ToolFinished(done) if done.outcome.status != ToolStatus::Ok));
    cancel(&client, &session).await;
    follower.turn_finished(1).await;
    check_log(&client, &session).await;
    eventually("I5: nothing is left", || {
        marked(&format!("sleep\0{mark}")).is_empty()
    })
    .await;
}
