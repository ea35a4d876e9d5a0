//! The background jobs of a session: what runs, what it said since it was last asked, how it ended.

use agentd_sandbox::{CollectSpec, Collected, Exceeded, Exit, Fresh, Running, SpillFile};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Ended jobs that can still be asked about.
const ENDED: usize = 16;
/// Bytes of output that wait to be read.
const UNREAD: usize = 128 << 10;

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnding {
    /// It was seen to end.
    Exited {
        /// Its exit code, when it ended by itself.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Why it was made to end, if it was.
        stopped: Option<&'static str>,
    },
    /// Nobody saw its end.
    Lost(String),
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobNews {
    /// It runs.
    Started {
        /// Its number in the session.
        job: u32,
        /// The command line.
        command: String,
    },
    /// It does not run any more.
    Ended {
        /// Its number in the session.
        job: u32,
        /// How it ended.
        ending: JobEnding,
    },
}

/// The jobs of a session. Clones are the same jobs; when the last one is dropped, those that run are killed (I5).
#[derive(Clone)]
pub struct Jobs(Arc<Book>);

struct Book {
    tell: Arc<dyn Fn(JobNews) + Send + Sync>,
    pages: Mutex<Pages>,
}

#[derive(Debug)]
struct Pages {
    last: u32,
    jobs: BTreeMap<u32, Page>,
}

#[derive(Debug)]
struct Page {
    job: Arc<Job>,
    /// Dropping the page ends the task, and with it the command.
    _task: Task,
}

#[derive(Debug)]
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One job as its readers see it.
#[derive(Debug)]
pub(crate) struct Job {
    unread: Mutex<Unread>,
    end: watch::Sender<Option<JobEnding>>,
    /// The whole output of a job that ended, until somebody takes it.
    whole: Mutex<Option<Whole>>,
    stop: watch::Sender<bool>,
}

/// The whole output of a job (up to the cap of what is kept).
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) file: SpillFile,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
}

/// Output that was not read yet.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// What is kept of it, with a mark where some is missing.
    pub(crate) text: String,
    /// Bytes at its beginning that were not kept.
    pub(crate) dropped: u64,
    /// Some of the job's output was never given to a reader.
    pub(crate) partial: bool,
    /// Where in the whole output the next piece is expected.
    next: u64,
}

impl Unread {
    fn push(&mut self, fresh: &Fresh) {
        let missing = fresh.offset.saturating_sub(self.next);
        if missing > 0 {
            self.partial = true;
            self.text
                .push_str(&format!("\n[... {missing} bytes are left out ...]\n"));
        }
        self.next = fresh.offset.saturating_add(size(&fresh.text));
        self.text.push_str(&fresh.text);
        let excess = self.text.len().saturating_sub(UNREAD);
        if excess > 0 {
            self.partial = true;
            let cut = self.text.ceil_char_boundary(excess);
            self.text.drain(..cut);
            self.dropped = self
                .dropped
                .saturating_add(u64::try_from(cut).unwrap_or(u64::MAX));
        }
    }
}

fn size(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    /// Asks it to end. Its end is waited for with [`Self::ended`].
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Its end, if it ended.
    pub(crate) fn end(&self) -> Option<JobEnding> {
        self.end.borrow().clone()
    }

    /// Comes when it ended.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as the job.
        let _ = self.end.subscribe().wait_for(Option::is_some).await;
    }

    /// Takes what was not read yet.
    pub(crate) fn take(&self) -> Unread {
        let mut unread = lock(&self.unread);
        let (next, partial) = (unread.next, unread.partial);
        std::mem::replace(
            &mut *unread,
            Unread {
                next,
                partial,
                ..Unread::default()
            },
        )
    }

    /// The reader was not given all that it took.
    pub(crate) fn cut(&self) {
        lock(&self.unread).partial = true;
    }

    /// Takes the whole output, when it ended and a reader missed some of it.
    pub(crate) fn take_whole(&self) -> Option<Whole> {
        let partial = lock(&self.unread).partial;
        lock(&self.whole).take().filter(|_| partial)
    }

    fn hear(&self, fresh: &Fresh) {
        lock(&self.unread).push(fresh);
    }
}

