//! One run of a tool call: permit, tool, result.

use crate::addresses;
use crate::conceal;
use crate::focus::Focus;
use crate::guarding::guarding;
use crate::pre_images;
use crate::worker::ToolStart;
use agentd_actor_kit::{Credit, Done, Handle, Read, RunEvent, SessionMsg, StoreMsg, ToolMsg, ToolPermit};
use agentd_fault_points as fault;
use agentd_file_work::FileWork;
use agentd_protocol::{Binding, Delta, SessionId, ToolCallId, ToolOutcome, ToolStatus};
use agentd_store::Blob;
use agentd_tools::{
    Beneath, BlobSource, Finished, OnStart, Prepared, ProgressSink, Spilled, ToolContext, unanswered,
};
use bytes::Bytes;
use ractor::ActorRef;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// A shorter wait is not reported.
const NOTICEABLE: Duration = Duration::from_millis(50);
/// How often to ask the executor again after it failed with the request.
pub(crate) const EXECUTOR_TRIES: u32 = 20;
/// The pause between two of these attempts.
pub(crate) const EXECUTOR_PAUSE: Duration = Duration::from_millis(100);
/// The timeout for opening the working directory.
const OPEN_WITHIN: Duration = Duration::from_secs(10);
/// The timeout for checking whether the approved state still holds.
pub(crate) const LOOK_WITHIN: Duration = Duration::from_secs(30);
/// Output messages in the session's mailbox; further ones are dropped, so live output may have gaps.
const CREDITS: usize = 8;
/// Output up to this size travels with the result into its append; larger output is stored as a blob first.
pub(crate) const BLOB_IN_APPEND: usize = 256 * 1024;
/// Characters of the name of a stored output in the text for the model.
const SHOWN: usize = 16;
/// The timeout for storing a large output.
pub(crate) const PUT_WITHIN: Duration = Duration::from_secs(30);
/// The timeout for reading a stored content.
const GET_WITHIN: Duration = Duration::from_secs(30);

/// Runs prepared calls; tests substitute another implementation.
pub(crate) trait Runner: Send + Sync + 'static {
    /// Runs a call to its one result.
    fn run(&self, prepared: &Prepared, ctx: ToolContext) -> impl Future<Output = Finished> + Send;
}

/// The real tools.
#[derive(Debug)]
pub(crate) struct Tools;

impl Runner for Tools {
    async fn run(&self, prepared: &Prepared, ctx: ToolContext) -> Finished {
        agentd_tools::run(prepared, ctx).await
    }
}

/// Sends events to the session.
#[derive(Debug, Clone)]
struct News {
    to: ActorRef<SessionMsg>,
    tool_call: ToolCallId,
    attempt: u32,
    credits: Arc<Semaphore>,
}

impl News {
    fn send(&self, event: RunEvent) {
        let _ = self.to.cast(SessionMsg::Tool {
            tool_call: self.tool_call,
            attempt: self.attempt,
            event,
        });
    }

    fn end(&self, outcome: ToolOutcome, blobs: Vec<Blob>) {
        self.send(RunEvent::Ended(Box::new(outcome), blobs));
    }

    fn progress(&self) -> ProgressSink {
        let news = self.clone();
        ProgressSink::new(move |progress| {
            let Ok(credit) = Arc::clone(&news.credits).try_acquire_owned() else {
                return;
            };
            let delta = Delta::ToolOutput {
                tool_call: news.tool_call,
                offset: progress.offset,
                text: conceal::text(progress.text),
            };
            news.send(RunEvent::Output(delta, Credit(Some(credit))));
        })
    }
}

