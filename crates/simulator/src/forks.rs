//! Forks: a log up to a point at rest becomes the beginning of another log.

use crate::disk::Disk;
use crate::hot::ana;
use agentd_protocol::{EVENT_VERSION, Event, EventBody, Seq, SessionForked, SessionId, Stamp, Timestamp};
use agentd_store::{EncodedEvent, OwnLog, restore};
use agentd_turn::{Agent, Config, Violation};
use bytes::Bytes;
use futures_util::FutureExt as _;
use std::sync::Arc;

/// Forks the session; `None` if it has no such point.
pub(crate) fn fork(
    disk: &mut Disk,
    from: SessionId,
    upto: Seq,
    stamp: &mut Stamp,
) -> Result<Option<SessionId>, Violation> {
    let broken = |what: String| Violation::of("fork", what);
    let lines = disk
        .lines(from, 0, upto)
        .map_err(|error| broken(error.to_string()))?;
    let (mut agent, mut point, mut at) = (Agent::new(from, Arc::new(Config::default())), 0, Timestamp(0));
    for (seq, line) in &lines {
        let event = EncodedEvent::decode(line).map_err(|error| broken(error.to_string()))?;
        agent.apply(&event).map_err(|error| broken(error.to_string()))?;
        let durable = agent.durable();
        // An imported log begins before its session is created.
        let rests = durable.settings.is_some()
            && durable.turn.is_none()
            && durable.inbox.is_empty()
            && durable.history.is_none()
            && durable.children.is_empty()
            && durable.closed.is_none();
        if rests {
            (point, at) = (*seq, event.at);
        }
    }
    if point == 0 {
        return Ok(None);
    }
    let mut lines: Vec<Bytes> = lines.into_iter().map(|(_, line)| line).collect();
    lines.truncate(usize::try_from(point).unwrap_or(usize::MAX));
    let forked = Event {
        v: EVENT_VERSION,
        session: from,
        seq: point + 1,
        at,
        by: ana(),
        turn: None,
        body: EventBody::from(SessionForked { from, at_seq: point }),
    };
    let forked = EncodedEvent::encode(&forked).map_err(|error| broken(error.to_string()))?;
    lines.push(forked.body);
    let summarize = |session, events: &[EncodedEvent]| {
        let decoded = events.iter().map(|event| EncodedEvent::decode(&event.body));
        let decoded: Result<Vec<_>, _> = decoded.collect();
        let decoded = decoded.map_err(|error| error.to_string())?;
        let agent = Agent::fold(session, Arc::new(Config::default()), &decoded);
        let agent = agent.map_err(|error| error.to_string())?;
        Ok(Some(agent.summary(at)))
    };
    let backend = Arc::clone(&disk.backend);
    let made = restore(backend.as_ref(), &OwnLog::vouched(lines), stamp, summarize).now_or_never();
    match made {
        Some(Ok(made)) => {
            disk.took_in(made.session, made.head)
                .map_err(|error| broken(error.to_string()))?;
            Ok(Some(made.session))
        }
        Some(Err(error)) => Err(broken(error.to_string())),
        None => Err(broken("the store in memory waits".to_owned())),
    }
}
