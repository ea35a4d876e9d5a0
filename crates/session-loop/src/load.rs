//! Loads a loop's state from the log. Runs in a task of the supervisor, never in a handler.

use crate::conceal;
use crate::error::LoopError;
use crate::files_here::{LoadPurpose, arrive, bring_workspace};
use crate::request::System;
use crate::servers;
use crate::services::Services;
use crate::toolset::{Toolset, agents_of};
use crate::watched::Watched;
use agentd_actor_kit::{CallError, Earlier, Handle, Read, StoreMsg};
use agentd_fault_points as fault;
use agentd_file_work::FileWork;
use agentd_prompt::Places;
use agentd_protocol::{
    EVENT_VERSION, Event, EventBody, Fault, Principal, Seq, SessionCreated, SessionId, SessionMoved,
    Timestamp,
};
use agentd_store::{Append, Claim, EncodedEvent, Outcome, Page, Range, StoreError};
use agentd_tools::FilesSeen;
use agentd_transcript::{Rewinds, Transcript};
use agentd_turn::Agent;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of the log that one read returns.
const PAGE_BYTES: u32 = 1024 * 1024;

/// The state of a session that is derived from its log.
#[derive(Debug)]
pub struct Folded {
    pub(crate) session: SessionId,
    pub(crate) epoch: u64,
    pub(crate) agent: Agent,
    pub(crate) transcript: Transcript,
    pub(crate) seen: FilesSeen,
    pub(crate) system: System,
    pub(crate) toolset: Toolset,
    pub(crate) watched: Watched,
    rewinds: Rewinds,
    /// The first event in its original form, whatever changed since: the prompt is built from it.
    first: Option<Box<SessionCreated>>,
}

impl Folded {
    /// A session without a log.
    fn empty(services: &Services, session: SessionId, epoch: u64) -> Self {
        Self {
            session,
            epoch,
            agent: Agent::new(session, services.config.now()),
            transcript: Transcript::new(),
            seen: FilesSeen::default(),
            system: System::default(),
            toolset: Toolset::new(&services.registry, &[], Vec::new()),
            watched: Watched::new(),
            rewinds: Rewinds::default(),
            first: None,
        }
    }

    async fn equip(&mut self, services: &Services, created: &SessionCreated, agents: Option<String>) {
        let found = servers::gather(services, created).await;
        self.toolset = Toolset::telling(&services.registry, agents, &created.tools, found);
    }

    fn apply(&mut self, event: &Event) -> Result<(), LoopError> {
        self.agent.apply(event)?;
        self.watched.learn(event);
        self.transcript.apply(event);
        if let EventBody::SessionCreated(created) = &event.body {
            self.first = Some(Box::new(created.clone()));
        }
        self.seen.learn(&event.body);
        self.rewinds.note(event);
        Ok(())
    }

    fn page(&mut self, page: &Page) -> Result<Seq, LoopError> {
        let mut last = self.agent.durable().head;
        for (seq, line) in &page.events {
            let event = decoded(*seq, line)?;
            self.apply(&event)?;
            last = *seq;
        }
        Ok(last)
    }
}

/// Prepares a session that does not exist yet; its first append creates it.
///
/// # Errors
/// [`LoopError::Refused`] when its working directory cannot be read in time.
pub async fn fresh(
    services: &Services,
    session: SessionId,
    created: &SessionCreated,
) -> Result<Folded, LoopError> {
    let mut folded = Folded::empty(services, session, 1);
    folded.system = system_prompt(services, conceal::created(created), services.clock.now()).await?;
    folded.equip(services, created, agents_of(created)).await;
    Ok(folded)
}

