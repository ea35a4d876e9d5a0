//! The actor: schedules passes and answers searches. A pass runs on a thread of its own, a search in a task.

use crate::answer::{Question, answer};
use crate::embedder::Embedder;
use crate::index_files::{file_of, prepare, used};
use crate::limits::Limits;
use crate::pace::{Leash, Pace};
use crate::pass::{Job, Progress, ReadRule};
use crate::schedule::{Schedule, Wish};
use crate::work::bring_up_to_date;
use agentd_actor_kit::{Clock, Done};
use agentd_file_work::{FileWork, Turns};
use agentd_tools::{SearchFound, SearchQuery, TagFinders};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

/// Searches that run concurrently on one file system,
const AT_ONCE: usize = 2;
/// and searches that wait or run; more are refused.
const MAX_SEARCHES: usize = 256;
/// The nice increment of the indexing thread.
const NICER: i32 = 10;
/// How long queries get no vectors after a failure.
const WITHOUT_VECTORS_MS: u64 = 60_000;
/// Time limit of a pass. It rests in proportion to its work, so a large directory takes a while.
const PASS_WITHIN: Duration = Duration::from_secs(6 * 3_600);
/// Directories whose progress is remembered.
const MAX_PROGRESS: usize = 1_024;

/// The arguments of the indexer.
#[derive(Debug, Clone)]
pub struct IndexerArgs {
    /// The directory of the indexes.
    pub dir: PathBuf,
    /// The limits.
    pub limits: Limits,
    /// The rule that decides which files may be read.
    pub rule: ReadRule,
    /// The source of vectors, if any.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// What parses source files, if there is anything.
    pub parsers: Option<Arc<dyn TagFinders>>,
    /// Where time comes from.
    pub clock: Clock,
}

/// The messages of the indexer.
#[derive(Debug)]
pub enum IndexMsg {
    /// Tools run in a directory: keep its index up to date.
    Touched {
        /// The directory.
        workdir: PathBuf,
    },
    /// Run a search.
    Search {
        /// The directory.
        workdir: PathBuf,
        /// The query.
        query: SearchQuery,
        /// The answer; the error is text for a model.
        done: Done<Result<SearchFound, String>>,
    },
    /// Ask for the directories of this daemon's indexes.
    Status {
        /// Those that are known, in the order of their names.
        done: Done<Vec<IndexStatus>>,
    },
    /// A pass has ended, or its thread died (private).
    Ended {
        /// The directory.
        workdir: PathBuf,
        /// The result.
        outcome: Result<(), String>,
    },
    /// The vector of a query could not be made (private).
    NoVector,
}

/// The index of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexStatus {
    /// The directory.
    pub workdir: PathBuf,
    /// What its last pass saw.
    pub progress: Progress,
    /// Whether its pass runs now.
    pub running: bool,
}

/// Keeps the indexes of working directories.
#[derive(Debug)]
pub struct Indexer;

/// The state of an indexer.
#[derive(Debug)]
pub struct IndexerState {
    args: IndexerArgs,
    schedule: Schedule,
    progress: BTreeMap<PathBuf, watch::Sender<Progress>>,
    /// Ends the running pass when it is dropped.
    leash: Option<Leash>,
    searches: Arc<Semaphore>,
    at_once: Arc<Turns>,
    /// Queries get no vectors until this time, in milliseconds.
    no_vectors_until: u64,
    boot: String,
}

impl Indexer {
    /// Starts the indexer, linked to `supervisor`.
    ///
    /// # Errors
    /// The supervisor is stopping.
    pub async fn start(args: IndexerArgs, supervisor: ActorCell) -> Result<ActorRef<IndexMsg>, SpawnErr> {
        let (actor, _) = Actor::spawn_linked(None, Self, args, supervisor).await?;
        Ok(actor)
    }
}

impl Actor for Indexer {
    type Msg = IndexMsg;
    type State = IndexerState;
    type Arguments = IndexerArgs;

    async fn pre_start(
        &self,
        _: ActorRef<IndexMsg>,
        args: IndexerArgs,
    ) -> Result<IndexerState, ActorProcessingErr> {
        Ok(IndexerState {
            args,
            schedule: Schedule::default(),
            progress: BTreeMap::new(),
            leash: None,
            searches: Arc::new(Semaphore::new(MAX_SEARCHES)),
            at_once: Arc::new(Turns::new(AT_ONCE)),
            no_vectors_until: 0,
            boot: boot(),
        })
    }

    async fn handle(
        &self,
        me: ActorRef<IndexMsg>,
        message: IndexMsg,
        state: &mut IndexerState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            IndexMsg::Touched { workdir } => {
                state.want(&workdir);
            }
            IndexMsg::Search { workdir, query, done } => state.search(workdir, query, done, &me),
            IndexMsg::Status { done } => done.answer(state.status()),
            IndexMsg::Ended { workdir, outcome } => state.ended(&workdir, outcome),
            IndexMsg::NoVector => {
                state.no_vectors_until = state.args.clock.now().0.saturating_add(WITHOUT_VECTORS_MS);
            }
        }
        state.begin(&me);
        Ok(())
    }
}