/// Runs the call. The result is always the last message.
pub(crate) async fn run<R: Runner>(runner: &R, start: ToolStart) {
    let credits = Arc::new(Semaphore::new(CREDITS));
    let news = News {
        to: start.to.clone(),
        tool_call: start.tool_call,
        attempt: start.attempt,
        credits,
    };
    let Some(permit) = admission(&start, &news).await else {
        news.end(
            failed("the tool executor is not running or too many calls wait; nothing was done"),
            Vec::new(),
        );
        return;
    };
    news.send(RunEvent::Granted);
    let (store, session) = (start.store.clone(), start.session);
    let focus = Focus::of(&permit.limits, &start.seen);
    let finished = work(runner, start, &news, &permit).await;
    let (outcome, blobs) = keep_output(finished, (&store, session), focus).await;
    // Return the permit first, so that the session's next call finds it free.
    drop(permit);
    match fault::point(fault::BEFORE_STORE) {
        Ok(()) => news.end(outcome, blobs),
        Err(injected) => news.end(failed(&injected.to_string()), Vec::new()),
    }
}

fn failed(why: &str) -> ToolOutcome {
    ToolOutcome::text(ToolStatus::Error, format!("Cannot run the tool: {why}.")).coded("E_TOOL")
}

/// Waits for a permit. There is no deadline: the wait ends with a permit or a kill, and is visible to the session.
async fn admission(start: &ToolStart, news: &News) -> Option<ToolPermit> {
    for _ in 0..EXECUTOR_TRIES {
        let (done, mut permit) = Done::channel();
        start.executor.cast(ToolMsg::Acquire {
            session: start.session,
            class: start.prepared.effect,
            workdir: start.workdir.clone(),
            done,
        });
        if let Some(permit) = granted(&mut permit, news).await {
            return Some(permit);
        }
        // The executor failed with the request; the root restarts it.
        sleep(EXECUTOR_PAUSE).await;
    }
    None
}

async fn granted(permit: &mut oneshot::Receiver<ToolPermit>, news: &News) -> Option<ToolPermit> {
    if let Ok(answer) = timeout(NOTICEABLE, &mut *permit).await {
        return answer.ok();
    }
    news.send(RunEvent::Waiting);
    permit.await.ok()
}

async fn work<R: Runner>(runner: &R, start: ToolStart, news: &News, permit: &ToolPermit) -> Finished {
    if let Err(injected) = fault::point(fault::BEFORE_SPAWN) {
        return failed(&injected.to_string()).into();
    }
    let files = FileWork::of_session(&start.session.to_string());
    let dir = start.workdir.clone();
    let opened = files.run(&start.workdir, OPEN_WITHIN, move || Beneath::open(&dir));
    let workdir = match opened.await {
        Ok(Ok(workdir)) => Arc::new(workdir),
        Ok(Err(error)) => return failed(&error.to_string()).into(),
        Err(error) => return unanswered(&start.prepared.name, error).into(),
    };
    let prepared = start.prepared.within(workdir.path());
    let bound = start.mandate.bound.clone();
    if let Some(changed) = changed(&prepared, bound, (&workdir, &files), permit).await {
        return changed.into();
    }
    let judged = start.mandate.contents.as_ref();
    if let Some(replaced) = replaced(&prepared, judged, (&workdir, &files), permit).await {
        return replaced.into();
    }
    let guard = (permit.protected.as_ref(), permit.environment.as_ref());
    let guarding = guarding(&prepared, (workdir.path(), &files), guard, &start.mandate).await;
    if let Some(search) = &permit.search {
        search.touched(workdir.path());
    }
    let ctx = ToolContext {
        call: start.tool_call,
        workdir: Arc::clone(&workdir),
        guarding,
        seen: start.seen,
        jobs: start.jobs,
        warden: permit.warden.clone(),
        limits: Arc::clone(&permit.limits),
        spill_dir: permit.spill_dir.clone(),
        map_dir: permit.map_dir.clone(),
        blobs: blobs(&start.store),
        remote: start.remote,
        progress: news.progress(),
        files: addresses::files(start.mandate.judges.clone()),
        addresses: addresses::gate(start.mandate.judges),
        search: permit.search.clone(),
        parsers: permit.parsers.clone(),
        file_work: files,
        on_start: OnStart::new(|| {
            // A started effect cannot be undone, so there is nowhere to report a failure.
            let _ = fault::point(fault::AFTER_SPAWN);
        }),
    };
    runner.run(&prepared, ctx).await
}

