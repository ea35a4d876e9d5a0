//! Who can act as a node: attacks with what the database, a node and a token hold. Each test shows first that the request
//! which the attack changes is accepted.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::fleet::Fleet;
use agentd_node_keys::{Expected, Identity, NodeKey, Outgoing, Proof, Signed, read_or_create};
use agentd_protocol::Timestamp;
use agentd_tests::{Follower, found};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CALL: &str = "/v1/node/call";

#[expect(
    clippy::disallowed_methods,
    reason = "the nodes compare with the system's clock"
)]
fn now() -> Timestamp {
    let ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    Timestamp(u64::try_from(ms).unwrap())
}

/// A node as the database knows it now.
fn identity(fleet: &Fleet, name: &str) -> Identity {
    let sql = format!("SELECT max(id) FROM agentd.node WHERE name = '{name}'");
    Identity {
        name: name.to_owned(),
        incarnation: fleet.server.run("fleet", &sql).parse().unwrap(),
    }
}

/// An attacker that sends requests to `node0`, as `node1` does.
struct Attacker<'a> {
    fleet: &'a Fleet,
    http: reqwest::Client,
    body: Value,
}

impl<'a> Attacker<'a> {
    fn new(fleet: &'a Fleet) -> Self {
        Self {
            fleet,
            http: agentd_provider::http_client(Duration::from_secs(60)).unwrap(),
            body: json!({ "method": "session.list", "params": {} }),
        }
    }

