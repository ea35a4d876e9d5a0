//! Imports a log as a session that the importer creates, with the file's lines as quotations after its first events.

use crate::api::Api;
use crate::carried::{self, Contents};
use crate::sight::Caller;
use crate::validate;
use crate::workspaces::Place;
use agentd_protocol::{
    CreateParams, EVENT_VERSION, Event, EventBody, Fault, ImportParams, Principal, Recovered, SessionCreated,
    SessionId, SessionImported, Timestamp,
};
use agentd_store::{ForeignLog, OwnLog, StoreError};
use agentd_turn::{Agent, Config, Durable, Phase};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The maximum number of open items that are listed.
const MAX_CLOSED: usize = 100;
/// The maximum number of characters in the importer's name for the source.
const MAX_SOURCE: usize = 200;
/// Bytes that a quotation adds around the line, and a frame around the quotation.
const AROUND: u64 = 64 * 1024;

impl Api {
    /// The log stored for an import: first who imported what, then the session as the importer and the local configuration
    /// define it, then the file.
    pub(crate) async fn imported(
        &self,
        who: &Caller,
        params: &ImportParams,
        lines: Vec<bytes::Bytes>,
    ) -> Result<(OwnLog, Contents), Fault> {
        if params.workdir.is_empty() {
            let what = "the import names no working directory for the session";
            return Err(Fault::invalid("workdir_missing", what)
                .hint("give `workdir` (agentctl: -C DIR); agentd ignores the one in the file"));
        }
        let limits = self.loaded().settings.limits.clone();
        let most = limits.max_frame_bytes.saturating_sub(AROUND);
        let (lines, parts) = carried::split(lines);
        let foreign = ForeignLog::read(lines, usize::try_from(most).unwrap_or(usize::MAX))?;
        // The stream of the nil session holds the fleet's rules: clients must not import their own.
        if foreign.from() == SessionId::NIL {
            let what = "the stream of always-rules cannot be imported";
            return Err(Fault::denied("rules_import", what));
        }
        let (closed, named) = closed(&foreign)?;
        let contents = Contents::read(parts, foreign.len(), &named, limits.blob_bytes).await?;
        let source = validate::printable(params.source.as_deref().unwrap_or_default(), MAX_SOURCE);
        let created = self.first_event_of(who, params, &source).await?;
        let imported = SessionImported {
            from: foreign.from(),
            source,
            sum: foreign.sum(),
            events: u64::try_from(foreign.len()).unwrap_or(u64::MAX),
            closed,
            blobs: contents.names(),
        };
        let (session, at) = (self.parts.clock.stamp().session(), self.parts.clock.now());
        let head = head(session, who, at, [imported.into(), created.into()]);
        Ok((foreign.quoted(&head, session, who, at)?, contents))
    }

    /// The session's settings. They take nothing from the file, not even a name: it could be that of another session.
    async fn first_event_of(
        &self,
        who: &Caller,
        params: &ImportParams,
        source: &str,
    ) -> Result<SessionCreated, Fault> {
        let asked = params.clone();
        let create = CreateParams {
            title: Some(match asked.title {
                Some(title) => title,
                None => validate::title_of_import(source),
            }),
            workdir: asked.workdir,
            model: asked.model,
            mode: asked.mode,
            labels: asked.labels,
            preset: asked.preset,
            max_turns: asked.max_turns,
            thinking: asked.thinking,
            budget: asked.budget,
            tools: asked.tools,
            rules: asked.rules,
            agent: asked.agent,
            ..CreateParams::default()
        };
        let place = Place::shared(self.shared_directory(who, &create.workdir, false).await?)?;
        self.prepared(who, &create, place).await
    }
}

fn head<const N: usize>(
    session: SessionId,
    who: &Principal,
    at: Timestamp,
    bodies: [EventBody; N],
) -> Vec<Event> {
    let event = |(seq, body)| Event {
        v: EVENT_VERSION,
        session,
        seq,
        at,
        by: who.clone(),
        turn: None,
        body,
    };
    (1..).zip(bodies).map(event).collect()
}

/// The open items at the end of a log, which are closed there, and the contents that it names. A log that no session could
/// have is refused, with the offending line.
fn closed(foreign: &ForeignLog) -> Result<(Vec<Recovered>, BTreeSet<String>), Fault> {
    let mut named = BTreeSet::new();
    let mut agent = Agent::new(foreign.from(), Arc::new(Config::default()));
    for (line, event) in (1..).zip(foreign.events()) {
        let event = event?;
        named.extend(event.kept_output().map(str::to_owned));
        agent.apply(&event).map_err(|error| {
            let reason = error.to_string();
            StoreError::BadImport { line, reason }
        })?;
    }
    Ok((open(agent.durable()), named))
}

/// Work that would continue if this were a local session. In a quotation it is over.
fn open(durable: &Durable) -> Vec<Recovered> {
    let one = |what: &str, id: String| Recovered {
        what: what.to_owned(),
        id,
        how: "closed".to_owned(),
    };
    let model = durable.turn.iter().filter_map(|turn| match &turn.phase {
        Phase::Streaming(current) => Some(one("model_call", current.call.to_string())),
        _ => None,
    });
    let turn = durable.turn.iter().map(|turn| one("turn", turn.id.to_string()));
    let calls = durable
        .open_calls()
        .map(|call| one("tool_call", call.id.to_string()));
    let approvals = durable.approvals.iter();
    let approvals = approvals.map(|open| one("approval", open.approval.to_string()));
    let inputs = durable.inbox.iter();
    let inputs = inputs.map(|waiting| one("input", waiting.queued.input.to_string()));
    let jobs = durable.jobs.iter().map(|job| one("job", job.job.to_string()));
    let children = durable
        .children
        .keys()
        .map(|child| one("subagent", child.to_string()));
    let history = durable
        .history
        .iter()
        .map(|open| one("history", open.seq.to_string()));
    let all = turn.chain(model).chain(calls).chain(approvals).chain(inputs);
    all.chain(jobs)
        .chain(children)
        .chain(history)
        .take(MAX_CLOSED)
        .collect()
}