/// Checks right before the run whether the approved state still holds; a call that changed does not run (I7).
async fn changed(
    prepared: &Prepared,
    bound: Option<Binding>,
    (workdir, files): (&Arc<Beneath>, &FileWork),
    permit: &ToolPermit,
) -> Option<ToolOutcome> {
    let bound = bound?;
    let (call, beneath) = (prepared.clone(), Arc::clone(workdir));
    let environment = Arc::clone(&permit.environment);
    let watch = permit.limits.max_watched.try_into().unwrap_or(usize::MAX);
    let look = move || call.binding(&beneath, &environment, watch);
    let now = files.run(workdir.path(), LOOK_WITHIN, look).await;
    let now = now.unwrap_or_else(|error| Err(error.to_string()));
    prepared.unbound(&bound, now)
}

/// Checks right before the run whether a call that a grant allowed still runs the files that were judged (I7).
async fn replaced(
    prepared: &Prepared,
    judged: Option<&BTreeMap<String, String>>,
    (workdir, files): (&Arc<Beneath>, &FileWork),
    permit: &ToolPermit,
) -> Option<ToolOutcome> {
    let judged = judged?;
    let (call, beneath) = (prepared.clone(), Arc::clone(workdir));
    let environment = Arc::clone(&permit.environment);
    let look = move || call.contents(&beneath, &environment);
    let now = files.run(workdir.path(), LOOK_WITHIN, look).await;
    prepared.replaced(judged, now.unwrap_or_else(|error| Err(error.to_string())))
}

/// Makes a result fit for the log: removes credentials, and stores output that is too long as a blob.
async fn keep_output(
    finished: Finished,
    (store, session): (&Handle<StoreMsg>, SessionId),
    focus: Option<Focus>,
) -> (ToolOutcome, Vec<Blob>) {
    let Finished {
        outcome,
        spilled,
        pre_images,
    } = finished;
    let mut outcome = conceal::outcome(outcome);
    let mut blobs = pre_images::keep(pre_images, (store, session), &mut outcome).await;
    let Some(spilled) = spilled else {
        return (outcome, blobs);
    };
    match keep(spilled, (store, session), focus).await {
        Ok((name, spill, about)) => {
            let path: String = name.chars().take(SHOWN).collect();
            if let Some(truncated) = &mut outcome.truncated {
                truncated.spill = Some(name);
            }
            let told = format!(
                "\n[The whole output is kept; do not run it again. Read a part of it: file_path \"blob:{path}\" with offset and limit.]"
            );
            outcome.llm_text.push_str(&about);
            outcome.llm_text.push_str(&told);
            blobs.extend(spill);
        }
        // The result is good without it; only the middle of the long output is lost.
        Err(error) => tracing::warn!(%error, "could not keep the whole output of a tool"),
    }
    (outcome, blobs)
}

/// Gives tools access to stored contents.
pub(crate) fn blobs(store: &Handle<StoreMsg>) -> BlobSource {
    let store = store.clone();
    BlobSource::new(move |name| {
        let store = store.clone();
        async move {
            let read = store
                .call(GET_WITHIN, |done| StoreMsg::Read(Read::Blob { name, done }))
                .await;
            match read {
                Ok(Ok(bytes)) => Ok(bytes.map(|bytes| bytes.to_vec())),
                Ok(Err(error)) => Err(error.to_string()),
                Err(error) => Err(error.to_string()),
            }
        }
    })
}

async fn keep(
    spilled: Spilled,
    (store, session): (&Handle<StoreMsg>, SessionId),
    focus: Option<Focus>,
) -> Result<(String, Vec<Blob>, String), String> {
    let bytes = spilled.bytes().await.map_err(|error| error.to_string())?;
    let bytes = Bytes::from(conceal::bytes(bytes).await?);
    let about = match focus {
        Some(focus) => focus.about(bytes.clone()).await,
        None => String::new(),
    };
    if bytes.len() <= BLOB_IN_APPEND {
        let blob = Blob::new(bytes);
        return Ok((blob.name().to_owned(), vec![blob], about));
    }
    let put = store
        .call(PUT_WITHIN, |done| StoreMsg::PutBlob { session, bytes, done })
        .await;
    match put {
        Ok(Ok(name)) => Ok((name, Vec::new(), about)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