    fn signed(&self, key: &NodeKey, change: impl FnOnce(&mut Outgoing<'_>)) -> Signed {
        let body = self.body.to_string();
        let mut outgoing = Outgoing {
            method: "POST",
            path: CALL,
            body: body.as_bytes(),
            to: identity(self.fleet, "node0"),
            from: identity(self.fleet, "node1"),
            at: now(),
            by: Proof::User("ana".to_owned()),
        };
        change(&mut outgoing);
        outgoing.sign(key).unwrap()
    }

    async fn sends(&self, authorization: &str, path: &str, body: &Value) -> (u16, String, Value) {
        let url = format!("{}{path}", self.fleet.nodes[0].http().await);
        let request = self.http.post(url).header("authorization", authorization);
        let answer = request.body(body.to_string()).send().await.unwrap();
        let (status, proof) = (
            answer.status().as_u16(),
            answer.headers().get("agentd-node-answer").cloned(),
        );
        let text = answer.text().await.unwrap();
        let proof = proof.map(|proof| proof.to_str().unwrap().to_owned());
        (
            status,
            proof.unwrap_or_default(),
            serde_json::from_str(&text).unwrap_or_default(),
        )
    }

    async fn call(&self, signed: &Signed) -> (u16, Value) {
        let (status, _, answer) = self.sends(&signed.authorization, CALL, &self.body).await;
        (status, answer)
    }

    /// The status and the code of a request that is refused.
    async fn refused(&self, signed: &Signed) -> (u16, String) {
        let (status, answer) = self.call(signed).await;
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    }
}

fn denied(code: &str) -> (u16, String) {
    (401, code.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_what_the_database_holds_opens_no_node() {
    let Some(fleet) = Fleet::steady("a stolen database", 2, "").await else {
        return;
    };
    let id = fleet.session(0, "s", "plan:s steps=0;").await;
    Follower::attach(&fleet.client(0).await, &id)
        .await
        .turn_finished(1)
        .await;
    let made = fleet.nodes[0]
        .agentctl(&["token", "create", "ci", "--scope", "read,steer,approve,admin"])
        .await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let attacker = Attacker::new(&fleet);
    // Every value of the tables about nodes and tokens.
    let sql = "SELECT value FROM (SELECT to_jsonb(n) AS row FROM agentd.node n UNION ALL SELECT to_jsonb(k) FROM agentd.node_key k
         UNION ALL SELECT to_jsonb(t) || jsonb_build_object('hex', encode(t.hash, 'hex')) FROM agentd.token t) AS rows,
         jsonb_each_text(row) WHERE value <> ''";
    let held = fleet.server.run("fleet", sql);
    let values: Vec<&str> = held.lines().collect();
    assert!(values.len() > 10, "{held}");
    for value in values.iter().filter(|value| value.is_ascii()) {
        for header in [
            format!("Bearer {value}"),
            format!("Agentd-Node {value}"),
            format!("Agentd-Node {value}.{value}"),
        ] {
            let (status, _, answer) = attacker.sends(&header, CALL, &attacker.body).await;
            assert!([401, 426].contains(&status), "{header}: {answer}");
            let (status, _, answer) = attacker.sends(&header, "/v1/node/follow", &json!({})).await;
            assert!([401, 426].contains(&status), "{header}: {answer}");
        }
    }
    // The files of the nodes hold what the database does not: with it, the same request is accepted.
    let key = read_or_create(&fleet.nodes[1].data_dir()).unwrap();
    assert!(!held.contains(&key.expose()));
    assert!(held.contains(&key.public().to_string()));
    let (status, answer) = attacker.call(&attacker.signed(&key, |_| {})).await;
    assert_eq!(
        (status, answer["ok"][0]["session"].as_str()),
        (200, Some(id.as_str())),
        "{answer}"
    );
    for node in [0, 1] {
        assert!(!fleet.log(node).contains(&key.expose()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_signed_request_is_good_once_for_what_it_says() {
    let Some(fleet) = Fleet::steady("signed requests", 2, "").await else {
        return;
    };
    let attacker = Attacker::new(&fleet);
    let key = read_or_create(&fleet.nodes[1].data_dir()).unwrap();
    let good = attacker.signed(&key, |_| {});
    let (status, proof, answer) = attacker.sends(&good.authorization, CALL, &attacker.body).await;
    assert_eq!(status, 200, "{answer}");
    // The answer is that of the node, to this request.
    let own = read_or_create(&fleet.nodes[0].data_dir()).unwrap();
    let signer = |request: &Signed| Expected::from(request).signer(&proof, answer.to_string().as_bytes());
    assert_eq!(signer(&good), Ok(own.public()));
    assert!(signer(&attacker.signed(&key, |_| {})).is_err());
    assert_eq!(attacker.refused(&good).await, denied("replayed"));
    let other = attacker.signed(&key, |request| request.to = identity(&fleet, "node1"));
    assert_eq!(attacker.refused(&other).await, denied("wrong_node"));
    let before = attacker.signed(&key, |request| request.to.incarnation -= 1);
    assert_eq!(attacker.refused(&before).await, denied("wrong_node"));
    for ms in [31_000, 3_600_000] {
        let stale = attacker.signed(&key, |request| request.at = Timestamp(request.at.0 - ms));
        assert_eq!(attacker.refused(&stale).await, denied("clock_skew"));
        let early = attacker.signed(&key, |request| request.at = request.at.plus_ms(ms));
        assert_eq!(attacker.refused(&early).await, denied("clock_skew"));
    }
    let altered = attacker.signed(&key, |_| {}).authorization;
    let body = json!({ "method": "node.stop", "params": {} });
    let (status, _, answer) = attacker.sends(&altered, CALL, &body).await;
    assert_eq!((status, answer["code"].as_str()), (401, Some("bad_node_request")));
    for path in ["/v1/node/follow", "/v1/node/call?x=1"] {
        let altered = attacker.signed(&key, |_| {}).authorization;
        let (status, _, answer) = attacker.sends(&altered, path, &attacker.body).await;
        assert_eq!(
            (status, answer["code"].as_str()),
            (401, Some("bad_node_request")),
            "{path}"
        );
    }
    let stranger = NodeKey::random().unwrap();
    assert_eq!(
        attacker.refused(&attacker.signed(&stranger, |_| {})).await,
        denied("unknown_node_key")
    );
    let posing = attacker.signed(&key, |request| request.from = identity(&fleet, "node0"));
    assert_eq!(attacker.refused(&posing).await, denied("unknown_node_key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_stolen_node_administers_no_other_one() {
    let Some(fleet) = Fleet::steady("a stolen node", 2, "").await else {
        return;
    };
    let key = read_or_create(&fleet.nodes[1].data_dir()).unwrap();
    let list = Attacker::new(&fleet);
    let (status, answer) = list.call(&list.signed(&key, |_| {})).await;
    assert_eq!((status, &answer["ok"]), (200, &json!([])), "{answer}");
    let token = Proof::Token {
        name: "ci".to_owned(),
        hash: [7; 32],
    };
    let (status, answer) = list.call(&list.signed(&key, |request| request.by = token)).await;
    let said = answer["fault"]["code"].as_str();
    assert_eq!((status, said), (200, Some("bad_token")), "{answer}");
    let stop = Attacker {
        body: json!({ "method": "node.stop", "params": {} }),
        ..list
    };
    let (status, answer) = stop.call(&stop.signed(&key, |_| {})).await;
    let said = answer["fault"]["code"].as_str();
    assert_eq!((status, said), (200, Some("beyond_node")), "{answer}");
}

async fn key_command(fleet: &Fleet, node: usize, args: &[&str]) -> (Option<i32>, String) {
    let args: Vec<&str> = ["node", "key"].iter().chain(args).copied().collect();
    let done = fleet.nodes[node].agentctl(&args).await;
    (done.code, done.stderr)
}

async fn sent(fleet: &Fleet, node: usize, id: &str, words: &str) {
    let done = fleet.nodes[node].agentctl(&["send", id, words]).await;
    assert_eq!(done.code, Some(0), "{words}: {}", done.stderr);
}

/// Removes the key of `node1`, which has had these.
async fn removed(fleet: &Fleet, keys: [&NodeKey; 2]) {
    assert_eq!(
        key_command(fleet, 0, &["remove", "node0"]).await.0,
        Some(2),
        "its own key"
    );
    assert_eq!(key_command(fleet, 0, &["remove", "nobody"]).await.0, Some(3));
    assert_eq!(
        key_command(fleet, 0, &["admit", "node1"]).await.0,
        Some(3),
        "it was not removed"
    );
    let done = key_command(fleet, 0, &["remove", "node1"]).await;
    assert_eq!(done.0, Some(0), "{}", done.1);
    {
        let attacker = Attacker::new(fleet);
        for key in keys {
            let refused = attacker.refused(&attacker.signed(key, |_| {})).await;
            assert_eq!(refused, denied("unknown_node_key"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_keys_are_replaced_and_removed_and_a_removed_one_stays_so() {
    let Some(mut fleet) = Fleet::steady("keys of nodes", 2, "").await else {
        return;
    };
    let id = fleet.session(0, "s", "plan:s steps=0;").await;
    let first = fleet.client(0).await;
    Follower::attach(&first, &id).await.turn_finished(1).await;
    let data_dir = fleet.nodes[1].data_dir();
    let old = read_or_create(&data_dir).unwrap();
    sent(&fleet, 1, &id, "plan:before steps=0;").await;
    let done = key_command(&fleet, 1, &["rotate"]).await;
    assert_eq!(done.0, Some(0), "{}", done.1);
    let new = read_or_create(&data_dir).unwrap();
    assert_ne!(old.public(), new.public());
    sent(&fleet, 1, &id, "plan:after steps=0;").await;
    Follower::attach(&first, &id).await.turn_finished(3).await;
    {
        // A request that was on its way.
        let attacker = Attacker::new(&fleet);
        assert_eq!(attacker.call(&attacker.signed(&old, |_| {})).await.0, 200);
        let late = "UPDATE agentd.node_key SET until = clock_timestamp() WHERE removed";
        fleet.server.run("fleet", late);
        found("the old key is refused", async || {
            let refused = attacker.refused(&attacker.signed(&old, |_| {})).await;
            (refused == denied("unknown_node_key")).then_some(())
        })
        .await;
        assert_eq!(attacker.call(&attacker.signed(&new, |_| {})).await.0, 200);
    }
    removed(&fleet, [&old, &new]).await;
    fleet.nodes[1].kill().await;
    let refused = async |fleet: &Fleet| {
        let mut again = fleet.nodes[1].again();
        assert_eq!(again.ended().await.code(), Some(69), "{}", again.said());
        assert!(again.said().contains("was removed"), "{}", again.said());
    };
    refused(&fleet).await;
    // With a new key, before it is admitted; then with the old one, although the node is admitted.
    std::fs::rename(data_dir.join("node.key"), data_dir.join("kept")).unwrap();
    refused(&fleet).await;
    let done = key_command(&fleet, 0, &["admit", "node1"]).await;
    assert_eq!(done.0, Some(0), "{}", done.1);
    std::fs::rename(data_dir.join("kept"), data_dir.join("node.key")).unwrap();
    refused(&fleet).await;
    std::fs::remove_file(data_dir.join("node.key")).unwrap();
    let mut again = fleet.nodes[1].again();
    assert!(again.ready_or_over().await, "{}", again.said());
    fleet.nodes[1] = again;
    sent(&fleet, 1, &id, "plan:admitted steps=0;").await;
    let audit = std::fs::read_to_string(fleet.nodes[0].data_dir().join("logs/audit.jsonl")).unwrap();
    for event in ["node.key_removed", "node.key_admitted", "node.relayed"] {
        assert!(audit.contains(event), "{event}: {audit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i8_a_node_whose_key_others_can_read_does_not_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(mut fleet) = Fleet::steady("a key that others can read", 1, "").await else {
        return;
    };
    let path = fleet.nodes[0].data_dir().join("node.key");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    fleet.nodes[0].terminate();
    fleet.nodes[0].ended().await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let mut again = fleet.nodes[0].again();
    assert_eq!(again.ended().await.code(), Some(1));
    assert!(again.said().contains("0640"), "{}", again.said());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut again = fleet.nodes[0].again();
    assert!(again.ready_or_over().await, "{}", again.said());
}
