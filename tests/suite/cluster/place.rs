//! Where a session may run: below a shared path anywhere, otherwise on the node of its directory.

use super::fleet::Fleet;
use super::{hangs, held};
use crate::played::model;
use crate::subagents::{node, tasks};
use agentd_client::Client;
use agentd_protocol::{
    Block, CancelTurnParams, CreateParams, EventBody, Fault, FaultClass, RunState, SendParams, SessionParams,
    WaitReason,
};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Follower, found};
use serde_json::json;

const WAITS: RunState = RunState::Waiting(WaitReason::Workspace);

/// Waits until a session waits for its node.
async fn waits(client: &Client, id: &str) -> String {
    found("the session waits for its directory", async || {
        let row = client.get(id).await.ok()?;
        (row.status.state == WAITS).then_some(row.status.reason)
    })
    .await
}

fn send(id: &str, words: &str) -> SendParams {
    SendParams {
        session: id.to_owned(),
        content: vec![Block::text(words)],
        ..SendParams::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_i9_only_sessions_in_shared_paths_go_on_without_their_node() {
    let Some(mut fleet) = Fleet::start("places of sessions", 2).await else {
        return;
    };
    let first = fleet.client(0).await;
    let shared = fleet.session(0, "shared", &held("shared")).await;
    let moves = fleet.local_session(0, "moves", &held("moves")).await;
    let stays = fleet.local_session(0, "stays", &held("stays")).await;
    for id in [&shared, &moves, &stays] {
        hangs(&mut Follower::attach(&first, id).await).await;
    }
    fleet.nodes[0].kill().await;
    let second = fleet.client(1).await;
    Follower::attach(&second, &shared).await.turn_finished(1).await;
    fleet.check_marks(&second, &shared, "shared").await;
    for id in [&moves, &stays] {
        let reason = waits(&second, id).await;
        assert!(reason.contains("node0") && reason.contains("-C DIR"), "{reason}");
    }
    let refused = fleet.nodes[1].agentctl(&["send", &stays, "more"]).await;
    assert_ne!(refused.code, Some(0));
    for part in ["on node node0", "agentctl resume", "-C DIR"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let blocked = fleet.nodes[1].agentctl(&["wait", &stays]).await;
    assert_eq!(blocked.code, Some(7), "{}", blocked.stderr);

    let new = fleet.local("new");
    let done = fleet.nodes[1].agentctl(&["resume", &moves, "-C", &new]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let mut follower = Follower::attach(&second, &moves).await;
    follower.turn_finished(1).await;
    let moved = follower.events.iter().find_map(|event| match &event.body {
        EventBody::SessionMoved(moved) => Some((moved.node.clone(), moved.workdir.clone())),
        _ => None,
    });
    assert_eq!(moved, Some(("node1".to_owned(), Some(new.clone()))));
    let told = |body: &EventBody| matches!(body, EventBody::NoteInjected(note) if note.text.contains(&new));
    assert!(follower.events.iter().any(|event| told(&event.body)));
    assert!(std::path::Path::new(&new).join("marks").exists());

    fleet.nodes[0] = fleet.nodes[0].again();
    let back = &mut fleet.nodes[0];
    assert!(back.ready_or_over().await, "{}", back.said());
    let mut follower = Follower::attach(&second, &stays).await;
    follower.turn_finished(1).await;
    let moved = |body: &EventBody| matches!(body, EventBody::SessionMoved(_));
    assert!(!follower.events.iter().any(|event| moved(&event.body)));
    // The one that moved belongs to the other node from now on, also when it is idle.
    second.send(&send(&moves, "plan:more steps=0;")).await.unwrap();
    Follower::attach(&second, &moves).await.turn_finished(2).await;
}

/// Two nodes of which the first one is gone, with a session whose sub-agent ran a command there. Both wait.
struct WaitingTree {
    fleet: Fleet,
    _model: FaultServer,
    root: String,
    child: String,
}

impl WaitingTree {
    async fn begin(test: &str) -> Option<Self> {
        let model = model(|body, step| match (node(body), step) {
            ("r", 0) => tasks("r", 1),
            ("r.0", 0) => Say::call("Bash", json!({ "command": "touch begun; sleep 600" })),
            ("r.0", 1) => Say::call("Bash", json!({ "command": "pwd > here" })),
            _ => Say::text("done"),
        })
        .await;
        let config = format!(
            "[providers.tree]\ndialect = \"anthropic\"\nbase_url = \"{}\"\n\
             credentials = [{{ name = \"main\", env = \"AGENTD_TEST_KEY\" }}]\n\
             [models.tree]\nprovider = \"tree\"\nmodel = \"claude-test\"\n",
            model.url()
        );
        let mut fleet = Fleet::with_config(test, 2, &config).await?;
        let old = fleet.local("old");
        let params = CreateParams {
            workdir: old.clone(),
            model: Some("tree".to_owned()),
            prompt: Some(vec![Block::text("node:r;")]),
            ..CreateParams::default()
        };
        let first = fleet.client(0).await;
        let root = first.create(&params).await.unwrap().session.to_string();
        found("the sub-agent runs its command", async || {
            std::path::Path::new(&old).join("begun").exists().then_some(())
        })
        .await;
        let child = first
            .get(&root)
            .await
            .unwrap()
            .children
            .first()
            .unwrap()
            .to_string();
        fleet.nodes.first_mut().unwrap().kill().await;
        let second = fleet.client(1).await;
        for id in [&root, &child] {
            waits(&second, id).await;
        }
        Some(Self {
            fleet,
            _model: model,
            root,
            child,
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_session_is_removed_with_its_sub_agent() {
    let Some(tree) = WaitingTree::begin("a waiting tree is removed").await else {
        return;
    };
    let done = tree.fleet.nodes[1].agentctl(&["rm", "-f", &tree.root]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let second = tree.fleet.client(1).await;
    for id in [&tree.root, &tree.child] {
        let gone = Fault::from(second.get(id).await.unwrap_err());
        assert_eq!(gone.class, FaultClass::NotFound, "{id}: {gone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_moves_with_its_parent_and_goes_on() {
    let Some(tree) = WaitingTree::begin("sub-agents that move").await else {
        return;
    };
    let (fleet, root, child) = (&tree.fleet, &tree.root, &tree.child);
    let (second, new) = (fleet.client(1).await, fleet.local("new"));
    let done = fleet.nodes[1].agentctl(&["resume", root, "-C", &new]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    Follower::attach(&second, root).await.turn_finished(1).await;
    for id in [root, child] {
        let row = second.get(id).await.unwrap();
        assert_eq!(
            (row.workdir.as_str(), row.place.home.as_str()),
            (new.as_str(), "node1"),
            "{id}"
        );
    }
    let here = std::fs::read_to_string(format!("{new}/here")).unwrap();
    assert_eq!(here.trim(), new);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_no_files_works_while_the_node_is_away_and_the_rest_reaches_it_when_it_is_back() {
    let Some(mut fleet) = Fleet::start("commands without files", 2).await else {
        return;
    };
    let cancelled = fleet.local_session(0, "cancelled", &held("cancelled")).await;
    let idle = fleet.local_session(0, "idle", "plan:idle steps=0;").await;
    let first = fleet.client(0).await;
    hangs(&mut Follower::attach(&first, &cancelled).await).await;
    Follower::attach(&first, &idle).await.turn_finished(1).await;
    fleet.nodes[0].kill().await;
    let second = fleet.client(1).await;
    waits(&second, &cancelled).await;
    let cancel = CancelTurnParams {
        session: cancelled.clone(),
        ..CancelTurnParams::default()
    };
    second.cancel_turn(&cancel).await.unwrap();
    Follower::attach(&second, &cancelled).await.turn_finished(1).await;
    let refused = second.send(&send(&cancelled, "more")).await.unwrap_err();
    assert!(refused.to_string().contains("node0"), "{refused}");
    let params = SessionParams {
        session: idle.clone(),
    };
    second.context(&params).await.unwrap();
    fleet.nodes[0] = fleet.nodes[0].again();
    let back = &mut fleet.nodes[0];
    assert!(back.ready_or_over().await, "{}", back.said());
    for id in [&cancelled, &idle] {
        second.send(&send(id, "plan:more steps=0;")).await.unwrap();
        let mut follower = Follower::attach(&second, id).await;
        follower.turn_finished(2).await;
        let moved = |body: &EventBody| matches!(body, EventBody::SessionMoved(_));
        assert!(!follower.events.iter().any(|event| moved(&event.body)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_runs_only_on_a_node_with_the_labels_that_it_requires() {
    let Some(mut fleet) = Fleet::start("labels of nodes", 2).await else {
        return;
    };
    let first = fleet.client(0).await;
    let wanted = |node: &str| CreateParams {
        workdir: fleet.workdir("labelled").display().to_string(),
        prompt: Some(vec![Block::text(held("labelled"))]),
        requires: [("name".to_owned(), node.to_owned())].into(),
        ..CreateParams::default()
    };
    let refused = first.create(&wanted("node7")).await.unwrap_err().to_string();
    assert!(refused.contains("name=node7"), "{refused}");
    let id = first.create(&wanted("node1")).await.unwrap().session.to_string();
    hangs(&mut Follower::attach(&fleet.client(1).await, &id).await).await;
    fleet.nodes[1].kill().await;
    let reason = waits(&first, &id).await;
    assert!(reason.contains("requires name=node1"), "{reason}");
    // It may not run here, with whatever directory.
    let resumed = fleet.nodes[0].agentctl(&["resume", &id, "-C", "/"]).await;
    assert_ne!(resumed.code, Some(0));
    assert!(resumed.stderr.contains("name=node1"), "{}", resumed.stderr);
    let listed = fleet.nodes[0].agentctl(&["nodes", "-o", "wide"]).await;
    assert!(listed.stdout.contains("name=node0"), "{}", listed.stdout);
    fleet.nodes[1] = fleet.nodes[1].again();
    let back = &mut fleet.nodes[1];
    assert!(back.ready_or_over().await, "{}", back.said());
    let mut follower = Follower::attach(&first, &id).await;
    follower.turn_finished(1).await;
    let moved = |body: &EventBody| matches!(body, EventBody::SessionMoved(_));
    assert!(!follower.events.iter().any(|event| moved(&event.body)));
    fleet.check_marks(&first, &id, "labelled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_begins_at_a_node_with_clearly_less_load() {
    // Each session in memory is a tenth of the load.
    let config = "[limits]\nsessions_hot = 10\n";
    let Some(fleet) = Fleet::steady("loads of nodes", 2, config).await else {
        return;
    };
    let first = fleet.client(0).await;
    let create = async |workdir: String| {
        let params = CreateParams {
            workdir,
            prompt: Some(vec![Block::text("plan:busy steps=0 hang=0;")]),
            ..CreateParams::default()
        };
        first.create(&params).await.unwrap();
    };
    let number = async |node: usize, of: &str| fleet.rows().await[node][of].as_u64().unwrap();
    for session in 0..3 {
        create(fleet.local(&format!("local{session}"))).await;
    }
    found("the load is reported", async || {
        let (here, there) = (number(0, "load").await, number(1, "load").await);
        (here > there + 200).then_some(())
    })
    .await;
    assert_eq!((number(0, "sessions").await, number(1, "sessions").await), (3, 0));
    found("a session begins at the other node", async || {
        create(fleet.workdir("shared").display().to_string()).await;
        (number(1, "sessions").await > 0).then_some(())
    })
    .await;
    // The other node does not have this directory.
    let before = number(1, "sessions").await;
    create(fleet.local("more")).await;
    assert_eq!(number(1, "sessions").await, before);
}
