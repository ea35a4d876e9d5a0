//! `session.fork`: a new session whose log begins with a copy of another session's log.

use crate::api::{Api, READ};
use crate::dispatch::answer;
use crate::idempotency::Keyed;
use crate::sight::{Caller, Seen};
use crate::validate;
use agentd_protocol::{
    EVENT_VERSION, Event, EventBody, Fault, ForkParams, Labels, Seq, SessionForked, SessionUpdated,
};
use agentd_store::{EncodedEvent, OwnLog, Range};
use agentd_turn::{Agent, Config};
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the log that one read returns.
const PAGE_BYTES: u32 = 4 << 20;
/// The time limit of a fork, which writes many events.
const FORK: Duration = Duration::from_secs(120);

impl Api {
    pub(crate) async fn fork(&self, who: &Caller, params: ForkParams) -> Result<Value, Fault> {
        let (key, _turn) = match self
            .keyed(who, "session.fork", params.key.as_deref(), &params)
            .await?
        {
            Keyed::Before(answer) => return Ok(answer),
            Keyed::New(key, turn) => (key, turn),
        };
        let title = params.title.as_deref().map(validate::title).transpose()?;
        let (from, row) = self.row_of(who, &params.session).await?;
        let head = row.head;
        let title = title.or_else(|| validate::title_of_fork(&row.summary.name));
        if let Some(at) = params.at.filter(|at| *at > head) {
            let message = format!("cannot fork at {at}: the log ends at {head}");
            return Err(Fault::invalid("at_too_late", message));
        }
        let made = self.make_fork(who, from, params.at.unwrap_or(Seq::MAX), title);
        let created = tokio::time::timeout(FORK, made)
            .await
            .map_err(|_| Fault::timeout("fork_slow", "the fork took too long"))??;
        tracing::info!(session = %created.session, %from, by = %who, "session forked");
        if let Some(key) = key {
            self.keep_answer(&created, key).await;
        }
        answer(&created)
    }

    async fn make_fork(
        &self,
        who: &Caller,
        from: Seen,
        upto: Seq,
        title: Option<String>,
    ) -> Result<agentd_protocol::Created, Fault> {
        let (mut lines, at_seq, then) = self.lines_to_fork(from, upto).await?;
        let at = self.parts.clock.now();
        // The session may have got the labels of the caller's token only later.
        let labels = who.keeps(&then).is_err().then(|| {
            let mut labels = then;
            labels.extend(who.limits().cloned().unwrap_or_default());
            labels
        });
        let updated = (title.is_some() || labels.is_some()).then(|| {
            EventBody::from(SessionUpdated {
                title,
                model: None,
                mode: None,
                labels,
                budget: None,
                summary: None,
            })
        });
        let from = *from;
        let forked = EventBody::from(SessionForked { from, at_seq });
        for (seq, body) in (at_seq + 1..).zip(std::iter::once(forked).chain(updated)) {
            let event = Event {
                v: EVENT_VERSION,
                session: from,
                seq,
                at,
                by: who.principal().clone(),
                turn: None,
                body,
            };
            let encoded = EncodedEvent::encode(&event)
                .map_err(|error| Fault::internal("bad_event", error.to_string()))?;
            lines.push(encoded.body);
        }
        let created = self.write_log(who, &OwnLog::vouched(lines)).await?;
        let shared = self.parts.backend.share_blobs(from, created.session).await;
        if let Err(error) = shared {
            // Without the contents that its log names, it is not a copy.
            let _ = self.parts.backend.delete(created.session).await;
            return Err(Fault::from(error));
        }
        Ok(created)
    }

    /// The lines up to the last point, at or before `upto`, at which the session was idle, and the labels at that point.
    async fn lines_to_fork(&self, from: Seen, upto: Seq) -> Result<(Vec<Bytes>, Seq, Labels), Fault> {
        let mut agent = Agent::new(*from, Arc::new(Config::default()));
        let mut lines = Vec::new();
        let (mut at, mut point, mut labels) = (0, 0, Labels::new());
        loop {
            let range = Range {
                upto: Some(upto),
                max_bytes: PAGE_BYTES,
                ..Range::after(at)
            };
            let read = self.load(from, range);
            let page = tokio::time::timeout(READ, read)
                .await
                .map_err(|_| Fault::timeout("store_slow", "could not read the log in time"))??;
            if page.events.is_empty() {
                break;
            }
            for (seq, line) in page.events {
                let bad = |why: String| Fault::storage("bad_event", format!("event {seq} of the log: {why}"));
                let event = EncodedEvent::decode(&line).map_err(|error| bad(error.to_string()))?;
                agent.apply(&event).map_err(|error| bad(error.to_string()))?;
                at = seq;
                lines.push(line);
                let durable = agent.durable();
                // An imported log begins before its session exists.
                let rests = durable.settings.is_some()
                    && durable.turn.is_none()
                    && durable.inbox.is_empty()
                    && durable.history.is_none()
                    && durable.children.is_empty()
                    && durable.closed.is_none();
                if rests {
                    point = seq;
                    labels = durable
                        .settings
                        .as_ref()
                        .map(|settings| settings.labels.clone())
                        .unwrap_or_default();
                }
            }
        }
        if point == 0 {
            return Err(Fault::conflict(
                "no_point",
                "the session was never at rest up to that point",
            ));
        }
        lines.truncate(usize::try_from(point).unwrap_or(usize::MAX));
        Ok((lines, point, labels))
    }
}
