//! Trees of agents: deep and wide, killed in the middle, with a budget, cancelled, and with questions for people.

use crate::played::{daemon, model, results};
use crate::{ASKING, YOLO};
use agentd_client::{Client, Push};
use agentd_protocol::{
    ApprovalListParams, AttachParams, Block, Budget, CreateParams, Delta, EndReason, Event, EventBody,
    ListParams, PermissionMode, RunState, Summary, ToolStatus, UpdateParams, WaitReason,
};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, eventually, found, within};
use serde_json::json;
use std::collections::BTreeMap;

/// Children of a node, by its depth: 5 + 15 + 30 below the root.
const SHAPE: [usize; 3] = [5, 3, 2];

/// The node that a request belongs to: `r`, `r.0`, `r.0.2`, …; its task is the first message.
pub(crate) fn node(body: &str) -> &str {
    let at = body.find("node:").map_or(body.len(), |at| at + 5);
    let rest = &body[at..];
    rest.split(';').next().unwrap_or_default()
}

fn depth(node: &str) -> usize {
    node.matches('.').count()
}

pub(crate) fn tasks(node: &str, count: usize) -> Say {
    let call = |n: usize| {
        let (description, prompt) = (format!("part {node}.{n}"), format!("node:{node}.{n};"));
        (
            "Task".to_owned(),
            json!({ "description": description, "prompt": prompt }),
        )
    };
    Say {
        calls: (0..count).map(call).collect(),
        ..Say::text("")
    }
}

/// A model whose agents delegate their parts; the lowest ones answer.
async fn tree() -> FaultServer {
    model(|body, step| {
        let node = node(body);
        match (step, SHAPE.get(depth(node))) {
            (0, Some(children)) => tasks(node, *children),
            _ => Say::text(&format!("answer of {node};")),
        }
    })
    .await
}

pub(crate) async fn root(daemon: &Daemon, client: &Client, params: CreateParams) -> String {
    let params = CreateParams {
        prompt: Some(vec![Block::text("node:r;")]),
        title: Some("root".to_owned()),
        workdir: daemon.workdir("project"),
        ..params
    };
    client.create(&params).await.unwrap().session.to_string()
}

pub(crate) async fn all(client: &Client) -> Vec<Summary> {
    let params = ListParams {
        all: true,
        ..ListParams::default()
    };
    client.list(&params).await.unwrap()
}

/// The sessions, once all sub-agents are closed.
pub(crate) async fn when_over(client: &Client, subagents: usize) -> Vec<Summary> {
    found("the sub-agents are closed", async || {
        let rows = all(client).await;
        let closed = |row: &&Summary| row.status.state == RunState::Closed && row.parent.is_some();
        (rows.iter().filter(closed).count() >= subagents).then_some(rows)
    })
    .await
}

pub(crate) fn kinds<'a>(log: &'a [Event], kind: &'a str) -> impl Iterator<Item = &'a Event> {
    log.iter().filter(move |event| event.body.kind() == kind)
}

