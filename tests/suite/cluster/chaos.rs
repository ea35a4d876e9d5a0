//! Random faults of three nodes, their database, connections and clocks while random clients work, under one seed:
//! `AGENTD_SEED`.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::fleet::Fleet;
use agentd_client::{Client, ConnectOptions};
use agentd_protocol::{Block, EventBody, InputId, SendParams, Stamp, Timestamp};
use agentd_tests::{Daemon, Follower, Line, Logs, check_effects, within};
use futures_util::future::join_all;
use rustix::process::Signal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

const NODES: usize = 3;
/// Unless `AGENTD_SESSIONS_AT_RANDOM` gives another number.
const SESSIONS: u64 = 30;
/// Inputs of each session.
const INPUTS: usize = 4;
/// Faults, unless `AGENTD_FAULTS_AT_RANDOM` gives another number.
const FAULTS: u64 = 16;
/// How long a client may try to send an input after the last fault.
const PATIENCE: Duration = Duration::from_secs(300);

/// Numbers below `bound` under a seed.
struct Dice(Stamp);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Stamp::new(Timestamp(0), seed))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn node(&mut self) -> usize {
        usize::try_from(self.below(NODES as u64)).unwrap_or(0)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the seed of a test comes from its environment"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Sends inputs to a session through random nodes. Each key is tried until it is acknowledged.
async fn work(
    sockets: Arc<Vec<PathBuf>>,
    session: String,
    (place, seed): (u64, u64),
    calm: watch::Receiver<Option<Instant>>,
) -> Vec<InputId> {
    let mut dice = Dice::new(seed ^ (place << 32));
    let mut sent = Vec::new();
    for number in 0..INPUTS {
        let words = format!("plan:s{place}n{number} steps=2 first=200 command=echo_{number}.{{n}}_>>_marks;");
        let params = SendParams {
            session: session.clone(),
            content: vec![Block::text(words)],
            key: Some(format!("{session}-{number}")),
            ..SendParams::default()
        };
        let mut last = String::new();
        let input = loop {
            let in_time = calm.borrow().is_none_or(|since| since.elapsed() < PATIENCE);
            assert!(in_time, "input {number} of {session}: {last}");
            let socket = &sockets[dice.node()];
            let options = ConnectOptions {
                deadline: Duration::from_secs(5),
                ..ConnectOptions::default()
            };
            let answered = match Client::connect(socket, &options).await {
                Ok(client) => client.send(&params).await,
                Err(error) => Err(error),
            };
            match answered {
                Ok(sent) => break sent.input,
                Err(error) => last = error.to_string(),
            }
            sleep(Duration::from_millis(100 + dice.below(300))).await;
        };
        sent.push(input);
        sleep(Duration::from_millis(dice.below(2_500))).await;
    }
    sent
}

/// What can go wrong.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Stop,
    CrashDatabase,
    /// The connections of a node to the database.
    Database(Line),
    /// The connections of other nodes to a node.
    Peers(Line),
    /// A jump of a node's wall clock, in seconds.
    Clock(i64),
}

impl Fault {
    /// Each in turn, in an order that the seed gives.
    fn all(dice: &mut Dice) -> Vec<Self> {
        let slow = Line::Slow(Duration::from_millis(20 + dice.below(300)));
        let jump = i64::try_from(dice.below(200_000)).unwrap_or_default() - 100_000;
        let mut all = vec![
            Self::Kill,
            Self::Kill,
            Self::Stop,
            Self::Stop,
            Self::CrashDatabase,
            Self::Clock(jump),
        ];
        all.extend([slow, Line::Silent, Line::HalfClosed, Line::Cut].map(Self::Database));
        all.extend([slow, Line::Silent, Line::HalfClosed, Line::Cut].map(Self::Peers));
        for last in (1..all.len()).rev() {
            all.swap(last, usize::try_from(dice.below(last as u64 + 1)).unwrap_or(last));
        }
        all
    }
}

