//! Attacks on signed requests. Each shows that the request it begins with is accepted: the one change is what is refused.

use crate::file::judge;
use crate::key::hex;
use crate::nonces::{Nonces, Noted};
use crate::request::{Envelope, opened, sealed};
use crate::{
    Arrived, Expected, Here, Identity, KeyFileError, Keys, NodeKey, Outgoing, Proof, Refusal, Signed,
    Verified, Verifier, read_or_create, replace, sign_answer,
};
use agentd_protocol::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use std::os::unix::fs::PermissionsExt as _;

const BODY: &[u8] = br#"{"method":"session.get","params":{}}"#;
const PATH: &str = "/v1/node/call";
const WINDOW: u64 = 30_000;
const NOW: u64 = 1_000_000;

fn node(name: &str, incarnation: u64) -> Identity {
    Identity {
        name: name.to_owned(),
        incarnation,
    }
}

/// The key of the sender `web1`, and what the receiver `web2` knows.
struct Stage {
    key: NodeKey,
    keys: Keys,
    verifier: Verifier,
}

impl Stage {
    fn new() -> Self {
        let key = NodeKey::random().unwrap();
        Self {
            keys: [(node("web1", 5), key.public())].into_iter().collect(),
            key,
            verifier: Verifier::default(),
        }
    }

    fn outgoing() -> Outgoing<'static> {
        Outgoing {
            method: "POST",
            path: PATH,
            body: BODY,
            to: node("web2", 7),
            from: node("web1", 5),
            at: Timestamp(NOW),
            by: Proof::User("ana".to_owned()),
        }
    }

    fn signed(&self) -> Signed {
        Self::outgoing().sign(&self.key).unwrap()
    }

    fn arrives_at(&self, authorization: &str, place: (&str, &str), here: &Here) -> Result<Verified, Refusal> {
        let arrived = Arrived {
            method: place.0,
            path: place.1,
            authorization,
        };
        let vouched = self.verifier.vouch(&arrived, here, &self.keys)?;
        vouched.with(Bytes::from_static(BODY))
    }

    fn arrives(&self, authorization: &str) -> Result<Verified, Refusal> {
        self.arrives_at(authorization, ("POST", PATH), &here(NOW))
    }

    /// The header after an attacker changed the envelope, and, if it has a key, signed again.
    fn altered(&self, change: impl FnOnce(&mut Envelope), with: Option<&NodeKey>) -> String {
        let authorization = self.signed().authorization;
        let (mut envelope, _, signature) = opened(&authorization).unwrap();
        change(&mut envelope);
        match with {
            Some(key) => sealed(&envelope, key).unwrap(),
            None => {
                let bytes = serde_json::to_vec(&envelope).unwrap();
                format!(
                    "Agentd-Node {}.{}",
                    BASE64.encode(bytes),
                    BASE64.encode(signature)
                )
            }
        }
    }
}

fn here(now: u64) -> Here {
    Here {
        node: node("web2", 7),
        now: Timestamp(now),
        window_ms: WINDOW,
        most: 100,
    }
}

fn refusal(done: Result<Verified, Refusal>) -> Refusal {
    done.map(drop).unwrap_err()
}

#[test]
fn a_signed_request_is_accepted_with_what_was_signed() {
    let stage = Stage::new();
    let verified = stage.arrives(&stage.signed().authorization).unwrap();
    assert_eq!(
        (verified.from(), verified.by()),
        (&node("web1", 5), &Proof::User("ana".to_owned()))
    );
    let body: serde_json::Value = verified.read().unwrap();
    assert_eq!(body["method"], "session.get");
}

