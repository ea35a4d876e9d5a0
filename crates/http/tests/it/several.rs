//! Several sessions and the fleet on one stream.

use crate::server::Http;
use crate::streaming::{Events, Sse};
use agentd_protocol::SessionId;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The state of a client: the seqs of each session, the cursors of the fleet, and the id of its last event.
#[derive(Default)]
struct Client {
    seqs: BTreeMap<String, Vec<u64>>,
    fleet: Vec<u64>,
    synced: BTreeSet<String>,
    last: String,
}

impl Client {
    fn take(&mut self, sse: &Sse) {
        let data: Value = serde_json::from_str(&sse.data).unwrap();
        let of = |data: &Value| data["session"].as_str().unwrap_or("fleet").to_owned();
        match sse.event.as_str() {
            "" => self
                .seqs
                .entry(of(&data))
                .or_default()
                .push(data["seq"].as_u64().unwrap()),
            "fleet" => self
                .fleet
                .push(sse.place.rsplit('.').next().unwrap().parse().unwrap()),
            "synced" | "fleet.synced" => drop(self.synced.insert(of(&data))),
            other => panic!("{other}: {sse:?}"),
        }
        if !sse.place.is_empty() {
            sse.place.clone_into(&mut self.last);
        }
    }

    /// Follows until this many parts have been synced.
    async fn follow(&mut self, events: &mut Events, parts: usize) {
        self.synced.clear();
        while self.synced.len() < parts {
            self.take(&events.next().await.unwrap());
        }
    }
}

async fn rename(http: &Http, session: SessionId, title: &str) {
    let params = json!({"session": session, "title": title});
    http.h.call("session.update", params).await.unwrap();
}

async fn head(http: &Http, session: SessionId) -> u64 {
    let row = http
        .h
        .call("session.get", json!({"session": session}))
        .await
        .unwrap();
    row["seq"].as_u64().unwrap()
}

#[tokio::test]
async fn i2_a_combined_stream_resumes_without_gap_or_duplicate() {
    let http = Http::start(|_| {}).await;
    let (one, other) = (http.h.session("one").await, http.h.session("other").await);
    rename(&http, one, "once").await;
    let path = format!("/v1/stream?sessions={one},{other}&fleet=0&kinds=session.updated");
    let mut client = Client::default();
    for round in 0..20 {
        // The client loses its connection somewhere: after the first event, or later.
        let headers = match client.last.as_str() {
            "" => String::new(),
            last => format!("Last-Event-ID: {last}\r\n"),
        };
        let mut events = Events::open(&http, &path, &headers).await;
        client.follow(&mut events, 3).await;
        rename(&http, one, &format!("one {round}")).await;
        rename(&http, other, &format!("other {round}")).await;
        for _ in 0..round % 5 {
            client.take(&events.next().await.unwrap());
        }
    }
    let mut events = Events::open(&http, &path, &format!("Last-Event-ID: {}\r\n", client.last)).await;
    client.follow(&mut events, 3).await;
    for session in [one, other] {
        let all: Vec<u64> = (1..=head(&http, session).await).collect();
        assert_eq!(client.seqs[&session.to_string()], all);
    }
    // 1 and then 20 times 2.
    assert!(client.fleet.is_sorted_by(|a, b| a < b), "{:?}", client.fleet);
    assert_eq!(client.fleet.len(), 41);
}

#[tokio::test]
async fn a_deleted_session_ends_its_part_of_the_stream_only() {
    let http = Http::start(|_| {}).await;
    let (one, other) = (http.h.session("one").await, http.h.session("other").await);
    let path = format!("/v1/stream?sessions={one},{other}");
    let mut client = Client::default();
    let mut events = Events::open(&http, &path, "").await;
    client.follow(&mut events, 2).await;
    // The client is away.
    drop(events);
    let deleted = json!({"session": one});
    http.h.call("session.delete", deleted).await.unwrap();
    rename(&http, other, "more").await;
    let last = format!("Last-Event-ID: {}\r\n", client.last);
    let mut resumed = Events::open(&http, &path, &last).await;
    let (mut gone, mut more) = (false, false);
    while !(gone && more) {
        let Sse { event, data, .. } = resumed.next().await.unwrap();
        gone |= event == "ended" && data.contains(&one.to_string()) && data.contains("deleted");
        more |= event.is_empty() && data.contains(&other.to_string());
    }
    http.h.call("token.revoke", json!({"name": "ana"})).await.unwrap();
    let last = resumed.until("ended").await.pop().unwrap();
    assert!(last.data.contains("revoked"), "{last:?}");
    assert!(resumed.next().await.is_none());
}

#[tokio::test]
async fn a_combined_stream_starts_at_given_positions_and_refuses_invalid_ones() {
    let http = Http::start(|settings| settings.http.sessions_per_stream = 2).await;
    let (one, other) = (http.h.session("one").await, http.h.session("other").await);
    for _ in 0..3 {
        rename(&http, one, "again").await;
        rename(&http, other, "again").await;
    }
    let mut client = Client::default();
    let mut events = Events::open(
        &http,
        &format!("/v1/stream?sessions={one}:2,{other}&tail=1&fleet"),
        "",
    )
    .await;
    client.follow(&mut events, 3).await;
    assert_eq!(client.seqs[&one.to_string()], [3, 4]);
    assert_eq!(client.seqs[&other.to_string()], [4]);
    assert!(client.fleet.is_empty(), "without a cursor, only what is new");
    let stream = "Accept: text/event-stream\r\n";
    for (query, headers, status, code) in [
        (format!("sessions={one}"), "", 406, "only_stream"),
        (String::new(), stream, 400, "bad_params"),
        (format!("sessions={one},{one}"), stream, 400, "bad_params"),
        (format!("sessions={one},{other},{one}"), stream, 400, "bad_params"),
        (format!("sessions={one}:9"), stream, 400, "seq_ahead"),
        (
            "sessions=nothing-like-it".to_owned(),
            stream,
            404,
            "unknown_session",
        ),
        ("fleet&kinds=sesion".to_owned(), stream, 400, "unknown_kind"),
        (
            format!("sessions={one}"),
            "Accept: text/event-stream\r\nLast-Event-ID: 7\r\n",
            400,
            "bad_params",
        ),
    ] {
        let refused = http.ask("GET", &format!("/v1/stream?{query}"), headers, "").await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (status, code),
            "{query}"
        );
    }
}
