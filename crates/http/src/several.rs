//! `GET /v1/stream`: several sessions, and the fleet, on one stream. Its ids hold the positions of all of them.

use crate::call::caller;
use crate::events::{QUEUE, stream, streams};
use crate::frames::{Followed, Ids, Several};
use crate::problem::Problem;
use crate::query::{self, Query};
use crate::router::App;
use agentd_api::{Attachment, Push, Pushed, Watching};
use agentd_protocol::{Fault, FaultClass, Principal};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tokio::sync::mpsc;

pub(crate) const PARAMS: [(&str, Query); 7] = [
    ("sessions", Query::Words),
    ("tail", Query::Number),
    ("deltas", Query::Flag),
    ("decides", Query::Flag),
    ("fleet", Query::Text),
    ("labels", Query::Selector),
    ("kinds", Query::Words),
];

/// The feeds that a client follows.
#[derive(Debug)]
struct Asked {
    /// The sessions, with the seqs after which they begin.
    sessions: Vec<(String, Option<u64>)>,
    /// The fleet, with its cursor; without: only new events.
    fleet: Option<Option<u64>>,
    /// The other parameters of each session.
    of_session: Map<String, Value>,
    /// The other parameters of the fleet.
    of_fleet: Map<String, Value>,
}

pub(crate) async fn several(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let who = caller(&parts)?;
    if !streams(&parts.headers) {
        let fault = Fault::invalid("only_stream", "/v1/stream only answers with server-sent events");
        let fault = fault.hint("send the header Accept: text/event-stream");
        return Err(Problem::with(StatusCode::NOT_ACCEPTABLE, fault));
    }
    let most = app.api.loaded().settings.http.sessions_per_stream;
    let asked = Asked::read(parts.uri.query().unwrap_or_default(), most)?;
    let mark = asked.mark();
    let last = last(&parts.headers, &mark, asked.count())?;
    let open = app.streams.open(&who)?;
    let (pushes, frames) = mpsc::channel(QUEUE);
    let mut several = Several::new(mark);
    let mut sources = Vec::new();
    for index in 0..asked.count() {
        let resumed = last.as_ref().and_then(|last| last.get(index)).copied();
        let (followed, source) = asked.follow(&app, &who, index, resumed).await?;
        several.add(followed)?;
        sources.push(source);
    }
    for source in sources {
        tokio::spawn(source.run(pushes.clone()));
    }
    Ok(stream(&app, open, frames, Ids::Several(several)))
}

/// Where the frames of one part of the stream come from.
enum Source {
    Session(Box<Attachment>),
    Fleet(Box<Watching>),
    /// A session that was deleted while the client was away.
    Gone(u64, String),
}

impl Source {
    async fn run(self, pushes: mpsc::Sender<Pushed>) {
        match self {
            Self::Session(attachment) => attachment.run(pushes).await,
            Self::Fleet(watching) => watching.run(pushes).await,
            Self::Gone(sub, message) => {
                let push = Push::Ended {
                    code: "deleted",
                    message,
                    cursor: None,
                };
                // The client may be gone by now.
                let _ = pushes.send(Pushed { sub, push }).await;
            }
        }
    }
}

impl Asked {
    fn read(query: &str, most: u32) -> Result<Self, Fault> {
        let mut params = query::read(query, &PARAMS)?;
        let words = params.remove("sessions");
        let words = words.as_ref().and_then(Value::as_array).into_iter().flatten();
        let words: Vec<&str> = words.filter_map(Value::as_str).collect();
        if words.len() > usize::try_from(most).unwrap_or(usize::MAX) {
            let count = words.len();
            let what = format!("expected at most {most} (http.sessions_per_stream), not {count}");
            return Err(bad("sessions", &what));
        }
        let sessions: Vec<_> = words.into_iter().map(placed).collect();
        let fleet = match params.remove("fleet").as_ref().and_then(Value::as_str) {
            None => None,
            Some("") => Some(None),
            Some(cursor) => {
                let cursor = cursor
                    .parse()
                    .map_err(|_| bad("fleet", "expected a cursor, or no value"))?;
                Some(Some(cursor))
            }
        };
        let take = |names: &[&str], whole: bool, of: &str| {
            let given = params.iter().filter(|(name, _)| names.contains(&name.as_str()));
            let given: Map<_, _> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
            match given.keys().next() {
                Some(name) if !whole => Err(bad(name, &format!("only together with {of}"))),
                _ => Ok(given),
            }
        };
        let of_session = take(&["tail", "deltas", "decides"], !sessions.is_empty(), "sessions")?;
        let of_fleet = take(&["labels", "kinds"], fleet.is_some(), "fleet")?;
        if sessions.is_empty() && fleet.is_none() {
            let fault = bad("sessions", "nothing to follow");
            return Err(fault.hint("give sessions=ID,ID or fleet, or both"));
        }
        Ok(Self {
            sessions,
            fleet,
            of_session,
            of_fleet,
        })
    }

    fn count(&self) -> usize {
        self.sessions.len() + usize::from(self.fleet.is_some())
    }