#[test]
fn i7_a_request_is_accepted_once() {
    let stage = Stage::new();
    let signed = stage.signed().authorization;
    assert!(stage.arrives(&signed).is_ok());
    assert_eq!(refusal(stage.arrives(&signed)), Refusal::Replay);
    // As long as its time is good: then that refuses it.
    let last = stage.arrives_at(&signed, ("POST", PATH), &here(NOW + WINDOW));
    assert_eq!(refusal(last), Refusal::Replay);
    let late = stage.arrives_at(&signed, ("POST", PATH), &here(NOW + WINDOW + 1));
    assert_eq!(refusal(late), Refusal::Time(WINDOW + 1));
    // A receiver that did not remember it would accept it.
    let forgetful = Stage {
        verifier: Verifier::default(),
        ..stage
    };
    assert!(forgetful.arrives(&signed).is_ok());
}

#[test]
fn i7_a_request_is_good_for_its_node_alone() {
    let stage = Stage::new();
    for other in [
        node("web3", 7),
        node("web2", 8),
        node("web2", 6),
        node("WEB2", 7),
        node("", 7),
    ] {
        let signed = stage.signed().authorization;
        let at = |node: Identity| Here { node, ..here(NOW) };
        let elsewhere = stage.arrives_at(&signed, ("POST", PATH), &at(other.clone()));
        assert_eq!(refusal(elsewhere), Refusal::Target(node("web2", 7)), "{other:?}");
        assert!(
            stage
                .arrives_at(&signed, ("POST", PATH), &at(node("web2", 7)))
                .is_ok()
        );
    }
}

#[test]
fn i7_a_request_is_good_for_its_method_and_path_alone() {
    let stage = Stage::new();
    for place in [
        ("POST", "/v1/node/follow"),
        ("POST", "/v1/node/call/"),
        ("POST", "/v1/node/call?x=1"),
        ("GET", PATH),
        ("post", PATH),
    ] {
        let signed = stage.signed().authorization;
        assert_eq!(
            refusal(stage.arrives_at(&signed, place, &here(NOW))),
            Refusal::Place,
            "{place:?}"
        );
        assert!(stage.arrives(&signed).is_ok());
    }
}

#[test]
fn i7_a_request_is_good_within_the_window_alone() {
    let at = |now: u64| {
        let stage = Stage::new();
        let signed = stage.signed().authorization;
        stage.arrives_at(&signed, ("POST", PATH), &here(now)).map(drop)
    };
    // Both edges, of a clock that is behind and of one that is ahead.
    assert_eq!(at(NOW + WINDOW), Ok(()));
    assert_eq!(at(NOW + WINDOW + 1), Err(Refusal::Time(WINDOW + 1)));
    assert_eq!(at(NOW - WINDOW), Ok(()));
    assert_eq!(at(NOW - WINDOW - 1), Err(Refusal::Time(WINDOW + 1)));
    assert_eq!(at(u64::MAX), Err(Refusal::Time(u64::MAX - NOW)));
}

#[test]
fn i7_another_body_is_refused() {
    let stage = Stage::new();
    for body in [
        &b""[..],
        b"{}",
        br#"{"method":"session.get","params":{} }"#,
        br#"{"method":"session.delete","params":{}}"#,
    ] {
        let signed = stage.signed().authorization;
        let arrived = Arrived {
            method: "POST",
            path: PATH,
            authorization: &signed,
        };
        let vouched = stage.verifier.vouch(&arrived, &here(NOW), &stage.keys).unwrap();
        let changed = vouched.with(Bytes::copy_from_slice(body)).map(drop);
        assert_eq!(changed, Err(Refusal::Body), "{}", hex(body));
    }
    assert!(stage.arrives(&stage.signed().authorization).is_ok());
}

#[test]
fn i7_every_field_of_a_request_is_signed() {
    let stage = Stage::new();
    let changes: [fn(&mut Envelope); 8] = [
        |envelope| envelope.by = Proof::User("root".to_owned()),
        |envelope| envelope.by = Proof::Node,
        |envelope| {
            envelope.by = Proof::Token {
                name: "admin".to_owned(),
                hash: [7; 32],
            }
        },
        |envelope| envelope.path = "/v1/node/follow".to_owned(),
        |envelope| envelope.body = [0; 32],
        |envelope| envelope.to.incarnation = 8,
        |envelope| envelope.at = Timestamp(NOW + 1),
        |envelope| envelope.nonce[0] ^= 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let forged = stage.altered(change, None);
        assert_eq!(refusal(stage.arrives(&forged)), Refusal::Signature, "{number}");
    }
    // The forgery itself is well made: unchanged, it is accepted.
    assert!(stage.arrives(&stage.altered(|_| {}, None)).is_ok());
    // And so is a change by who has the key.
    let forged = stage.altered(|envelope| envelope.by = Proof::Node, Some(&stage.key));
    assert_eq!(stage.arrives(&forged).unwrap().by(), &Proof::Node);
}