impl Jobs {
    /// No jobs yet; the next one gets the number after `last`. `tell` must not block.
    pub fn new(last: u32, tell: impl Fn(JobNews) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Book {
            tell: Arc::new(tell),
            pages: Mutex::new(Pages {
                last,
                jobs: BTreeMap::new(),
            }),
        }))
    }

    /// No jobs yet, and nobody who is told of them.
    #[must_use]
    pub fn unheard() -> Self {
        Self::new(0, |_| {})
    }

    /// Kills all of them.
    pub fn kill_all(&self) {
        lock(&self.0.pages).jobs.clear();
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        let pages = lock(&self.0.pages);
        pages
            .jobs
            .values()
            .filter(|page| page.job.end().is_none())
            .count()
    }

    /// A job by its number.
    pub(crate) fn get(&self, job: u32) -> Option<Arc<Job>> {
        lock(&self.0.pages)
            .jobs
            .get(&job)
            .map(|page| Arc::clone(&page.job))
    }

    /// The numbers of all that are known.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        lock(&self.0.pages).jobs.keys().copied().collect()
    }

    /// Keeps a command that runs as a job; its number.
    pub(crate) fn add(&self, command: String, running: Running, spec: CollectSpec) -> u32 {
        let mut pages = lock(&self.0.pages);
        pages.forget_ended();
        let number = pages.last.saturating_add(1);
        pages.last = number;
        let job = Arc::new(Job {
            unread: Mutex::new(Unread::default()),
            end: watch::channel(None).0,
            whole: Mutex::new(None),
            stop: watch::channel(false).0,
        });
        let tell = Arc::clone(&self.0.tell);
        tell(JobNews::Started { job: number, command });
        let task = tokio::spawn(run(number, Arc::clone(&job), running, spec, tell));
        pages.jobs.insert(
            number,
            Page {
                job,
                _task: Task(task.abort_handle()),
            },
        );
        number
    }
}

impl Pages {
    fn forget_ended(&mut self) {
        let ended = self.jobs.iter().filter(|(_, page)| page.job.end().is_some());
        let ended: Vec<u32> = ended.map(|(number, _)| *number).collect();
        let excess = (ended.len() + 1).saturating_sub(ENDED);
        for number in ended.into_iter().take(excess) {
            self.jobs.remove(&number);
        }
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jobs").field(&*lock(&self.0.pages)).finish()
    }
}

/// Follows a job to its end.
async fn run(
    number: u32,
    job: Arc<Job>,
    running: Running,
    spec: CollectSpec,
    tell: Arc<dyn Fn(JobNews) + Send + Sync>,
) {
    let mut asked = job.stop.subscribe();
    let stop = async move {
        // The sender lives as long as the job.
        let _ = asked.wait_for(|stop| *stop).await;
    };
    let ended = running.collect_until(&spec, stop, |fresh| job.hear(&fresh)).await;
    let ending = match ended {
        Ok(mut collected) => {
            let (bytes, lines) = (collected.output.bytes(), collected.output.lines());
            let file = collected.spill.take();
            *lock(&job.whole) = file.map(|file| Whole { file, bytes, lines });
            ending(&collected, *job.stop.borrow())
        }
        Err(error) => JobEnding::Lost(error.to_string()),
    };
    tell(JobNews::Ended {
        job: number,
        ending: ending.clone(),
    });
    job.end.send_replace(Some(ending));
}

fn ending(collected: &Collected, asked: bool) -> JobEnding {
    let Exit {
        code,
        signal,
        exceeded,
    } = collected.exit;
    let stopped = match (collected.timed_out, asked && code.is_none()) {
        (true, _) => Some("its time was over"),
        (false, true) => Some("BashKill"),
        (false, false) => exceeded.filter(|found| !found.earlier).map(Exceeded::short),
    };
    JobEnding::Exited {
        exit_code: code,
        signal,
        stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(offset: u64, text: &str) -> Fresh {
        Fresh {
            offset,
            text: text.to_owned(),
        }
    }

    #[test]
    fn unread_output_is_bounded_and_says_what_is_missing() {
        let mut unread = Unread::default();
        unread.push(&fresh(0, "one\n"));
        unread.push(&fresh(10, "two\n"));
        assert_eq!(unread.text, "one\n\n[... 6 bytes are left out ...]\ntwo\n");
        let mut unread = Unread::default();
        unread.push(&fresh(0, &"x".repeat(UNREAD)));
        assert_eq!((unread.text.len(), unread.dropped), (UNREAD, 0));
        unread.push(&fresh(size(&unread.text), "yy"));
        assert_eq!((unread.text.len(), unread.dropped), (UNREAD, 2));
        assert!(unread.text.ends_with("xyy"));
    }
}
