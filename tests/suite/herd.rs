//! Many sessions on one key, and a server that counts: retries do not come in a herd, and teams get their shares.

use agentd_client::{Client, ClientError};
use agentd_protocol::{Block, CreateParams, EndReason, EventBody, FailureClass, FaultClass};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{Act, Acts, Asked, FaultServer, Say, Speech, http};
use agentd_tests::{Daemon, DaemonOptions, Follower, Heavy, within};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::interval;

const SESSIONS: usize = 1_000;
/// Maximum concurrent calls, and so the most that can be under way when the server closes.
const PERMITS: usize = 64;
/// Answers of the server until it closes.
const ALLOWED: usize = 200;
/// One connection supports a few hundred viewers.
const PER_CLIENT: usize = 100;
/// The most requests for one session. The daemon lets each wait for 10 s before it refuses it.
const TRIES: usize = 30;
/// How long it stays closed after its first refusal.
const CLOSED_MS: u64 = 1_000;
/// Clocks are read in whole milliseconds, by the server and by the daemon.
const ROUNDING_MS: u64 = 5;

/// A server that gives this many answers, closes for a while, and opens again.
#[derive(Debug, Default)]
struct Door {
    /// Answers since it last opened.
    answers: usize,
    opens_ms: Option<u64>,
    /// Refusals, by closure.
    refused: Vec<usize>,
}

impl Door {
    /// Counts one request. Returns the milliseconds until the server opens, if it is closed.
    fn closed(&mut self, at_ms: u64) -> Option<u64> {
        if self.opens_ms.is_some_and(|opens| opens <= at_ms) {
            (self.answers, self.opens_ms) = (0, None);
        }
        if self.answers < ALLOWED {
            self.answers += 1;
            return None;
        }
        if self.opens_ms.is_none() {
            self.refused.push(0);
        }
        if let Some(refused) = self.refused.last_mut() {
            *refused += 1;
        }
        let opens = *self.opens_ms.get_or_insert(at_ms + CLOSED_MS);
        Some(opens - at_ms + ROUNDING_MS)
    }
}

fn answer(asked: &Asked, door: &Mutex<Door>, tells_the_wait: bool) -> Acts {
    let speech = Speech(Dialect::OpenaiChat);
    let closed = door.lock().unwrap().closed(asked.at_ms);
    match closed {
        None => speech.answer(&Say::text("Yes.")),
        Some(ms) if tells_the_wait => vec![http(429, &[("retry-after-ms", &ms.to_string())], "")],
        Some(_) => vec![http(429, &[], "")],
    }
}

/// Creates a session. A daemon on a slow machine refuses what waits for too long behind hundreds of others.
async fn created(client: &Client, params: &CreateParams) -> String {
    for _ in 0..TRIES {
        match client.create(params).await {
            Err(ClientError::Refused(fault)) if fault.class == FaultClass::Unavailable => {}
            created => return created.unwrap().session.to_string(),
        }
    }
    client.create(params).await.unwrap().session.to_string()
}

/// Runs the thousand sessions; returns the refusals in each closure of the server, and the attempts that were lost to the
/// rate limit.
async fn herd(tells_the_wait: bool) -> (Vec<usize>, usize) {
    let _heavy = Heavy::begin().await;
    let door = Arc::new(Mutex::new(Door::default()));
    let asking = Arc::clone(&door);
    let server = FaultServer::start(move |asked| answer(asked, &asking, tells_the_wait)).await;
    let config = format!(
        r#"[model]
default = "shared"
[retry]
base_ms = 100
first_byte_ms = 120000
{}"#,
        shared(&server, PERMITS)
    );
    let daemon = Daemon::start(DaemonOptions {
        config,
        ..DaemonOptions::default()
    })
    .await;
    let mut running = JoinSet::new();
    for first in (0..SESSIONS).step_by(PER_CLIENT) {
        let client = daemon.client().await;
        for n in first..first + PER_CLIENT {
            let (client, workdir) = (client.clone(), daemon.workdir("all"));
            running.spawn(async move {
                let params = CreateParams {
                    prompt: Some(vec![Block::text(format!("Are you there? {n}"))]),
                    workdir,
                    ..CreateParams::default()
                };
                let session = created(&client, &params).await;
                let mut follower = Follower::attach(&client, &session).await;
                let end = follower.turn_finished(1).await;
                let limited = |body: &EventBody| matches!(body, EventBody::ModelFailed(failed) if failed.class == FailureClass::RateLimited);
                let lost = follower.events.iter().filter(|event| limited(&event.body));
                (end.reason, lost.count())
            });
        }
    }
    let (mut reasons, mut lost) = (BTreeMap::<String, usize>::new(), 0);
    while let Some(end) = running.join_next().await {
        let (reason, of_session) = end.unwrap();
        *reasons.entry(format!("{reason:?}")).or_default() += 1;
        lost += of_session;
    }
    let completed = format!("{:?}", EndReason::Completed);
    assert_eq!(reasons, BTreeMap::from([(completed, SESSIONS)]), "none fails");
    let refused = door.lock().unwrap().refused.clone();
    (refused, lost)
}