#[test]
fn i7_a_key_that_the_fleet_does_not_have_is_refused() {
    let mut stage = Stage::new();
    let own = NodeKey::random().unwrap();
    // It names its own key, or that of the node whose name it uses.
    let named = stage.altered(|envelope| envelope.key = own.public(), Some(&own));
    assert_eq!(
        refusal(stage.arrives(&named)),
        Refusal::UnknownKey("web1".to_owned())
    );
    let posing = stage.altered(|_| {}, Some(&own));
    assert_eq!(refusal(stage.arrives(&posing)), Refusal::Signature);
    // The key of a node is none of another node, or of another start of it.
    for from in [node("web3", 5), node("web1", 4), node("web2", 7)] {
        let name = from.name.clone();
        let other = stage.altered(|envelope| envelope.from = from, Some(&stage.key));
        assert_eq!(refusal(stage.arrives(&other)), Refusal::UnknownKey(name));
    }
    let accepted = stage.altered(|_| {}, Some(&stage.key));
    assert!(stage.arrives(&accepted).is_ok());
    // Removed.
    stage.keys = Keys::default();
    let removed = stage.signed().authorization;
    assert_eq!(
        refusal(stage.arrives(&removed)),
        Refusal::UnknownKey("web1".to_owned())
    );
}

#[test]
fn i7_what_the_database_holds_is_no_credential() {
    let stage = Stage::new();
    let public = stage.key.public();
    let token = [7; 32];
    for guess in [
        String::new(),
        format!("Bearer {public}"),
        format!("Bearer {}", hex(&token)),
        format!("{public}"),
        "Basic d2ViMTo=".to_owned(),
        format!(
            "agentd-node {}",
            stage.signed().authorization.split_once(' ').unwrap().1
        ),
    ] {
        assert_eq!(refusal(stage.arrives(&guess)), Refusal::Unsigned, "{guess}");
    }
    let header = stage.signed().authorization;
    let (bytes, signature) = header.split_once(' ').unwrap().1.split_once('.').unwrap();
    for forged in [
        format!("Agentd-Node {bytes}"),
        format!("Agentd-Node {signature}.{bytes}"),
        format!("Agentd-Node {bytes}.{signature}.{signature}"),
        format!("Agentd-Node {bytes}={signature}"),
        format!("Agentd-Node {}.{signature}", "A".repeat(9_000)),
    ] {
        assert_eq!(refusal(stage.arrives(&forged)), Refusal::Malformed, "{forged}");
    }
    for empty in [
        String::new(),
        BASE64.encode(public.to_string()),
        BASE64.encode([0; 64]),
    ] {
        let forged = format!("Agentd-Node {bytes}.{empty}");
        assert_eq!(refusal(stage.arrives(&forged)), Refusal::Signature, "{empty}");
    }
    // The public key as a seed is another key.
    let seed = crate::key::unhex(&public.to_string())
        .and_then(NodeKey::from_seed)
        .unwrap();
    let forged = stage.altered(|_| {}, Some(&seed));
    assert_eq!(refusal(stage.arrives(&forged)), Refusal::Signature);
    assert!(stage.arrives(&header).is_ok());
}

