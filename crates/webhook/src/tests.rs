//! Notes sent to a local receiver.

use super::*;
use agentd_protocol::{
    ApprovalAsked, ApprovalEscalated, ApprovalId, ApprovalKind, Event, EventBody, Principal, Scope,
    SessionId, Timestamp,
};
use agentd_settings::{PermissionConfig, WebhookConfig};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A receiver that gives these answers, one per connection, and passes on the requests that it received.
async fn receiver(answers: &[&str]) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let (told, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut seen = Vec::new();
            let mut chunk = [0; 4096];
            loop {
                let text = String::from_utf8_lossy(&seen).to_lowercase();
                let length = text
                    .split("content-length: ")
                    .nth(1)
                    .and_then(|rest| rest.lines().next());
                let length: Option<usize> = length.and_then(|length| length.trim().parse().ok());
                let head = text.find("\r\n\r\n").map(|at| at + 4);
                if let (Some(head), Some(length)) = (head, length)
                    && seen.len() >= head + length
                {
                    break;
                }
                let read = stream.read(&mut chunk).await.unwrap();
                seen.extend_from_slice(&chunk[..read]);
            }
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
            told.send(String::from_utf8(seen).unwrap()).unwrap();
        }
    });
    (url, heard)
}

const TAKEN: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
const GONE: &str = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
const MOVED: &str = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";

fn event(body: impl Into<EventBody>) -> Event {
    Event {
        v: 1,
        session: SessionId::NIL,
        seq: 7,
        at: Timestamp(0),
        by: Principal::agentd(),
        turn: None,
        body: body.into(),
    }
}

fn asked(detail: &str) -> Event {
    event(ApprovalAsked {
        approval: ApprovalId::NIL,
        kind: ApprovalKind::Tool,
        tool_call: None,
        title: "Bash: make".into(),
        detail: detail.into(),
        choices: Vec::new(),
        scopes: vec![Scope::Once],
        expires_at: None,
        grant: None,
        binding: None,
        about: agentd_protocol::About::default(),
    })
}

fn escalated(level: u32) -> Event {
    event(ApprovalEscalated {
        approval: ApprovalId::NIL,
        level,
        expires_at: None,
    })
}

fn webhooks(url: &str, escalate_to: Vec<String>, secret: &str) -> Webhooks {
    let config = PermissionConfig {
        webhook: WebhookConfig {
            url: url.to_owned(),
            secret_env: if secret.is_empty() {
                String::new()
            } else {
                "HOOK".to_owned()
            },
            retries: 2,
            ..WebhookConfig::default()
        },
        escalate_to,
        ..PermissionConfig::default()
    };
    Webhooks::new(
        &config,
        |name| (name == "HOOK").then(|| secret.to_owned()),
        || Timestamp(1_700_000_000_000),
    )
    .unwrap()
    .unwrap()
}

fn header(request: &str, name: &str) -> Option<String> {
    let line = request
        .lines()
        .find(|line| line.to_lowercase().starts_with(&format!("{name}: ")))?;
    line.split_once(": ").map(|(_, value)| value.to_owned())
}

fn body(request: &str) -> &str {
    request.split("\r\n\r\n").nth(1).unwrap()
}

#[test]
fn redteam_42_a_note_says_how_much_it_leaves_out() {
    let note = |detail: &str| -> serde_json::Value {
        serde_json::from_str(&Note::of(&asked(detail)).unwrap().body).unwrap()
    };
    let long = "make all; ".repeat(3_000);
    let (cut, whole) = (note(&long), note("make"));
    assert_eq!((&cut["whole"], &whole["whole"]), (&false.into(), &true.into()));
    assert_eq!(cut["bytes"], long.len());
    assert_eq!(cut["sha256"], agentd_text::digest(&long));
}

