//! From the log to a loop's state. Runs in a task of the supervisor, never in a handler.

use crate::conceal;
use crate::error::LoopError;
use crate::services::Services;
use agentd_actor_kit::{CallError, Read, StoreMsg};
use agentd_prompt::Places;
use agentd_protocol::{Event, EventBody, Fault, Seq, SessionCreated, SessionId, Timestamp};
use agentd_store::{Claim, EncodedEvent, Page, Range, StoreError};
use agentd_tools::FilesSeen;
use agentd_transcript::Transcript;
use agentd_turn::Agent;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of the log that are read at once.
const PAGE_BYTES: u32 = 1024 * 1024;

/// Everything of a session that is made from its log.
#[derive(Debug)]
pub struct Folded {
    pub(crate) session: SessionId,
    pub(crate) epoch: u64,
    pub(crate) agent: Agent,
    pub(crate) transcript: Transcript,
    pub(crate) seen: FilesSeen,
    pub(crate) system: String,
    /// The first event as it was, whatever was changed since: the prompt is made from it.
    first: Option<Box<SessionCreated>>,
}

impl Folded {
    /// A session without a log.
    fn empty(services: &Services, session: SessionId, epoch: u64) -> Self {
        Self {
            session,
            epoch,
            agent: Agent::new(session, Arc::clone(&services.config)),
            transcript: Transcript::new(),
            seen: FilesSeen::default(),
            system: String::new(),
            first: None,
        }
    }

    fn apply(&mut self, event: &Event) -> Result<(), LoopError> {
        self.agent.apply(event)?;
        self.transcript.apply(event);
        if let EventBody::SessionCreated(created) = &event.body {
            self.first = Some(Box::new(created.clone()));
        }
        if let EventBody::ToolFinished(finished) = &event.body {
            self.seen.apply(finished.outcome.details.as_ref());
        }
        Ok(())
    }

    fn page(&mut self, page: &Page) -> Result<Seq, LoopError> {
        let mut last = self.agent.durable().head;
        for (seq, line) in &page.events {
            let event = EncodedEvent::decode(line).map_err(|source| LoopError::Line { seq: *seq, source })?;
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
    Ok(folded)
}

/// Becomes the owner of a session and folds its log.
///
/// # Errors
/// [`LoopError::Refused`] when it cannot be loaded now; anything else: its log is not understood.
pub async fn load(services: &Services, session: SessionId) -> Result<Folded, LoopError> {
    let claim = claim(services, session).await?;
    let mut folded = Folded::empty(services, session, claim.epoch);
    let mut at = 0;
    while at < claim.head {
        let page = page(services, session, at, claim.head).await?;
        let last = folded.page(&page)?;
        if last <= at {
            return Err(LoopError::Short {
                found: at,
                head: claim.head,
            });
        }
        at = last;
    }
    if let Some(first) = folded.first.take() {
        let at = folded.agent.durable().created_at;
        folded.system = system_prompt(services, *first, at).await?;
    }
    Ok(folded)
}

async fn claim(services: &Services, session: SessionId) -> Result<Claim, LoopError> {
    let claim = services
        .store
        .call(services.timing.load, |done| StoreMsg::Claim { session, done })
        .await;
    answer(claim)
}

async fn page(services: &Services, session: SessionId, after: Seq, head: Seq) -> Result<Page, LoopError> {
    let range = Range {
        after,
        upto: Some(head),
        max_bytes: PAGE_BYTES,
        ..Range::default()
    };
    let read = |done| StoreMsg::Read(Read::Load { session, range, done });
    answer(services.store.call(services.timing.load, read).await)
}

fn answer<T>(answer: Result<Result<T, StoreError>, CallError>) -> Result<T, LoopError> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(LoopError::Refused(Fault::from(error))),
        Err(error) => Err(LoopError::Refused(
            Fault::unavailable("store_unavailable", error.to_string()).hint("try again in a moment"),
        )),
    }
}

/// The system prompt. What its files said is in the first event; those of a log that does not say it (an older one, or
/// one that another program wrote) are read now: blocking work, so beside the runtime's threads.
async fn system_prompt(
    services: &Services,
    mut created: SessionCreated,
    at: Timestamp,
) -> Result<String, LoopError> {
    if created.prompt.is_none() {
        let workdir = PathBuf::from(&created.workdir);
        let read = move || agentd_prompt::sources(&Places::default(), &workdir, "", None);
        let read = tokio::time::timeout(services.timing.load, tokio::task::spawn_blocking(read)).await;
        let Ok(Ok(sources)) = read else {
            let what = "the instruction files of the working directory could not be read in time";
            return Err(LoopError::Refused(Fault::unavailable(
                "workdir_unavailable",
                what,
            )));
        };
        created.prompt = Some(Box::new(sources));
    }
    Ok(agentd_prompt::session_prompt(&created, at).text)
}
