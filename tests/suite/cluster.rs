//! Several daemons on one PostgreSQL database.

mod certified;
mod chaos;
pub(crate) mod fleet;
mod keys;
mod overlap;
mod place;
mod standby;

use agentd_protocol::{Block, CreateParams, EventBody, Fault, FaultClass, SendParams};
use agentd_tests::{Follower, Logs, found, within};
use fleet::{Fleet, accepted};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Four commands, each after half a second.
fn plan(name: &str) -> String {
    format!("plan:{name} steps=4 first=500 command=echo_{{n}}_>>_marks;")
}

/// The same, but the answer after two commands hangs until another node repeats the request: see [`hangs`].
fn held(name: &str) -> String {
    plan(name).replace(';', " hang=2 hangs=1;")
}

/// Waits for the call that hangs. If its node ended before, the call would hang on the next node.
async fn hangs(follower: &mut Follower) {
    follower.until_text("Thinking").await;
}

async fn started(follower: &mut Follower) {
    follower
        .until("the first call is over", |body| {
            matches!(body, EventBody::ToolFinished(_))
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_i4_i9_the_sessions_of_a_killed_node_continue_on_another() {
    let Some(mut fleet) = Fleet::start("a killed node", 2).await else {
        return;
    };
    let mut sessions = Vec::new();
    for number in 0..6 {
        let name = format!("s{number}");
        sessions.push(fleet.session(0, &name, &held(&name)).await);
    }
    let first = fleet.client(0).await;
    for id in &sessions {
        hangs(&mut Follower::attach(&first, id).await).await;
    }
    let before = Logs::told(&first).await.unwrap();
    fleet.nodes[0].kill().await;
    let second = fleet.client(1).await;
    for id in &sessions {
        let mut follower = Follower::attach(&second, id).await;
        let moved = follower
            .until("it has moved", |body| matches!(body, EventBody::SessionMoved(_)))
            .await;
        let EventBody::SessionMoved(moved) = moved.body else {
            unreachable!("the wait was for this kind")
        };
        assert_eq!(moved.node, "node1");
        assert!(moved.epoch > 1);
    }
    for (number, id) in sessions.iter().enumerate() {
        Follower::attach(&second, id).await.turn_finished(1).await;
        fleet.check_marks(&second, id, &format!("s{number}")).await;
    }
    Logs::told(&second).await.unwrap().continue_from(&before);
}

/// Answers requests at an address that another process had: it does not know them.
async fn stranger(address: &str) -> tokio::task::JoinHandle<()> {
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            // Unread parts of the request would reset the connection.
            let mut request = [0; 65_536];
            if stream.read(&mut request).await.is_ok() {
                let _ = stream.write_all(answer).await;
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_for_the_next_node_while_a_stranger_has_the_address_of_the_killed_one() {
    // Other daemons want the default port, too.
    let config = "[http]\nlisten = \"127.0.0.1:0\"\n";
    let Some(mut fleet) = Fleet::with_config("address of a killed node", 2, config).await else {
        return;
    };
    let id = fleet.session(0, "s", "plan:s steps=1 text=one;").await;
    Follower::attach(&fleet.client(0).await, &id)
        .await
        .turn_finished(1)
        .await;
    let address = fleet.nodes[0].http().await;
    fleet.nodes[0].kill().await;
    let stranger = stranger(address.trim_start_matches("http://")).await;
    let second = fleet.client(1).await;
    let params = SendParams {
        session: id.clone(),
        content: vec![Block::text("plan:more steps=1 text=two;")],
        key: Some("more".to_owned()),
        ..SendParams::default()
    };
    accepted(&second, &params).await;
    Follower::attach(&second, &id).await.turn_finished(2).await;
    stranger.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn i9_a_node_that_slept_too_long_drops_its_sessions_and_comes_back() {
    let Some(fleet) = Fleet::start("a stopped node", 2).await else {
        return;
    };
    let id = fleet.session(0, "s", &held("s")).await;
    let first = fleet.client(0).await;
    let mut follower = Follower::attach(&first, &id).await;
    hangs(&mut follower).await;
    fleet.nodes[0].signal(Signal::STOP);
    let second = fleet.client(1).await;
    let mut other = Follower::attach(&second, &id).await;
    other.turn_finished(1).await;
    fleet.nodes[0].signal(Signal::CONT);
    // The viewer of the first node gets what the second one wrote.
    follower.turn_finished(1).await;
    agentd_tests::eventually("the first node has joined again", || {
        fleet.nodes[0].said().contains("joining again") || fleet.log(0).contains("joining again")
    })
    .await;
    fleet.check_marks(&second, &id, "s").await;
    // Its actors come back after it has joined.
    let params = CreateParams {
        prompt: Some(vec![Block::text(plan("after"))]),
        workdir: fleet.workdir("after").display().to_string(),
        ..CreateParams::default()
    };
    let own = found("the first node creates sessions again", async || {
        match fleet.client(0).await.create(&params).await.map_err(Fault::from) {
            Ok(created) => Some(created.session.to_string()),
            Err(fault) => {
                assert_eq!(fault.class, FaultClass::Unavailable, "{fault}");
                None
            }
        }
    })
    .await;
    Follower::attach(&fleet.client(0).await, &own)
        .await
        .turn_finished(1)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nodes_share_the_limit_of_a_provider() {
    let Some(fleet) = Fleet::limited("the limit of a provider", 2, 2, "").await else {
        return;
    };
    // Each node has one long call, and others that wait meanwhile.
    for (node, name) in ["held0", "held1"].into_iter().enumerate() {
        let plan = format!("plan:{name} steps=0 first=15000;");
        fleet.session(node, name, &plan).await;
    }
    let mut sessions = Vec::new();
    for number in 0..8 {
        let name = format!("s{number}");
        let plan = format!("plan:{name} steps=3 first=100;");
        sessions.push((number % 2, fleet.session(number % 2, &name, &plan).await));
    }
    for (node, id) in &sessions {
        let client = fleet.client(*node).await;
        Follower::attach(&client, id).await.turn_finished(1).await;
    }
    assert_eq!(fleet.model.seen().most, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_lanes_share_a_provider_over_all_nodes() {
    let config = "[scheduler]\nweights = { b = 3.0 }\n";
    let Some(fleet) = Fleet::limited("groups on several nodes", 3, 8, config).await else {
        return;
    };
    let teams = [
        ("a", "interactive", 8),
        ("b", "interactive", 16),
        ("a", "background", 6),
    ];
    for (node, (team, lane, sessions)) in teams.iter().enumerate() {
        let client = fleet.client(node).await;
        for number in 0..*sessions {
            let params = CreateParams {
                workdir: fleet.local(&format!("{node}-{number}")),
                prompt: Some(vec![Block::text("plan:busy steps=300 tool=write first=4000;")]),
                labels: [("team", team), ("lane", lane)]
                    .map(|(key, value)| (key.to_owned(), (*value).to_owned()))
                    .into(),
                ..CreateParams::default()
            };
            client.create(&params).await.unwrap();
        }
    }
    // By nodes alone, it would be three, three and two calls.
    let running = async |node: usize| {
        let models = fleet.client(node).await.models().await.unwrap();
        let model = models.iter().find(|model| model.name == "limited");
        model.unwrap().running
    };
    found("team b has three times the calls of team a", async || {
        let running = [running(0).await, running(1).await, running(2).await];
        ([1, 2].contains(&running[0]) && [5, 6].contains(&running[1]) && running[2] <= 1).then_some(())
    })
    .await;
    found("a background call has its turn", async || {
        (running(2).await == 1).then_some(())
    })
    .await;
    assert!(fleet.model.seen().most <= 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_on_any_node_reaches_the_session_and_every_node_shows_it() {
    let Some(fleet) = Fleet::steady("commands on any node", 2, "").await else {
        return;
    };
    let id = fleet.session(0, "s", "plan:s steps=0 text=one;").await;
    let (first, second) = (fleet.client(0).await, fleet.client(1).await);
    let mut here = Follower::attach(&first, &id).await;
    let mut there = Follower::attach(&second, &id).await;
    here.turn_finished(1).await;
    there.turn_finished(1).await;
    let params = SendParams {
        session: id.clone(),
        content: vec![Block::text("plan:again steps=1 text=two;")],
        key: Some("only-once".to_owned()),
        ..SendParams::default()
    };
    let sent = second.send(&params).await.unwrap();
    assert_eq!(second.send(&params).await.unwrap().input, sent.input);
    assert_eq!(first.send(&params).await.unwrap().input, sent.input);
    assert_eq!(there.turn_finished(2).await.text, "two");
    assert_eq!(here.turn_finished(2).await.text, "two");
    assert_eq!(here.events, there.events);
    let moved = |body: &EventBody| matches!(body, EventBody::SessionMoved(_));
    assert!(!here.events.iter().any(|event| moved(&event.body)));
}

#[tokio::test(flavor = "multi_thread")]
async fn live_text_is_shown_by_every_node_and_the_log_goes_on_without_its_relay() {
    let Some(mut fleet) = Fleet::start("live text at another node", 2).await else {
        return;
    };
    let id = fleet.session(0, "s", "plan:s steps=0 text=one;").await;
    let second = fleet.client(1).await;
    let mut there = Follower::attach(&second, &id).await;
    there.turn_finished(1).await;
    let send = async |words: &str| {
        let params = SendParams {
            session: id.clone(),
            content: vec![Block::text(words)],
            key: Some(words.to_owned()),
            ..SendParams::default()
        };
        accepted(&second, &params).await;
    };
    // The relay may still be on its way to the other node: each turn says the same.
    let mut turns = 1;
    agentd_tests::found("live text of the other node", async || {
        turns += 1;
        send(&format!(
            "plan:again{turns} steps=0 text=live_text_of_another_node;"
        ))
        .await;
        let mut live = String::new();
        loop {
            match there.next().await.expect("the subscription goes on") {
                agentd_client::Push::Delta(agentd_protocol::Delta::Text(part)) => live.push_str(&part.text),
                agentd_client::Push::Event(_)
                    if there
                        .events
                        .iter()
                        .filter(|event| matches!(event.body, EventBody::TurnFinished(_)))
                        .count()
                        == turns =>
                {
                    break;
                }
                _ => {}
            }
        }
        live.contains("live text").then_some(())
    })
    .await;
    fleet.nodes[0].kill().await;
    send("plan:more steps=0 text=after;").await;
    assert_eq!(there.turn_finished(turns + 1).await.text, "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_node_gives_its_sessions_to_others_and_loses_no_turn() {
    let Some(mut fleet) = Fleet::steady("a draining node", 2, "").await else {
        return;
    };
    let id = fleet.session(0, "s", &plan("s")).await;
    let mut follower = Follower::attach(&fleet.client(0).await, &id).await;
    started(&mut follower).await;
    fleet.nodes[0].terminate();
    let second = fleet.client(1).await;
    let mut other = Follower::attach(&second, &id).await;
    other.turn_finished(1).await;
    assert_eq!(fleet.nodes[0].ended().await.code(), Some(0));
    fleet.check_marks(&second, &id, "s").await;
    let params = SendParams {
        session: id.clone(),
        content: vec![Block::text("plan:more steps=0;")],
        ..SendParams::default()
    };
    second.send(&params).await.unwrap();
    other.turn_finished(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_drains_without_running_work_has_no_session_left() {
    let Some(mut fleet) = Fleet::steady("an idle node", 2, "").await else {
        return;
    };
    let first = fleet.client(0).await;
    for name in ["one", "two", "three"] {
        let id = fleet.session(0, name, "plan:idle steps=0;").await;
        Follower::attach(&first, &id).await.turn_finished(1).await;
    }
    assert_eq!(fleet.rows().await[0]["sessions"], 3);
    fleet.nodes[0].terminate();
    assert_eq!(fleet.nodes[0].ended().await.code(), Some(0));
    let row = &fleet.rows().await[0];
    assert_eq!((&row["alive"], &row["sessions"]), (&false.into(), &0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_node_of_the_same_name_is_refused() {
    let Some(fleet) = Fleet::steady("nodes of the same name", 1, "").await else {
        return;
    };
    let mut other = fleet.launch("node0");
    assert_eq!(other.ended().await.code(), Some(69));
    let said = other.said();
    assert!(said.contains("already has a live node named \"node0\""), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_token_ends_on_all_nodes() {
    let Some(mut fleet) = Fleet::steady("tokens of a fleet", 2, "").await else {
        return;
    };
    let (first, second) = (fleet.client(0).await, fleet.client(1).await);
    let params = agentd_protocol::CreateTokenParams {
        name: "ci".to_owned(),
        scopes: vec!["read".to_owned()],
        ..agentd_protocol::CreateTokenParams::default()
    };
    let token = first
        .create_token(&params)
        .await
        .unwrap()
        .token
        .expose()
        .to_owned();
    let url = format!("{}/v1/sessions", second.status().await.unwrap().http);
    let http = agentd_provider::http_client(std::time::Duration::from_secs(5)).unwrap();
    let status = async || {
        let asked = http.get(&url).bearer_auth(&token).send();
        within("HTTP answers", asked).await.unwrap().status().as_u16()
    };
    agentd_tests::found("the token opens the other node", async || {
        (status().await == 200).then_some(())
    })
    .await;
    let params = agentd_protocol::RevokeTokenParams {
        name: "ci".to_owned(),
    };
    first.revoke_token(&params).await.unwrap();
    agentd_tests::found("the token opens it no longer", async || {
        (status().await == 401).then_some(())
    })
    .await;
    for node in &mut fleet.nodes {
        node.terminate();
        node.ended().await;
    }
    assert!(!fleet.log(0).contains(&token) && !fleet.log(1).contains(&token));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordoned_node_passes_on_requests_for_new_sessions() {
    let Some(fleet) = Fleet::steady("a cordoned node", 2, "").await else {
        return;
    };
    let cordon = async |node: &str| {
        let done = fleet.nodes[1].agentctl(&["node", "cordon", node]).await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    };
    cordon("node1").await;
    // New sessions go elsewhere as soon as it has noticed.
    let created = async |fleet: &Fleet, name: &str| {
        let workdir = fleet.workdir(name).display().to_string();
        let plan = format!("plan:{name} text=done;");
        fleet.nodes[1]
            .agentctl(&["run", "-d", "-C", &workdir, &plan])
            .await
    };
    let owned = async |fleet: &Fleet, node: usize| fleet.rows().await[node]["sessions"].as_u64().unwrap();
    found("a new session is on another node", async || {
        let before = owned(&fleet, 0).await;
        let done = created(&fleet, &format!("new{before}")).await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        (owned(&fleet, 0).await > before).then_some(())
    })
    .await;
    cordon("node0").await;
    let refused = found("no node gets a new session", async || {
        let before = owned(&fleet, 0).await + owned(&fleet, 1).await;
        Some(created(&fleet, &format!("more{before}")).await).filter(|done| done.code != Some(0))
    })
    .await;
    assert!(
        refused.stderr.contains("no other node takes new sessions"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("agentctl node uncordon"),
        "{}",
        refused.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nodes_are_listed_cordoned_and_drained_from_anywhere() {
    let Some(mut fleet) = Fleet::steady("nodes of a fleet", 2, "").await else {
        return;
    };
    let id = fleet.session(0, "s", &plan("s")).await;
    started(&mut Follower::attach(&fleet.client(0).await, &id).await).await;
    let listed = async |fleet: &Fleet| {
        let rows = fleet.rows().await;
        let of = |node: usize| {
            (
                rows[node]["alive"] == true,
                rows[node]["placing"].as_str().unwrap().to_owned(),
            )
        };
        (of(0), of(1))
    };
    let open = |placing: &str| (true, placing.to_owned());
    assert_eq!(listed(&fleet).await, (open("open"), open("open")));
    let done = fleet.nodes[0].agentctl(&["node", "cordon", "node1"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(listed(&fleet).await, (open("open"), open("cordoned")));
    let done = fleet.nodes[0].agentctl(&["node", "uncordon", "node1"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let unknown = fleet.nodes[1].agentctl(&["node", "drain", "nobody"]).await;
    assert_eq!(unknown.code, Some(3), "{}", unknown.stderr);
    let done = fleet.nodes[1].agentctl(&["node", "drain", "node0"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(fleet.nodes[0].ended().await.code(), Some(0));
    Follower::attach(&fleet.client(1).await, &id)
        .await
        .turn_finished(1)
        .await;
    assert_eq!(
        listed(&fleet).await,
        ((false, "draining".to_owned()), open("open"))
    );
}