/// Each session of the tree gave each part to one sub-agent and has each result once.
async fn results_are_delivered_once(client: &Client, rows: &[Summary]) {
    for row in rows {
        let log = check_log(client, &row.session.to_string()).await;
        let mut told: BTreeMap<_, usize> = BTreeMap::new();
        for event in kinds(&log, "subagent.finished") {
            if let EventBody::SubagentFinished(finished) = &event.body {
                *told.entry(finished.child).or_default() += 1;
            }
        }
        let children: Vec<_> = rows.iter().filter(|it| it.parent == Some(row.session)).collect();
        assert_eq!(told.len(), children.len(), "no orphan below {}", row.name);
        assert!(
            told.values().all(|times| *times == 1),
            "each result once: {told:?}"
        );
        assert_eq!(kinds(&log, "subagent.started").count(), children.len());
        for (status, text) in results(&log) {
            assert_eq!(status, ToolStatus::Ok, "{text}");
            assert!(text.starts_with("answer of r."), "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_i4_a_tree_of_fifty_sub_agents_that_is_killed_again_and_again_delivers_each_result_once() {
    let server = tree().await;
    let mut daemon = Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: YOLO.to_owned(),
        faults: Some("store.after_commit=kill@8".to_owned()),
        ..DaemonOptions::default()
    })
    .await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    // On a slow machine one commit has the appends of many sessions, so there may be few commits.
    let faults = [
        "store.before_append=kill@15",
        "store.in_batch=kill@8",
        "store.after_commit=kill@8",
        "store.before_append=kill@60",
    ];
    for fault in faults {
        daemon.ended().await;
        daemon = daemon.restart(Some(fault)).await;
    }
    daemon.ended().await;
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let rows = when_over(&client, 50).await;
    assert_eq!(rows.len(), 51, "each part was given to one sub-agent");
    results_are_delivered_once(&client, &rows).await;
    let status = client.get(&session).await.unwrap();
    assert_eq!((status.subagents, status.children.len()), (5, 0));
    assert_eq!(status.below.steps, 50 + 20, "the steps of all below it");
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_the_budget_of_a_tree_is_exceeded_by_at_most_one_step_of_each_running_agent() {
    let server = model(|body, step| match (node(body), step) {
        (node @ "r", 0) => tasks(node, 8),
        (node, step) if depth(node) == 1 && step < 30 => {
            Say::call("Ls", json!({ "path": ".", "step": step }))
        }
        _ => Say::call("Ls", json!({ "path": "." })),
    })
    .await;
    let daemon = daemon(&server, &format!("{YOLO}[loop]\nmax_turns = 60\n")).await;
    let client = daemon.client().await;
    let budget = Budget {
        steps: 20,
        ..Budget::default()
    };
    let params = CreateParams {
        budget: Some(budget),
        ..CreateParams::default()
    };
    let session = root(&daemon, &client, params).await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Budget);
    let rows = when_over(&client, 8).await;
    let steps: u64 = rows.iter().map(|row| row.steps).sum();
    assert!((20..=20 + 8).contains(&steps), "{steps} steps");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_tree_ends_wholly_and_closed_ones_stay_closed_after_a_restart() {
    let server = model(|body, step| match (node(body), step) {
        (node, 0) if depth(node) < 2 => tasks(node, 2),
        (_, 0) => Say::call("Bash", json!({ "command": "sleep 86399" })),
        _ => Say::text("done"),
    })
    .await;
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    found("all four commands run", async || {
        let running = |row: &&Summary| row.status.state == RunState::RunningTool;
        (all(&client).await.iter().filter(running).count() == 4).then_some(())
    })
    .await;
    let waiting = client.get(&session).await.unwrap();
    assert_eq!(
        waiting.status.state,
        RunState::Waiting(WaitReason::Child),
        "{:?}",
        waiting.status
    );
    let shown = daemon.agentctl(&["ps", "--tree"]).await.stdout;
    assert!(shown.contains("└─"), "{shown}");
    let cancelled = daemon.agentctl(&["cancel", &session]).await;
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Cancelled);
    let rows = when_over(&client, 6).await;
    assert_eq!(rows.len(), 7);
    let work = daemon.dir.path().join("work");
    eventually("I5: no command is left", || {
        agentd_tests::working_in(&work).is_empty()
    })
    .await;
    let removed = daemon.agentctl(&["rm", &session]).await;
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert_eq!(all(&client).await, Vec::new(), "the tree goes with its root");
}

/// A grandchild that wants to run a command.
async fn asking() -> FaultServer {
    model(|body, step| match (node(body), step) {
        (node, 0) if depth(node) < 2 => tasks(node, 1),
        (_, 0) => Say::call("Bash", json!({ "command": "echo x > made" })),
        (node, _) => Say::text(&format!("answer of {node};")),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_grandchild_is_seen_at_the_root_and_answered_from_another_terminal() {
    let server = asking().await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    let told = loop {
        match follower.next().await {
            Some(Push::Delta(Delta::Asks { approvals, .. })) if !approvals.is_empty() => break approvals,
            Some(Push::Synced(synced)) if !synced.approvals.is_empty() => break synced.approvals,
            Some(_) => {}
            None => panic!("the subscription ended"),
        }
    };
    let open = client.approvals(&ApprovalListParams::default()).await.unwrap();
    assert_eq!(told, open);
    assert_eq!(open[0].root.map(|root| root.to_string()), Some(session.clone()));
    assert_eq!(open[0].path, ["root", "part r.0", "part r.0.0"]);
    // A late viewer gets the question with the synced state, and may name the root.
    let mut late = Follower::attach(&client, &session).await;
    while late.synced.is_none() {
        late.next().await;
    }
    assert_eq!(late.synced.unwrap().approvals, open);
    let listed = daemon.agentctl(&["approvals"]).await.stdout;
    assert!(listed.contains("part r.0.0"), "{listed}");
    let approved = daemon.agentctl(&["approve", &session]).await;
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    assert!(
        std::path::Path::new(&daemon.workdir("project"))
            .join("made")
            .exists()
    );
    assert_eq!(
        results(&check_log(&client, &session).await)[0].1,
        "answer of r.0;"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_headless_tree_is_judged_by_who_is_attached_to_its_root() {
    let server = asking().await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let headless = || CreateParams {
        headless: true,
        ..CreateParams::default()
    };
    let session = root(&daemon, &client, headless()).await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    assert!(
        !std::path::Path::new(&daemon.workdir("project"))
            .join("made")
            .exists()
    );

    let idle = CreateParams {
        workdir: daemon.workdir("project"),
        headless: true,
        ..CreateParams::default()
    };
    let session = client.create(&idle).await.unwrap().session.to_string();
    let params = AttachParams {
        session: session.clone(),
        deltas: true,
        decides: true,
        ..AttachParams::default()
    };
    let mut watching = client.attach(&params).await.unwrap();
    let sent = daemon.agentctl(&["send", &session, "node:r;"]).await;
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    within("the question is told", async {
        while let Some(push) = watching.next().await {
            if matches!(&push, Push::Delta(Delta::Asks { approvals, .. }) if !approvals.is_empty()) {
                break;
            }
        }
    })
    .await;
    let approved = daemon.agentctl(&["approve", &session]).await;
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    assert!(
        std::path::Path::new(&daemon.workdir("project"))
            .join("made")
            .exists()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_stricter_mode_of_a_root_holds_for_all_that_works_below_it() {
    let server = asking().await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    loop {
        match follower.next().await {
            Some(Push::Delta(Delta::Asks { approvals, .. })) if !approvals.is_empty() => break,
            Some(Push::Synced(synced)) if !synced.approvals.is_empty() => break,
            Some(_) => {}
            None => panic!("the subscription ended"),
        }
    }
    for (wanted, of_children) in [
        (PermissionMode::Plan, PermissionMode::Plan),
        (PermissionMode::Yolo, PermissionMode::Plan),
    ] {
        let params = UpdateParams {
            session: session.clone(),
            mode: Some(wanted),
            ..UpdateParams::default()
        };
        client.update(&params).await.unwrap();
        let rows = all(&client).await;
        assert_eq!(rows.len(), 3);
        for row in rows {
            let expected = if row.parent.is_some() { of_children } else { wanted };
            assert_eq!(row.mode, expected, "{}", row.name);
        }
    }
}