/// The first refusal stops all sessions: the server refuses only what was already under way, and no retry comes too early. A
/// session that only waited has lost nothing.
fn no_herd(refused: &[usize], lost: usize) {
    assert!(
        refused.len() + 1 >= SESSIONS / ALLOWED,
        "the server closed: {refused:?}"
    );
    assert!(
        refused.iter().all(|refused| *refused <= PERMITS),
        "refusals by closure: {refused:?}"
    );
    assert!(lost <= refused.iter().sum(), "{lost} lost attempts: {refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_share_one_wait_that_the_server_names() {
    let (refused, lost) = herd(true).await;
    no_herd(&refused, lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_do_not_retry_in_a_herd_when_no_wait_is_named() {
    let (refused, lost) = herd(false).await;
    no_herd(&refused, lost);
}

/// The provider and the model `shared`.
fn shared(server: &FaultServer, permits: usize) -> String {
    format!(
        r#"[providers.shared]
dialect = "openai-chat"
base_url = "{}/v1"
credentials = [{{ name = "main", env = "AGENTD_TEST_KEY" }}]
max_concurrent = {permits}
[models.shared]
provider = "shared"
model = "shared-test"
"#,
        server.url()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_of_weights_one_and_three_get_shares_of_one_and_three() {
    const EACH: usize = 150;
    const PERMITS: usize = 8;
    const COUNTED: usize = 160;
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = Arc::clone(&order);
    let (all_wait, everybody) = watch::channel(false);
    let server = FaultServer::start(move |asked| {
        let speech = Speech(Dialect::OpenaiChat);
        if asked.number < PERMITS as u64 {
            // These hold all permits until all calls are in line.
            let mut acts = speech.answer(&Say::text("Yes."));
            acts.insert(0, Act::Until(everybody.clone()));
            return acts;
        }
        let body = String::from_utf8_lossy(&asked.body);
        noting.lock().unwrap().push(body.contains("team research"));
        speech.answer(&Say::text("Yes."))
    })
    .await;
    let config = format!(
        r#"[model]
default = "shared"
[retry]
first_byte_ms = 1200000
[scheduler]
weights = {{ research = 3.0, support = 1.0 }}
{}"#,
        shared(&server, PERMITS)
    );
    let daemon = Daemon::start(DaemonOptions {
        config,
        ..DaemonOptions::default()
    })
    .await;
    one_turn_each(&daemon, EACH, PERMITS as u64, all_wait).await;
    let order = order.lock().unwrap();
    let research = order.iter().take(COUNTED).filter(|research| **research).count();
    let wanted = COUNTED * 3 / 4;
    assert!(
        research.abs_diff(wanted) <= COUNTED / 10,
        "{research} of the first {COUNTED}, not about {wanted}: {order:?}"
    );
}

/// Runs this many sessions of each team at once to the end of their turns. Those with a permit wait until all others
/// are in line.
async fn one_turn_each(daemon: &Daemon, each: usize, permits: u64, all_wait: watch::Sender<bool>) {
    let mut running = JoinSet::new();
    for team in ["support", "research"] {
        let client = daemon.client().await;
        for _ in 0..each {
            let (client, workdir) = (client.clone(), daemon.workdir("all"));
            running.spawn(async move {
                let params = CreateParams {
                    prompt: Some(vec![Block::text(format!("A question of team {team}."))]),
                    workdir,
                    labels: BTreeMap::from([("team".to_owned(), team.to_owned())]),
                    ..CreateParams::default()
                };
                let session = created(&client, &params).await;
                let mut follower = Follower::attach(&client, &session).await;
                assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
            });
        }
    }
    let client = daemon.client().await;
    let others = 2 * each as u64 - permits;
    let mut ticks = interval(Duration::from_millis(50));
    within("everybody stands in line", async {
        while client
            .models()
            .await
            .unwrap()
            .iter()
            .all(|model| u64::from(model.waiting) < others)
        {
            ticks.tick().await;
        }
    })
    .await;
    all_wait.send_replace(true);
    while let Some(end) = running.join_next().await {
        end.unwrap();
    }
}