    /// Stands for the sessions and their order, so that positions of other ones are never taken for theirs.
    fn mark(&self) -> String {
        let mut all: Vec<&str> = self.sessions.iter().map(|(word, _)| word.as_str()).collect();
        all.extend(self.fleet.map(|_| "fleet"));
        let hash = Sha256::digest(all.join(","));
        hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Starts to follow one part, after the position that the client has.
    async fn follow(
        &self,
        app: &App,
        who: &Principal,
        index: usize,
        resumed: Option<u64>,
    ) -> Result<(Followed, Source), Fault> {
        let Some((word, after)) = self.sessions.get(index) else {
            let mut params = self.of_fleet.clone();
            if let Some(after) = resumed.or_else(|| self.fleet.flatten()) {
                params.insert("after".to_owned(), Value::from(after));
            }
            let after = params.get("after").and_then(Value::as_u64);
            let (subscribed, watching) = app.api.watch(who, Value::Object(params)).await?;
            let at = after.unwrap_or(subscribed.head);
            return Ok((
                Followed::fleet(watching.sub(), at),
                Source::Fleet(Box::new(watching)),
            ));
        };
        let mut params = self.of_session.clone();
        params.insert("session".to_owned(), Value::from(word.as_str()));
        if let Some(after) = resumed.or(*after) {
            params.insert("after_seq".to_owned(), json!(after));
            params.remove("tail");
        }
        let from = params.get("after_seq").and_then(Value::as_u64);
        let tail = params.get("tail").and_then(Value::as_u64);
        match app.api.attach(who, Value::Object(params)).await {
            Ok((subscribed, attachment)) => {
                let from = from.unwrap_or(0);
                let at = tail.map_or(from, |tail| subscribed.head.saturating_sub(tail));
                let session = attachment.session().to_string();
                let followed = Followed::session(attachment.sub(), session, at);
                Ok((followed, Source::Session(Box::new(attachment))))
            }
            // The others go on.
            Err(fault) if resumed.is_some() && fault.class == FaultClass::NotFound => {
                let sub = u64::MAX - u64::try_from(index).unwrap_or(0);
                let followed = Followed::session(sub, word.clone(), resumed.unwrap_or(0));
                Ok((followed, Source::Gone(sub, fault.message)))
            }
            Err(fault) => Err(fault),
        }
    }
}

/// Splits `ID:SEQ`.
fn placed(word: &str) -> (String, Option<u64>) {
    let placed = word
        .rsplit_once(':')
        .and_then(|(id, seq)| Some((id, seq.parse().ok()?)));
    placed.map_or_else(|| (word.to_owned(), None), |(id, seq)| (id.to_owned(), Some(seq)))
}

/// The positions in `Last-Event-ID`.
fn last(headers: &HeaderMap, mark: &str, count: usize) -> Result<Option<Vec<u64>>, Fault> {
    let Some(last) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let wrong = || {
        bad(
            "Last-Event-ID",
            "expected an id of a stream of the same sessions in the same order",
        )
        .hint("without the header, give the positions as sessions=ID:SEQ and fleet=CURSOR")
    };
    let text = last.to_str().map_err(|_| wrong())?;
    let positions = text.strip_prefix(mark).and_then(|rest| rest.strip_prefix('.'));
    let positions = positions.ok_or_else(wrong)?.split('.').map(str::parse);
    let positions: Vec<u64> = positions.collect::<Result<_, _>>().map_err(|_| wrong())?;
    if positions.len() == count {
        Ok(Some(positions))
    } else {
        Err(wrong())
    }
}

fn bad(name: &str, what: &str) -> Fault {
    Fault::invalid("bad_params", format!("params: {name}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_query_names_sessions_with_positions_and_the_fleet() {
        let asked = Asked::read("sessions=a:7,b&sessions=c&fleet=9&kinds=turn&deltas", 3).unwrap();
        let sessions = [("a", Some(7)), ("b", None), ("c", None)];
        let sessions = sessions.map(|(word, after)| (word.to_owned(), after));
        assert_eq!(
            (asked.sessions.as_slice(), asked.fleet),
            (&sessions[..], Some(Some(9)))
        );
        assert_eq!(asked.count(), 4);
        assert!(asked.of_session.contains_key("deltas") && asked.of_fleet.contains_key("kinds"));
        assert_eq!(Asked::read("fleet", 3).unwrap().fleet, Some(None));
        for (query, what) in [
            ("", "nothing to follow"),
            (
                "sessions=a,b,c,d",
                "expected at most 3 (http.sessions_per_stream), not 4",
            ),
            ("sessions=a&kinds=turn", "kinds: only together with fleet"),
            ("fleet&tail=3", "tail: only together with sessions"),
            ("fleet=x", "expected a cursor"),
        ] {
            let fault = Asked::read(query, 3).unwrap_err();
            assert!(fault.message.contains(what), "{query}: {fault}");
        }
    }

    #[test]
    fn i2_an_id_is_valid_only_for_its_stream() {
        let asked = |query| Asked::read(query, 9).unwrap();
        let mark = asked("sessions=a,b&fleet").mark();
        assert_eq!(
            mark,
            asked("sessions=a:3,b:4&fleet=5").mark(),
            "positions do not matter"
        );
        for other in ["sessions=b,a&fleet", "sessions=a,b", "sessions=a,b,c&fleet"] {
            assert_ne!(mark, asked(other).mark(), "{other}");
        }
        let read = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from_str(id).unwrap());
            last(&headers, &mark, 3)
        };
        assert_eq!(read(&format!("{mark}.1.2.3")).unwrap(), Some(vec![1, 2, 3]));
        for wrong in [
            format!("{mark}.1.2"),
            format!("{mark}.1.2.x"),
            "00.1.2.3".to_owned(),
            "7".to_owned(),
        ] {
            assert_eq!(read(&wrong).unwrap_err().code, "bad_params", "{wrong}");
        }
        assert_eq!(last(&HeaderMap::new(), &mark, 3).unwrap(), None);
    }
}
