//! Event streams.

use crate::server::{Http, LONG};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Reads a stream of events; the framing of chunks is skipped, since each chunk ends with a whole event.
pub(crate) struct Events(BufReader<TcpStream>);

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sse {
    pub(crate) event: String,
    pub(crate) id: Option<u64>,
    /// The id as it came.
    pub(crate) place: String,
    pub(crate) data: String,
}

impl Events {
    pub(crate) async fn open(http: &Http, path: &str, headers: &str) -> Self {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n{headers}\r\n",
            http.ana
        );
        let mut stream = BufReader::new(http.send(request.as_bytes()).await);
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        Self(stream)
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Sse> {
        let mut sse = Sse::default();
        loop {
            let mut line = String::new();
            if timeout(LONG, self.0.read_line(&mut line)).await.unwrap().ok()? == 0 {
                return None;
            }
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", name)) => sse.event = name.to_owned(),
                Some(("id", id)) => {
                    id.clone_into(&mut sse.place);
                    sse.id = id.parse().ok();
                }
                Some(("data", data)) => sse.data = data.to_owned(),
                _ if line == "\n" && !sse.data.is_empty() => return Some(sse),
                _ => {}
            }
        }
    }

    pub(crate) async fn until(&mut self, name: &str) -> Vec<Sse> {
        let mut seen = Vec::new();
        loop {
            let sse = self.next().await.unwrap();
            let found = sse.event == name;
            seen.push(sse);
            if found {
                return seen;
            }
        }
    }
}

fn ids(seen: &[Sse]) -> Vec<u64> {
    seen.iter().filter_map(|sse| sse.id).collect()
}

async fn session(http: &Http) -> String {
    let session = http.h.session("one").await.to_string();
    for title in ["two", "three"] {
        let params = json!({"session": session, "title": title});
        http.h.call("session.update", params).await.unwrap();
    }
    session
}

#[tokio::test]
async fn i2_a_stream_replays_syncs_follows_live_and_resumes_by_its_last_id() {
    let http = Http::start(|_| {}).await;
    let session = session(&http).await;
    let path = format!("/v1/sessions/{session}/events");
    let mut events = Events::open(&http, &path, "").await;
    let seen = events.until("synced").await;
    let head = u64::try_from(seen.len()).unwrap() - 1;
    assert_eq!(ids(&seen), (1..=head).collect::<Vec<_>>());
    for sse in seen.iter().filter(|sse| sse.id.is_some()) {
        let event: Value = serde_json::from_str(&sse.data).unwrap();
        assert_eq!(event["seq"].as_u64(), sse.id);
    }
    let params = json!({"session": session, "title": "live"});
    http.h.call("session.update", params).await.unwrap();
    assert_eq!(events.next().await.unwrap().id, Some(head + 1));
    let mut resumed = Events::open(&http, &path, "Last-Event-ID: 2\r\n").await;
    assert_eq!(
        ids(&resumed.until("synced").await),
        (3..=head + 1).collect::<Vec<_>>()
    );
    let mut tail = Events::open(&http, &format!("{path}?tail=1"), "").await;
    assert_eq!(ids(&tail.until("synced").await), [head + 1]);
    http.shutdown.send_replace(true);
    assert!(
        events
            .until("ended")
            .await
            .last()
            .unwrap()
            .data
            .contains("stopping")
    );
    assert_eq!(events.next().await, None);
    timeout(LONG, http.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn i2_pages_hold_the_stored_lines_and_the_start_of_the_next() {
    let http = Http::start(|_| {}).await;
    let session = session(&http).await;
    let exported = http
        .h
        .call("session.export", json!({"session": session}))
        .await
        .unwrap();
    let lines: Vec<&str> = exported["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let (mut after, mut seen) = (0, String::new());
    loop {
        let page = http
            .get(&format!("/v1/sessions/{session}/events?after={after}&limit=2"))
            .await;
        let items = page
            .body
            .strip_prefix("{\"items\":[")
            .unwrap()
            .split_once("],\"next\"")
            .unwrap()
            .0;
        seen.push_str(items);
        match page.json()["next"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
        seen.push(',');
    }
    assert_eq!(seen, lines.join(","));
}

#[tokio::test]
async fn the_fleet_is_read_in_pages_and_followed_by_kind() {
    let http = Http::start(|_| {}).await;
    let session = session(&http).await;
    let page = http.get("/v1/events?limit=2").await.json();
    let cursors: Vec<u64> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["cursor"].as_u64())
        .collect();
    assert_eq!(page["next"].as_u64(), cursors.last().copied());
    assert_eq!(page["items"][0]["event"]["session"], session.as_str());
    let mut events = Events::open(&http, "/v1/events?after=0&kinds=session.updated", "").await;
    let seen = events.until("synced").await;
    assert_eq!(seen.len(), 3, "{seen:?}");
    let last = seen[1].id.unwrap();
    let mut resumed = Events::open(
        &http,
        "/v1/events?kinds=session",
        &format!("Last-Event-ID: {last}\r\n"),
    )
    .await;
    assert!(ids(&resumed.until("synced").await).is_empty());
    let wrong = http.get("/v1/events?kinds=sesion").await;
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "unknown_kind"));
}

#[tokio::test]
async fn i6_streams_per_token_are_bounded_and_closing_one_frees_a_slot() {
    let http = Http::start(|settings| settings.http.streams_per_token = 1).await;
    let events = Events::open(&http, "/v1/events", "").await;
    let refused = http
        .ask("GET", "/v1/events", "Accept: text/event-stream\r\n", "")
        .await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "too_many_streams")
    );
    drop(events);
    while http.get("/v1/events").await.status == 429 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams() {
    let http = Http::start(|_| {}).await;
    let mut fleet = Events::open(&http, "/v1/events", "").await;
    let session = session(&http).await;
    let mut one = Events::open(&http, &format!("/v1/sessions/{session}/events"), "").await;
    one.until("synced").await;
    http.h.call("token.revoke", json!({"name": "ana"})).await.unwrap();
    for stream in [&mut fleet, &mut one] {
        assert!(
            stream
                .until("ended")
                .await
                .last()
                .unwrap()
                .data
                .contains("revoked")
        );
        assert_eq!(stream.next().await, None);
    }
    assert_eq!(http.get("/v1/rules").await.status, 401);
}