#[tokio::test]
async fn a_question_is_posted_until_accepted_and_is_signed() {
    let (url, mut heard) = receiver(&[TAKEN]).await;
    webhooks(&url, Vec::new(), "a-secret-of-the-hook").send(&Note::of(&asked("make all")).unwrap());
    let request = heard.recv().await.unwrap();
    assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
    let told: Value = serde_json::from_str(body(&request)).unwrap();
    assert_eq!(told["type"], "approval.asked");
    assert_eq!(
        (&told["detail"], &told["seq"]),
        (&Value::from("make all"), &Value::from(7))
    );
    let seconds = header(&request, "x-agentd-timestamp").unwrap().parse().unwrap();
    assert_eq!(
        header(&request, "x-agentd-signature"),
        signature(b"a-secret-of-the-hook", seconds, body(&request))
    );
    assert!(!request.contains("a-secret-of-the-hook"));
}

#[tokio::test]
async fn i6_a_busy_receiver_is_retried_with_the_same_key_and_a_refusal_is_final() {
    let (url, mut heard) = receiver(&[BUSY, TAKEN]).await;
    webhooks(&url, Vec::new(), "").send(&Note::of(&asked("x")).unwrap());
    let (first, second) = (heard.recv().await.unwrap(), heard.recv().await.unwrap());
    let key = header(&first, "x-agentd-delivery");
    assert!(key.is_some() && key == header(&second, "x-agentd-delivery"));
    assert_eq!(header(&first, "x-agentd-signature"), None);
    for answer in [GONE, MOVED] {
        // A second connection would be answered and thus noticed.
        let (url, mut heard) = receiver(&[answer, TAKEN]).await;
        let hooks = webhooks(&url, Vec::new(), "");
        hooks.send(&Note::of(&asked("x")).unwrap());
        assert!(heard.recv().await.is_some());
        hooks.send(&Note::of(&escalated(1)).unwrap());
        let next = heard.recv().await.unwrap();
        assert!(body(&next).contains("approval.escalated"), "{next}");
    }
}

#[tokio::test]
async fn each_level_is_notified_and_the_webhook_gets_everything() {
    let (all, mut hears_all) = receiver(&[TAKEN, TAKEN]).await;
    let (first, mut hears_first) = receiver(&[TAKEN]).await;
    let (second, mut hears_second) = receiver(&[TAKEN]).await;
    let hooks = webhooks(&all, vec![first, second], "");
    hooks.send(&Note::of(&escalated(1)).unwrap());
    assert!(hears_first.recv().await.unwrap().contains("\"level\":1"));
    assert!(hears_all.recv().await.is_some());
    hooks.send(&Note::of(&escalated(2)).unwrap());
    assert!(hears_second.recv().await.unwrap().contains("\"level\":2"));
    assert!(hears_all.recv().await.is_some());
}

#[test]
fn i8_a_note_has_no_credential_and_is_bounded() {
    agentd_text::register_secret("canary-of-the-webhook-test");
    let note = Note::of(&asked(&format!(
        "echo canary-of-the-webhook-test {}",
        "ä".repeat(100_000)
    )))
    .unwrap();
    assert!(!note.body.contains("canary-of-the-webhook-test"));
    assert!(note.body.len() < 20_000, "{}", note.body.len());
    assert_eq!(note.key, format!("{}.0", ApprovalId::NIL));
}

#[test]
fn i7_a_missing_secret_prevents_the_start() {
    let mut config = PermissionConfig::default();
    assert!(
        Webhooks::new(&config, |_| None, || Timestamp(0))
            .unwrap()
            .is_none(),
        "no note is sent"
    );
    config.webhook.url = "https://example.org/".to_owned();
    assert!(
        Webhooks::new(&config, |_| None, || Timestamp(0))
            .unwrap()
            .is_some()
    );
    config.webhook.secret_env = "HOOK".to_owned();
    for missing in [None, Some(String::new())] {
        let refused = Webhooks::new(&config, |_| missing.clone(), || Timestamp(0)).unwrap_err();
        assert!(refused.to_string().contains("HOOK"), "{refused}");
    }
}

#[tokio::test]
async fn i6_undelivered_notes_are_bounded() {
    // A receiver that never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hooks = webhooks(
        &format!("http://{}/", listener.local_addr().unwrap()),
        Vec::new(),
        "",
    );
    let note = Note::of(&asked("x")).unwrap();
    for _ in 0..1_000 {
        hooks.send(&note);
    }
    assert_eq!(hooks.on_the_way(), 256, "the rest is dropped");
}