/// Takes ownership of a session and folds its log.
///
/// # Errors
/// [`LoopError::Refused`] when it cannot be loaded now; any other error: its log cannot be read.
pub async fn load(
    services: &Services,
    session: SessionId,
    purpose: LoadPurpose,
) -> Result<Folded, LoopError> {
    fault::point(fault::SESSION_LOAD)
        .map_err(|injected| LoopError::Refused(Fault::unavailable("fault_point", injected.to_string())))?;
    let claim = claim(services, session, !matches!(purpose, LoadPurpose::Ordinary)).await?;
    let mut folded = Folded::empty(services, session, claim.epoch);
    let mut at = 0;
    while at < claim.head {
        let page = page(&services.store, services.timing.load, session, (at, claim.head)).await?;
        let last = folded.page(&page)?;
        if last <= at {
            return Err(LoopError::Short {
                found: at,
                head: claim.head,
            });
        }
        at = last;
    }
    if !folded.rewinds.is_empty() {
        let parts = folded.rewinds.parts(claim.head);
        let then = conversation(&services.store, services.timing.load, session, &parts).await?;
        folded.transcript = then.transcript;
        folded.seen.knows_again(then.seen);
    }
    if claim.away.is_some() {
        arrive(services, &mut folded, purpose).await?;
    }
    let restored = match claim.away {
        Some(_) => None,
        None => bring_workspace(services, &mut folded, claim.head).await?,
    };
    if claim.row_damaged || claim.moved_to.is_some() || restored.is_some() {
        let damaged = claim.row_damaged;
        let moved = claim.moved_to.map(|node| SessionMoved {
            node,
            epoch: claim.epoch,
            workdir: None,
        });
        let news = moved.map(EventBody::from).into_iter();
        let brought = restored.is_some();
        let news = news.chain(restored.map(EventBody::from));
        note(services, &mut folded, &Principal::agentd(), news).await?;
        if brought && let Some(files) = &services.files {
            files.brought(session).await;
        }
        if damaged {
            tracing::warn!(%session, "rebuilt the damaged list row from the log");
        }
    }
    let agents = folded.first.as_deref().and_then(agents_of);
    if let Some(first) = folded.first.take() {
        let at = folded.agent.durable().created_at;
        folded.system = system_prompt(services, *first, at).await?;
    }
    if let Some(created) = folded.agent.durable().settings.clone() {
        folded.equip(services, &created, agents).await;
    }
    Ok(folded)
}

/// Writes what changed before the session runs: `session.moved` if another node had it, `workspace.restored`, and its list
/// row. Without a good row it could not be found after the next restart.
pub(crate) async fn note(
    services: &Services,
    folded: &mut Folded,
    by: &Principal,
    news: impl Iterator<Item = EventBody>,
) -> Result<(), LoopError> {
    let session = folded.session;
    let head = folded.agent.durable().head;
    let mut stamp = services.clock.stamp();
    let mut append = Append::new(session, folded.epoch, head, stamp.append());
    for (seq, body) in (head + 1..).zip(news) {
        if matches!(body, EventBody::SessionMoved(_)) {
            tracing::debug!(%session, "took over the session from another node");
        }
        let event = Event {
            v: EVENT_VERSION,
            session,
            seq,
            at: stamp.at,
            by: by.clone(),
            turn: None,
            body,
        };
        let encoded = EncodedEvent::encode(&event);
        let failed = |error: StoreError| LoopError::Refused(Fault::from(error));
        append.events.push(encoded.map_err(failed)?);
        folded.apply(&event)?;
    }
    append.summary = Some(folded.agent.summary(services.clock.now()));
    let outcome = services
        .store
        .call(services.timing.load, |done| StoreMsg::Append { append, done });
    match outcome.await {
        Ok(Outcome::Committed { .. } | Outcome::Duplicate { .. }) => Ok(()),
        Ok(outcome) => Err(LoopError::Refused(Fault::unavailable(
            "row_not_written",
            format!("cannot write the list row: {outcome:?}"),
        ))),
        Err(error) => Err(LoopError::Refused(Fault::unavailable(
            "store_down",
            error.to_string(),
        ))),
    }
}

async fn claim(services: &Services, session: SessionId, without_files: bool) -> Result<Claim, LoopError> {
    let claim = services
        .store
        .call(services.timing.load, |done| StoreMsg::Claim {
            session,
            without_files,
            done,
        })
        .await;
    answer(claim)
}

