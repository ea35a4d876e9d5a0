//! `session.export` and `session.import`: exports the exact stored lines, and imports such lines as quotations.

use crate::api::{Api, COMMAND, fault_of};
use crate::carried;
use crate::carried::Contents;
use crate::dispatch::answer;
use crate::idempotency::Keyed;
use crate::sight::Caller;
use agentd_actor_kit::{Read, StoreMsg};
use agentd_protocol::{
    BlobParams, BlobPart, Created, Event, ExportParams, Exported, Fault, ImportParams, SessionId, Summary,
};
use agentd_store::{Append, EncodedEvent, IdempotencyKey, OwnLog, Range};
use agentd_turn::{Agent, Config};
use bytes::Bytes;
use serde_json::Value;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Bytes of one page of an export; a larger event gets a page of its own.
const PAGE_BYTES: u32 = 4 << 20;
const PAGE_EVENTS: u32 = 1_000;
/// The time limit of an import, which writes many events.
const IMPORT: Duration = Duration::from_secs(120);

impl Api {
    pub(crate) async fn export(&self, who: &Caller, params: ExportParams) -> Result<Exported, Fault> {
        let session = self.session(who, &params.session).await?;
        let limit = if params.limit == 0 {
            PAGE_EVENTS
        } else {
            params.limit.min(PAGE_EVENTS)
        };
        let range = Range {
            limit,
            max_bytes: PAGE_BYTES,
            ..Range::after(params.after_seq)
        };
        let page = self.load(session, range).await?;
        let text = |(_, line): (_, Bytes)| String::from_utf8_lossy(&line).into_owned();
        Ok(Exported {
            lines: page.events.into_iter().map(text).collect(),
            head: page.head,
        })
    }

    pub(crate) async fn blob(&self, who: &Caller, params: BlobParams) -> Result<BlobPart, Fault> {
        let name = params.name.clone();
        let in_sight = match who.limits() {
            Some(labels) => self.parts.backend.blob_within(&name, labels).await?,
            None => true,
        };
        let content = self.read(|done| Read::Blob { name, done }).await?;
        let content = content.filter(|_| in_sight).ok_or_else(|| {
            let shown: String = params.name.chars().take(64).collect();
            Fault::not_found("no_blob", format!("there is no content {shown:?}"))
                .hint("`truncated.spill` of a tool.finished has the name")
        })?;
        let frame = self.loaded().settings.limits.max_frame_bytes;
        carried::part(params, &content, frame)
    }

    pub(crate) async fn import(&self, who: &Caller, mut params: ImportParams) -> Result<Value, Fault> {
        let lines = std::mem::take(&mut params.lines)
            .into_iter()
            .map(|line| Bytes::from(line.trim_end().to_owned()))
            .collect();
        if params.more {
            let key = params
                .key
                .ok_or_else(|| Fault::invalid("key_missing", "an import in several pages needs a key"))?;
            self.uploads().add(who, &key, lines, self.parts.clock.now())?;
            return Ok(Value::Null);
        }
        let lines = match &params.key {
            Some(key) => self.uploads().finish(who, key, lines),
            None => lines,
        };
        let body: Vec<&str> = lines
            .iter()
            .map(|line| std::str::from_utf8(line).unwrap_or_default())
            .collect();
        let body = (&params, body);
        let (key, _turn) = match self
            .keyed(who, "session.import", params.key.as_deref(), &body)
            .await?
        {
            Keyed::Before(answer) => return Ok(answer),
            Keyed::New(key, turn) => (key, turn),
        };
        params.labels = who.given(params.labels)?;
        let made = async {
            let (own, contents) = self.imported(who, &params, lines).await?;
            let created = self.write_log(who, &own).await?;
            if let Err(fault) = self.put_contents(created.session, &contents).await {
                // Without the contents that its log names, the import is incomplete.
                let _ = self.parts.backend.delete(created.session).await;
                return Err(fault);
            }
            Ok(created)
        };
        let created = tokio::time::timeout(IMPORT, made)
            .await
            .map_err(|_| Fault::timeout("import_slow", "the import took too long"))??;
        tracing::info!(session = %created.session, by = %who, "session imported");
        if let Some(key) = key {
            self.keep_answer(&created, key).await;
        }
        answer(&created)
    }

    /// Stores a log as a session.
    pub(crate) async fn write_log(&self, who: &Caller, own: &OwnLog) -> Result<Created, Fault> {
        let mut stamp = self.parts.clock.stamp();
        let now = self.parts.clock.now();
        let mut name = String::new();
        let summarize = |session: SessionId, events: &[EncodedEvent]| {
            let summary = fold(session, events, now)?;
            who.keeps(&summary.labels).map_err(|fault| fault.message)?;
            name.clone_from(&summary.name);
            Ok(Some(summary))
        };
        let restored = agentd_store::restore(self.parts.backend.as_ref(), own, &mut stamp, summarize)
            .await
            .map_err(Fault::from)?;
        Ok(Created {
            session: restored.session,
            name,
            input: None,
            seq: restored.head,
            notices: Vec::new(),
        })
    }

    async fn put_contents(&self, session: SessionId, contents: &Contents) -> Result<(), Fault> {
        for content in contents.each() {
            self.parts.backend.put_blob(session, content?).await?;
        }
        Ok(())
    }

    /// Stores the answer under its key. The session exists already, so a failure here only costs the idempotent retry.
    pub(crate) async fn keep_answer(&self, created: &Created, mut key: IdempotencyKey) {
        key.answer = serde_json::to_string(created).unwrap_or_default();
        let mut append = Append::new(created.session, 1, created.seq, self.parts.clock.stamp().append());
        append.keys.push(key);
        let kept = self
            .parts
            .store
            .call(COMMAND, |done| StoreMsg::Append { append, done })
            .await;
        if let Err(fault) = kept.map_err(fault_of) {
            tracing::warn!(session = %created.session, %fault, "could not store the idempotency key of an import");
        }
    }

    fn uploads(&self) -> std::sync::MutexGuard<'_, crate::uploads::Uploads> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the list row of a log. Refuses a log that cannot be folded.
fn fold(
    session: SessionId,
    events: &[EncodedEvent],
    now: agentd_protocol::Timestamp,
) -> Result<Summary, String> {
    let mut agent = Agent::new(session, Arc::new(Config::default()));
    for encoded in events {
        let event: Event = serde_json::from_slice(&encoded.body)
            .map_err(|error| format!("event {}: {error}", encoded.seq))?;
        agent
            .apply(&event)
            .map_err(|error| format!("event {}: {error}", encoded.seq))?;
    }
    Ok(agent.summary(now))
}