/// Strikes until it has struck often enough. All nodes run afterwards, and all connections are whole.
async fn strike(nodes: &Mutex<Vec<Daemon>>, fleet: &Fleet, seed: u64, most: u64) -> Vec<String> {
    let mut dice = Dice::new(seed);
    let (mut struck, mut next) = (Vec::new(), Vec::new());
    for _ in 0..most {
        sleep(Duration::from_millis(1_000 + dice.below(2_000))).await;
        let node = dice.node();
        if next.is_empty() {
            next = Fault::all(&mut dice);
        }
        let Some(fault) = next.pop() else { break };
        struck.push(format!("node{node}: {fault:?}"));
        let links = &fleet.links[node];
        let for_a_while = Duration::from_millis(500 + dice.below(5_000));
        match fault {
            Fault::Kill => {
                let mut nodes = nodes.lock().await;
                nodes[node].kill().await;
                sleep(for_a_while).await;
                let mut again = nodes[node].again();
                assert!(again.ready_or_over().await, "{}", again.said());
                links.lead_to(&again).await;
                nodes[node] = again;
            }
            Fault::Stop => {
                let nodes = nodes.lock().await;
                nodes[node].signal(Signal::STOP);
                sleep(for_a_while).await;
                nodes[node].signal(Signal::CONT);
            }
            Fault::CrashDatabase => tokio::task::block_in_place(|| fleet.server.crash()),
            Fault::Clock(jump) => links.shift_clock(&format!("{jump:+}")),
            Fault::Database(line) => {
                links.database.set(line);
                sleep(for_a_while).await;
                links.heal();
            }
            Fault::Peers(line) => {
                links.peers.set(line);
                sleep(for_a_while).await;
                links.heal();
            }
        }
    }
    let used = fleet
        .links
        .iter()
        .all(|links| links.database.is_used() && links.peers.is_used());
    assert!(
        used,
        "the nodes do not reach each other and the database through the links"
    );
    struck
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_i2_i3_i4_i9_random_faults_lose_and_repeat_nothing() {
    let Some(mut fleet) = Fleet::disturbed("random faults of a fleet", NODES).await else {
        return;
    };
    let seed = number("AGENTD_SEED").unwrap_or(1);
    let faults = number("AGENTD_FAULTS_AT_RANDOM").unwrap_or(FAULTS);
    let many = number("AGENTD_SESSIONS_AT_RANDOM").unwrap_or(SESSIONS);
    let mut sessions = Vec::new();
    for place in 0..usize::try_from(many).unwrap_or(usize::MAX) {
        let words = format!("plan:s{place} steps=1 command=echo_first.{{n}}_>>_marks;");
        sessions.push(fleet.session(place % NODES, &format!("s{place}"), &words).await);
    }
    let sockets = Arc::new(fleet.nodes.iter().map(Daemon::socket).collect::<Vec<_>>());
    let calm = watch::channel(None).0;
    let nodes = Mutex::new(std::mem::take(&mut fleet.nodes));
    let clients = (0_u64..).zip(&sessions).map(|(place, session)| {
        let (sockets, session) = (Arc::clone(&sockets), session.clone());
        tokio::spawn(work(sockets, session, (place, seed), calm.subscribe()))
    });
    let clients = clients.collect::<Vec<_>>();
    let struck = strike(&nodes, &fleet, seed, faults).await;
    calm.send_replace(Some(Instant::now()));
    let sent = join_all(clients).await;
    fleet.nodes = nodes.into_inner();
    let told = format!("seed {seed}: {struck:?}");

    let client = fleet.client(0).await;
    let mut all = Vec::new();
    for (place, (session, inputs)) in sessions.iter().zip(sent).enumerate() {
        let inputs = inputs.unwrap_or_else(|error| panic!("{told}: {error}"));
        let mut follower = Follower::attach(&client, session).await;
        // A turn may have taken several inputs, so the end is the state, not a number of turns.
        let rests = async {
            loop {
                let row = client.get(session).await;
                if row.is_ok_and(|row| row.status.state.at_rest() && row.queue.is_empty()) {
                    break;
                }
                sleep(Duration::from_millis(200)).await;
            }
        };
        within(&format!("{told}: {session} rests"), rests).await;
        follower.turn_finished(1).await;
        let events = agentd_tests::check_log(&client, session).await;
        for input in &inputs {
            let accepted = events.iter().filter(|event| match &event.body {
                EventBody::InputAccepted(accepted) => accepted.input == *input,
                _ => false,
            });
            assert_eq!(accepted.count(), 1, "{told}: I1: {input} of {session}");
        }
        check_effects(&events, &fleet.workdir(&format!("s{place}")).join("marks"));
        all.push(events);
    }
    // Every node tells the same.
    for node in 1..NODES {
        let client = fleet.client(node).await;
        let logs = Logs::told(&client).await.unwrap();
        for events in &all {
            let session = events[0].session;
            assert_eq!(logs.0[&session], *events, "{told}: I2: {session} at node {node}");
        }
    }
}
