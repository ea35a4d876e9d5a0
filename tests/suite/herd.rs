//! Many sessions on one key, and a server that counts: nobody retries in a herd, and teams get their shares.

use agentd_protocol::{Block, CreateParams, EndReason, EventBody};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{Act, Acts, Asked, FaultServer, Say, Speech, http};
use agentd_tests::{Daemon, DaemonOptions, Follower, within};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::interval;

const SESSIONS: usize = 1_000;
/// What the server allows in a window.
const ALLOWED: usize = 200;
const WINDOW_MS: u64 = 1_000;
/// One connection has room for some hundred viewers.
const PER_CLIENT: usize = 200;

/// Counts requests by window: in all, and those that it refused.
#[derive(Debug, Default)]
struct Ledger {
    windows: BTreeMap<u64, (usize, usize)>,
}

impl Ledger {
    /// Counts one request. The milliseconds until the next window, if this one is full.
    fn full(&mut self, at_ms: u64) -> Option<u64> {
        let (asked, refused) = self.windows.entry(at_ms / WINDOW_MS).or_default();
        *asked += 1;
        (*asked > ALLOWED).then(|| {
            *refused += 1;
            WINDOW_MS - at_ms % WINDOW_MS
        })
    }
}

fn answer(asked: &Asked, ledger: &Mutex<Ledger>, tells_the_wait: bool) -> Acts {
    let speech = Speech(Dialect::OpenaiChat);
    let full = ledger.lock().unwrap().full(asked.at_ms);
    match full {
        None => speech.answer(&Say::text("Yes.")),
        Some(ms) if tells_the_wait => vec![http(429, &[("retry-after-ms", &ms.to_string())], "")],
        Some(_) => vec![http(429, &[], "")],
    }
}

/// Runs the thousand sessions; what the server counted, and how many attempts failed in all.
async fn herd(tells_the_wait: bool, config: &str) -> (Vec<(usize, usize)>, usize) {
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let counting = Arc::clone(&ledger);
    let server = FaultServer::start(move |asked| answer(asked, &counting, tells_the_wait)).await;
    let daemon = Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: format!("[model]\ndefault = \"gpt-test\"\n{config}"),
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
                let session = client.create(&params).await.unwrap().session.to_string();
                let mut follower = Follower::attach(&client, &session).await;
                let end = follower.turn_finished(1).await;
                let failed = |body: &EventBody| matches!(body, EventBody::ModelFailed(_));
                let failures = follower.events.iter().filter(|event| failed(&event.body));
                (end.reason, failures.count())
            });
        }
    }
    let (mut reasons, mut failures) = (BTreeMap::<String, usize>::new(), 0);
    while let Some(end) = running.join_next().await {
        let (reason, failed) = end.unwrap();
        *reasons.entry(format!("{reason:?}")).or_default() += 1;
        failures += failed;
    }
    let completed = format!("{:?}", EndReason::Completed);
    assert_eq!(reasons, BTreeMap::from([(completed, SESSIONS)]), "none fails");
    let counted = ledger.lock().unwrap().windows.values().copied().collect();
    (counted, failures)
}

/// In the first window nobody can know the limit, but no more than the permits allow run against it; later each window
/// sees little more than is allowed.
fn no_herd(counted: &[(usize, usize)], failures: usize) {
    let refused: usize = counted.iter().map(|(_, refused)| refused).sum();
    for (n, (asked, _)) in counted.iter().enumerate() {
        assert!(
            *asked <= ALLOWED + ALLOWED / 2,
            "window {n}: {asked} requests: {counted:?}"
        );
    }
    assert!(
        refused <= SESSIONS / 4,
        "{refused} refusals for {SESSIONS} answers: {counted:?}"
    );
    assert!(failures <= refused + SESSIONS / 10, "{failures}: {counted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_share_one_wait_that_the_server_names() {
    let (counted, failures) = herd(true, "[retry]\nbase_ms = 100\n").await;
    no_herd(&counted, failures);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_do_not_retry_in_a_herd_when_no_wait_is_named() {
    let (counted, failures) = herd(false, "[retry]\nbase_ms = 100\n").await;
    no_herd(&counted, failures);
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_of_weights_one_and_three_get_shares_of_one_and_three() {
    const EACH: usize = 150;
    const PERMITS: u64 = 8;
    const COUNTED: usize = 160;
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = Arc::clone(&order);
    let (all_wait, everybody) = watch::channel(false);
    let server = FaultServer::start(move |asked| {
        let speech = Speech(Dialect::OpenaiChat);
        if asked.number < PERMITS {
            // These hold all permits until everybody stands in line.
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
first_byte_ms = 120000
[scheduler]
weights = {{ research = 3.0, support = 1.0 }}
[providers.shared]
dialect = "openai-chat"
base_url = "{}/v1"
credentials = [{{ name = "main", env = "AGENTD_TEST_KEY" }}]
max_concurrent = {PERMITS}
[models.shared]
provider = "shared"
model = "shared-test"
"#,
        server.url()
    );
    let daemon = Daemon::start(DaemonOptions {
        config,
        ..DaemonOptions::default()
    })
    .await;
    one_turn_each(&daemon, EACH, PERMITS, all_wait).await;
    let order = order.lock().unwrap();
    let research = order.iter().take(COUNTED).filter(|research| **research).count();
    let wanted = COUNTED * 3 / 4;
    assert!(
        research.abs_diff(wanted) <= COUNTED / 10,
        "{research} of the first {COUNTED}, not about {wanted}: {order:?}"
    );
}

/// So many sessions of each team, all at once, to the end of their turns. Those with a permit are held until all others
/// wait for one.
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
                let session = client.create(&params).await.unwrap().session.to_string();
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