#[test]
fn i6_i7_the_memory_of_requests_is_bounded_and_full_means_refused() {
    let mut nonces = Nonces::default();
    let nonce = |number: u8| [number; 16];
    assert_eq!(nonces.note(nonce(1), 10, 0, 2), Noted::New);
    assert_eq!(nonces.note(nonce(2), 20, 0, 2), Noted::New);
    assert_eq!(nonces.note(nonce(3), 20, 10, 2), Noted::Full);
    assert_eq!(nonces.note(nonce(1), 10, 10, 2), Noted::Again);
    // The first can be repeated no more.
    assert_eq!(nonces.note(nonce(3), 20, 11, 2), Noted::New);
    assert_eq!(nonces.note(nonce(2), 20, 20, 2), Noted::Again);
    let stage = Stage::new();
    let full = Here { most: 0, ..here(NOW) };
    let refused = stage.arrives_at(&stage.signed().authorization, ("POST", PATH), &full);
    assert_eq!(refusal(refused), Refusal::Full);
}

#[test]
fn i7_an_answer_is_good_for_its_request_alone() {
    let stage = Stage::new();
    let (signed, other) = (stage.signed(), stage.signed());
    let receiver = NodeKey::random().unwrap();
    let request = stage.arrives(&signed.authorization).unwrap();
    let proof = sign_answer(&receiver, &request, b"{\"ok\":1}");
    let expected = Expected::from(&signed);
    assert_eq!(expected.signer(&proof, b"{\"ok\":1}"), Ok(receiver.public()));
    assert!(expected.signer(&proof, b"{\"ok\":2}").is_err());
    assert!(Expected::from(&other).signer(&proof, b"{\"ok\":1}").is_err());
    let stranger = NodeKey::random().unwrap();
    let own = sign_answer(&stranger, &request, b"{\"ok\":1}");
    // It is signed, but by whom the caller does not expect.
    assert_eq!(expected.signer(&own, b"{\"ok\":1}"), Ok(stranger.public()));
    let posing = format!("{}.{}", receiver.public(), own.split_once('.').unwrap().1);
    for bad in ["", "x", &posing, &format!("{}.", receiver.public())] {
        assert!(expected.signer(bad, b"{\"ok\":1}").is_err(), "{bad}");
    }
}

#[test]
fn i8_only_the_user_can_read_the_file_of_a_key_and_only_the_file_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let key = read_or_create(dir.path()).unwrap();
    let path = dir.path().join("node.key");
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    assert_eq!(read_or_create(dir.path()).unwrap().public(), key.public());
    for wider in [0o640, 0o604, 0o660, 0o644, 0o610, 0o601, 0o700] {
        mode(wider);
        let refused = read_or_create(dir.path()).map(drop).unwrap_err();
        assert!(matches!(refused, KeyFileError::Mode { .. }), "{wider:o}");
        assert!(!refused.to_string().contains(&key.expose()));
    }
    mode(0o400);
    assert!(read_or_create(dir.path()).is_ok());
    mode(0o600);
    let other = NodeKey::random().unwrap();
    replace(dir.path(), &other).unwrap();
    assert_eq!(read_or_create(dir.path()).unwrap().public(), other.public());
    assert!(!format!("{other:?}").contains(&other.expose()));
    assert!(matches!(
        judge(&path, (0, 0o600), 1_000),
        Err(KeyFileError::Owner { owner: 0, .. })
    ));
    assert!(judge(&path, (1_000, 0o100_600), 1_000).is_ok());
}

#[test]
fn i7_a_link_or_other_content_is_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    read_or_create(elsewhere.path()).unwrap();
    let path = dir.path().join("node.key");
    std::os::unix::fs::symlink(elsewhere.path().join("node.key"), &path).unwrap();
    assert!(matches!(read_or_create(dir.path()), Err(KeyFileError::Io { .. })));
    for content in ["", "x", &"0".repeat(63), &"0".repeat(65), &"G".repeat(64)] {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let refused = read_or_create(dir.path()).map(drop).unwrap_err();
        assert!(matches!(refused, KeyFileError::Content { .. }), "{content}");
    }
    // The same place with a key.
    std::fs::write(&path, NodeKey::random().unwrap().expose()).unwrap();
    assert!(read_or_create(dir.path()).is_ok());
}