impl IndexerState {
    /// The progress of a directory's index. Schedules a pass if one is due.
    fn want(&mut self, workdir: &Path) -> watch::Receiver<Progress> {
        if self.progress.len() >= MAX_PROGRESS {
            self.progress.retain(|_, progress| progress.receiver_count() > 0);
        }
        let progress = self.progress.entry(workdir.to_owned()).or_insert_with(|| {
            let first = Progress {
                current: true,
                ..Progress::default()
            };
            watch::channel(first).0
        });
        let receiver = progress.subscribe();
        let now = self.args.clock.now().0;
        if self.schedule.want(workdir, now, self.args.limits.refresh) == Wish::New {
            progress.send_modify(|progress| {
                progress.current = false;
                progress.failed = None;
            });
        }
        receiver
    }

    fn status(&self) -> Vec<IndexStatus> {
        let status = |(workdir, progress): (&PathBuf, &watch::Sender<Progress>)| IndexStatus {
            workdir: workdir.clone(),
            progress: progress.borrow().clone(),
            running: self.schedule.runs(workdir),
        };
        self.progress.iter().map(status).collect()
    }

    fn search(
        &mut self,
        workdir: PathBuf,
        query: SearchQuery,
        done: Done<Result<SearchFound, String>>,
        me: &ActorRef<IndexMsg>,
    ) {
        let Ok(place) = Arc::clone(&self.searches).try_acquire_owned() else {
            return done.answer(Err("too many searches are waiting".to_owned()));
        };
        let progress = self.want(&workdir);
        let paused = self.args.clock.now().0 < self.no_vectors_until;
        let question = Question {
            file: file_of(&self.args.dir, &workdir),
            workdir,
            query,
            limits: self.args.limits,
            embedder: self.args.embedder.clone().filter(|_| !paused),
            at_once: Arc::clone(&self.at_once),
        };
        let me = me.clone();
        tokio::spawn(async move {
            let answer = answer(question, progress, || {
                let _ = me.cast(IndexMsg::NoVector);
            });
            done.answer(answer.await);
            drop(place);
        });
    }

    /// Starts the next pass, if none is running.
    fn begin(&mut self, me: &ActorRef<IndexMsg>) {
        let Some(workdir) = self.schedule.next() else {
            return;
        };
        let Some(tell) = self.progress.get(&workdir).cloned() else {
            return self.schedule.ended(self.args.clock.now().0);
        };
        let (pace, leash) = Pace::new(self.args.limits.share);
        self.leash = Some(leash);
        let job = Job {
            file: file_of(&self.args.dir, &workdir),
            workdir: workdir.clone(),
            limits: self.args.limits,
            rule: self.args.rule.clone(),
            parsers: self.args.parsers.clone(),
            boot: self.boot.clone(),
        };
        let files = FileWork::of_session(&format!("index of {}", workdir.display()));
        let place = workdir.clone();
        let done = Done::cast(me, move |outcome: Option<Result<(), String>>| IndexMsg::Ended {
            workdir,
            outcome: outcome.unwrap_or_else(|| Err("the index task ended unexpectedly".to_owned())),
        });
        let (dir, embedder) = (self.args.dir.clone(), self.args.embedder.clone());
        let now = UNIX_EPOCH + Duration::from_millis(self.args.clock.now().0);
        let runtime = Handle::current();
        let work = move || run(&job, pace, &tell, (&dir, now), embedder.as_deref(), &runtime);
        tokio::spawn(async move {
            // A thread of its own, because it lowers its priority permanently.
            let outcome = files.run_on(&place, PASS_WITHIN, work, |job| {
                // If the thread does not start, the job is dropped, and its answer channel with it.
                if let Err(error) = std::thread::Builder::new().name("indexer".to_owned()).spawn(job) {
                    tracing::warn!(%error, "could not start the indexing thread");
                }
            });
            let outcome = outcome.await;
            done.answer(outcome.unwrap_or_else(|failed| Err(failed.to_string())));
        });
    }

    fn ended(&mut self, workdir: &Path, outcome: Result<(), String>) {
        self.leash = None;
        self.schedule.ended(self.args.clock.now().0);
        if let Err(why) = &outcome {
            tracing::warn!(workdir = %workdir.display(), why, "could not index a directory");
        }
        if let Some(progress) = self.progress.get(workdir) {
            progress.send_modify(|progress| {
                progress.current = true;
                progress.failed = outcome.err();
            });
        }
    }
}

/// The main function of a pass's thread.
fn run(
    job: &Job,
    mut pace: Pace,
    tell: &watch::Sender<Progress>,
    (dir, now): (&Path, SystemTime),
    embedder: Option<&dyn Embedder>,
    runtime: &Handle,
) -> Result<(), String> {
    // On Linux this affects only the calling thread. If it fails, the rests still limit the load.
    let _ = rustix::process::nice(NICER);
    let mut work = || {
        prepare(dir)?;
        let embedder = embedder.map(|embedder| (embedder, runtime));
        bring_up_to_date(job, &mut pace, tell, embedder)?;
        used(dir, &job.file, job.limits.keep, now)
    };
    work().map_err(|error| error.to_string())
}

/// Identifies the current boot of the machine.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
