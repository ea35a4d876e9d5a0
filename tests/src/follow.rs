//! A viewer that waits for events, and the checks that every log must pass.

use crate::checker::check_events;
use crate::daemon::PATIENCE;
use crate::way::{Source, Way, attach};
use agentd_client::{Client, ClientError, Push};
use agentd_protocol::{Event, EventBody, ExportParams, Fault, FaultClass, Synced};

/// Waits for `future`, but not for ever.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("waited too long until {what}"))
}

/// A viewer of one session.
#[derive(Debug)]
pub struct Follower {
    source: Source,
    /// Every event so far.
    pub events: Vec<Event>,
    /// The last `synced`.
    pub synced: Option<Synced>,
    /// Whether it was ever told that it was too slow.
    pub lagged: bool,
    /// Why the subscription is over, as far as the daemon said.
    ended: Option<String>,
    /// For attaching again when the daemon could not read its store: a loaded machine may take too long for it.
    again: Option<(Client, String)>,
}

impl From<Source> for Follower {
    fn from(source: Source) -> Self {
        Self {
            source,
            events: Vec::new(),
            synced: None,
            lagged: false,
            ended: None,
            again: None,
        }
    }
}

impl Follower {
    /// Follows a session from its beginning.
    pub async fn attach(client: &Client, session: &str) -> Self {
        let attached = attach(client, session, None).await;
        Self {
            again: Some((client.clone(), session.to_owned())),
            ..Self::from(Source::Wire(attached.expect("the session can be attached")))
        }
    }

    /// Goes on after the last event, on a new connection.
    pub async fn resume(&mut self, way: &Way) {
        let session = self.events.first().expect("it has seen something").session;
        let last = self.events.last().map(|event| event.seq);
        let source = way.source(&session.to_string(), last).await;
        self.source = source.expect("the session can be followed");
        self.again = None;
    }

    /// The next frame; `None` when the subscription is over.
    pub async fn next(&mut self) -> Option<Push> {
        let push = within("the next frame", self.source.next()).await?;
        if let (Push::Ended(ended), Some((client, session))) = (&push, &self.again)
            && ended.code == "unavailable"
        {
            let last = self.events.last().map(|event| event.seq);
            let attached = attach(client, session, last).await;
            self.source = Source::Wire(attached.expect("the session can be attached"));
            return Some(Push::Unknown);
        }
        match &push {
            Push::Event(stored) => {
                let event: Event = serde_json::from_slice(&stored.json).expect("a stored event parses");
                let expected = self.events.last().map_or(1, |last| last.seq + 1);
                assert_eq!(
                    event.seq, expected,
                    "I2: a viewer misses nothing and sees nothing twice"
                );
                let told = self.source.told().unwrap_or(expected);
                assert_eq!(told, expected, "I2: the id of an event is its place in the log");
                self.events.push(event);
            }
            Push::Lagged(_) => self.lagged = true,
            Push::Synced(synced) => self.synced = Some(synced.clone()),
            Push::Ended(ended) => self.ended = Some(format!("{}: {}", ended.code, ended.message)),
            _ => {}
        }
        Some(push)
    }

    /// Waits for a frame that has to come.
    async fn more(&mut self, what: &str) {
        let some = self.next().await.is_some();
        assert!(
            some,
            "the subscription ended before {what}: {:?}, after {} events",
            self.ended,
            self.events.len()
        );
    }

    /// Waits for an event that satisfies `wanted`; those already seen count.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&EventBody) -> bool) -> Event {
        let mut checked = 0;
        loop {
            if let Some(event) = self.events.iter().skip(checked).find(|event| wanted(&event.body)) {
                return event.clone();
            }
            checked = self.events.len();
            self.more(what).await;
        }
    }

    /// Waits for the `n`th end of a turn.
    pub async fn turn_finished(&mut self, n: usize) -> agentd_protocol::TurnFinished {
        loop {
            let ends = self.events.iter().filter_map(|event| match &event.body {
                EventBody::TurnFinished(end) => Some(end.clone()),
                _ => None,
            });
            if let Some(end) = ends.into_iter().nth(n - 1) {
                return end;
            }
            self.more("the turn ends").await;
        }
    }

    /// Waits for some live text.
    pub async fn until_text(&mut self, needle: &str) {
        let mut said = String::new();
        while !said.contains(needle) {
            match self.next().await {
                Some(Push::Delta(agentd_protocol::Delta::Text(fragment))) => said.push_str(&fragment.text),
                Some(Push::Synced(synced)) => said.push_str(&synced.partial.unwrap_or_default()),
                Some(_) => {}
                None => panic!("the subscription ended before {needle:?}"),
            }
        }
    }
}

/// Reads a whole log through the protocol and checks what must hold of every log. A slow machine may need several tries.
pub async fn check_log(client: &Client, session: &str) -> Vec<Event> {
    let exported = async {
        loop {
            match try_log(client, session).await {
                Err(error) if Fault::from(error.clone()).class == FaultClass::Timeout => {}
                log => return log,
            }
        }
    };
    let log = within("the session is exported", exported).await;
    log.expect("the session can be exported")
}

/// The same of a daemon that may be dying.
///
/// # Errors
/// The log could not be told.
pub async fn try_log(client: &Client, session: &str) -> Result<Vec<Event>, ClientError> {
    let (mut events, mut lines): (Vec<Event>, Vec<String>) = (Vec::new(), Vec::new());
    loop {
        let after_seq = events.last().map_or(0, |event| event.seq);
        let params = ExportParams {
            session: session.to_owned(),
            after_seq,
            limit: 0,
        };
        let page = within("export answers", client.export(&params)).await?;
        events.extend(
            page.lines
                .iter()
                .map(|line| serde_json::from_str::<Event>(line).expect("a stored line parses")),
        );
        lines.extend(page.lines.iter().cloned());
        if page.lines.is_empty() || events.last().map_or(0, |event| event.seq) >= page.head {
            break;
        }
    }
    keep_log(&lines);
    check_events(&events);
    Ok(events)
}

/// With `AGENTD_KEEP_LOGS`, the directory for it, the log stays as a file named after the test: see `tests/golden`.
#[expect(clippy::disallowed_methods, reason = "a test prints its log on request")]
pub fn keep_log(lines: &[String]) {
    let Ok(directory) = std::env::var("AGENTD_KEEP_LOGS") else {
        return;
    };
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed").replace("::", "-");
    let mut text = lines.join("\n");
    text.push('\n');
    std::fs::create_dir_all(&directory).expect("a directory for logs");
    std::fs::write(format!("{directory}/{name}.jsonl"), text).expect("the log can be kept");
}
