//! `session.fork`: a new session whose log begins with a copy of another session's log.

use crate::api::{Api, READ};
use crate::dispatch::answer;
use crate::idempotency::Keyed;
use crate::rights::Rights;
use crate::sight::{Caller, Seen};
use crate::validate;
use crate::workspaces::RecordedTrees;
use agentd_checkpoint::Tree;
use agentd_protocol::{
    Created, EVENT_VERSION, Event, EventBody, Fault, ForkParams, Labels, PermissionMode, Seq, SessionForked,
    SessionId, SessionUpdated, Workspace, WorkspaceCreated,
};
use agentd_store::{EncodedEvent, OwnLog, Range};
use agentd_turn::{Agent, Config};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
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
        self.takes_new_sessions(&row.summary.requires)?;
        self.files_here(*from).await?;
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
    ) -> Result<Created, Fault> {
        let point = self.point_to_fork(from, upto).await?;
        self.may_repeat(who, &point).await?;
        let Some(workspace) = point.workspace.clone() else {
            return self.write_fork(who, from, point, (title, None)).await;
        };
        let session = self.parts.clock.stamp().session();
        let made = async {
            let (place, notices) = self
                .place_of_fork(session, &workspace, point.recorded.clone())
                .await?;
            let point = point.renamed(session)?;
            let mut created = self.write_fork(who, from, point, (title, Some(place))).await?;
            created.notices.extend(notices);
            Ok(created)
        };
        let made = made.await;
        if made.is_err() {
            self.abandon(session).await;
        }
        made
    }

    /// Refuses a fork whose session would have a mode or a place beyond the caller's rights. It gets those of the original.
    async fn may_repeat(&self, who: &Caller, point: &Point) -> Result<(), Fault> {
        if matches!(who.rights(), Rights::All) {
            return Ok(());
        }
        let Some((mode, workdir)) = &point.mode_and_workdir else {
            return Ok(());
        };
        who.rights().mode(*mode)?;
        match &point.workspace {
            None => self.shared_directory(who, workdir, false).await.map(drop),
            Some(workspace) if Path::new(&workspace.source).is_absolute() => {
                self.copied_directory(who, &workspace.source).await
            }
            Some(workspace) => self.may_clone(who, &workspace.source),
        }
    }

    /// Writes the log of a fork, whose session works in its own workspace if it has one.
    async fn write_fork(
        &self,
        who: &Caller,
        from: Seen,
        point: Point,
        (title, place): (Option<String>, Option<WorkspaceCreated>),
    ) -> Result<Created, Fault> {
        let Point {
            mut lines,
            at: at_seq,
            session,
            ..
        } = point;
        let at = self.parts.clock.now();
        // The session may have got the labels of the caller's token only later.
        let labels = who.keeps(&point.labels).is_err().then(|| {
            let mut labels = point.labels;
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
        let forked = EventBody::from(SessionForked { from: *from, at_seq });
        let own = place.map(EventBody::from);
        let bodies = std::iter::once(forked).chain(own).chain(updated);
        for (seq, body) in (at_seq + 1..).zip(bodies) {
            let event = Event {
                v: EVENT_VERSION,
                session,
                seq,
                at,
                by: who.principal().clone(),
                turn: None,
                body,
            };
            lines.push(encoded(&event)?);
        }
        let created = self.write_log(who, &OwnLog::vouched(lines)).await?;
        let shared = self.parts.backend.share_blobs(*from, created.session).await;
        if let Err(error) = shared {
            // Without the contents that its log names, it is not a copy.
            let _ = self.parts.backend.delete(created.session).await;
            return Err(Fault::from(error));
        }
        Ok(created)
    }

    /// The last point, at or before `upto`, at which the session was idle.
    async fn point_to_fork(&self, from: Seen, upto: Seq) -> Result<Point, Fault> {
        let mut agent = Agent::new(*from, Arc::new(Config::default()));
        let mut point = Point::new(*from);
        let (mut at, mut lines, mut trees) = (0, Vec::new(), BTreeSet::new());
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
                trees.extend(tree_of(&event.body));
                let durable = agent.durable();
                // An imported log begins before its session exists.
                let rests = durable.settings.is_some()
                    && durable.turn.is_none()
                    && durable.inbox.is_empty()
                    && durable.history.is_none()
                    && durable.children.is_empty()
                    && durable.closed.is_none();
                if rests {
                    point.at = seq;
                    if let Some(settings) = &durable.settings {
                        point.labels.clone_from(&settings.labels);
                        point.workspace.clone_from(&settings.workspace);
                        point.mode_and_workdir = Some((settings.mode, settings.workdir.clone()));
                    }
                    point.recorded.last = tree_named(durable.files.tree.as_deref());
                    point.recorded.trees = trees.iter().cloned().collect();
                }
            }
        }
        if point.at == 0 {
            return Err(Fault::conflict(
                "no_point",
                "the session was never at rest up to that point",
            ));
        }
        lines.truncate(usize::try_from(point.at).unwrap_or(usize::MAX));
        point.lines = lines;
        Ok(point)
    }
}

/// What a fork begins with.
struct Point {
    /// The session that the lines name.
    session: SessionId,
    lines: Vec<Bytes>,
    /// The last event.
    at: Seq,
    labels: Labels,
    workspace: Option<Box<Workspace>>,
    mode_and_workdir: Option<(PermissionMode, String)>,
    recorded: RecordedTrees,
}

impl Point {
    fn new(session: SessionId) -> Self {
        Self {
            session,
            lines: Vec::new(),
            at: 0,
            labels: Labels::new(),
            workspace: None,
            mode_and_workdir: None,
            recorded: RecordedTrees::default(),
        }
    }

    /// The same as the log of another session.
    fn renamed(mut self, session: SessionId) -> Result<Self, Fault> {
        for line in &mut self.lines {
            let bad = |why: String| Fault::storage("bad_event", why);
            let mut event = EncodedEvent::decode(line).map_err(|error| bad(error.to_string()))?;
            event.session = session;
            *line = encoded(&event)?;
        }
        self.session = session;
        Ok(self)
    }
}

fn encoded(event: &Event) -> Result<Bytes, Fault> {
    let encoded = EncodedEvent::encode(event);
    Ok(encoded
        .map_err(|error| Fault::internal("bad_event", error.to_string()))?
        .body)
}

/// The recorded files that an event names.
#[expect(clippy::wildcard_enum_match_arm, reason = "few events are about files")]
fn tree_of(body: &EventBody) -> Option<Tree> {
    match body {
        EventBody::WorkspaceCheckpointed(taken) => tree_named(Some(&taken.tree)),
        EventBody::UndoApplied(applied) => {
            tree_named(applied.trees.as_ref().map(|trees| trees.after.as_str()))
        }
        _ => None,
    }
}

fn tree_named(id: Option<&str>) -> Option<Tree> {
    id.and_then(|id| Tree::parse(id).ok())
}