pub(crate) async fn page(
    store: &Handle<StoreMsg>,
    within: Duration,
    session: SessionId,
    (after, upto): (Seq, Seq),
) -> Result<Page, LoopError> {
    let range = Range {
        after,
        upto: Some(upto),
        max_bytes: PAGE_BYTES,
        ..Range::default()
    };
    let read = |done| StoreMsg::Read(Read::Load { session, range, done });
    let page: Page = answer(store.call(within, read).await)?;
    match page.damaged {
        Some(seq) => Err(LoopError::Damaged { seq }),
        None => Ok(page),
    }
}

/// Builds the conversation from these parts of a log.
pub(crate) async fn conversation(
    store: &Handle<StoreMsg>,
    within: Duration,
    session: SessionId,
    parts: &[(Seq, Seq)],
) -> Result<Earlier, LoopError> {
    let mut then = Earlier::default();
    for (number, (after, upto)) in parts.iter().enumerate() {
        if number > 0 {
            then.transcript.went_back();
        }
        let mut at = *after;
        while at < *upto {
            let page = page(store, within, session, (at, *upto)).await?;
            let last = page.events.last().map_or(at, |(seq, _)| *seq);
            if last <= at {
                return Err(LoopError::Short {
                    found: at,
                    head: *upto,
                });
            }
            for (seq, line) in &page.events {
                let event = decoded(*seq, line)?;
                then.transcript.apply(&event);
                then.seen.learn(&event.body);
            }
            at = last;
        }
    }
    Ok(then)
}

/// The conversation of a session at a point of its log.
pub(crate) async fn conversation_at(
    store: &Handle<StoreMsg>,
    within: Duration,
    session: SessionId,
    upto: Seq,
) -> Result<Earlier, LoopError> {
    let mut rewinds = Rewinds::default();
    let mut at = 0;
    while at < upto {
        let page = page(store, within, session, (at, upto)).await?;
        let last = page.events.last().map_or(at, |(seq, _)| *seq);
        if last <= at {
            return Err(LoopError::Short {
                found: at,
                head: upto,
            });
        }
        for (seq, line) in &page.events {
            rewinds.note(&decoded(*seq, line)?);
        }
        at = last;
    }
    conversation(store, within, session, &rewinds.parts(upto)).await
}

pub(crate) fn decoded(seq: Seq, line: &[u8]) -> Result<Event, LoopError> {
    EncodedEvent::decode(line).map_err(|source| LoopError::Line { seq, source })
}

pub(crate) fn answer<T>(answer: Result<Result<T, StoreError>, CallError>) -> Result<T, LoopError> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error @ StoreError::Aside(_))) => Err(LoopError::Aside(error)),
        Ok(Err(error)) => Err(LoopError::Refused(Fault::from(error))),
        Err(error) => Err(LoopError::Refused(
            Fault::unavailable("store_unavailable", error.to_string()).hint("try again in a moment"),
        )),
    }
}

/// The system prompt. The first event has the contents of its files. A log without them (an older one, or one that
/// another program wrote) needs the files read now: blocking work, so off the runtime's threads.
async fn system_prompt(
    services: &Services,
    mut created: SessionCreated,
    at: Timestamp,
) -> Result<System, LoopError> {
    if created.prompt.is_none() {
        let workdir = PathBuf::from(&created.workdir);
        let dir = workdir.clone();
        let read = move || agentd_prompt::sources(&Places::default(), &dir, "", None);
        let files = FileWork::of_directory(&workdir);
        let sources = files.run(&workdir, services.timing.load, read).await;
        let sources = sources.map_err(|failed| {
            let message = format!("cannot read the instruction files: {failed}");
            LoopError::Refused(Fault::unavailable("workdir_unavailable", message))
        })?;
        created.prompt = Some(Box::new(sources));
    }
    Ok(agentd_prompt::session_prompt(&created, at).into())
}
