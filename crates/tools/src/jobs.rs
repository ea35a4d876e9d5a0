//! The background jobs of a session: the running ones, their unread output, and how they ended.

use crate::context::Spilled;
use crate::job::{Collecting, Job, Whole, lock};
use agentd_sandbox::{Collected, Exceeded, Exit};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// Ended jobs that can still be polled.
const ENDED: usize = 16;

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnding {
    /// It ended, and its end was observed.
    Exited {
        /// The exit code, if it exited by itself.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Why it was killed, if it was.
        stopped: Option<&'static str>,
    },
    /// Its end was not observed.
    Lost(String),
}

/// A change in the state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobNews {
    /// It was started.
    Started {
        /// Its number in the session.
        job: u32,
        /// The command line.
        command: String,
    },
    /// It is no longer running.
    Ended {
        /// Its number in the session.
        job: u32,
        /// How it ended.
        ending: JobEnding,
    },
}

/// The jobs of a session. Clones share the same jobs; dropping the last clone kills those that run (I5).
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

impl Jobs {
    /// An empty set of jobs whose next number is the one after `last`. `tell` must not block.
    pub fn new(last: u32, tell: impl Fn(JobNews) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Book {
            tell: Arc::new(tell),
            pages: Mutex::new(Pages {
                last,
                jobs: BTreeMap::new(),
            }),
        }))
    }

    /// An empty set of jobs that reports to no one.
    #[must_use]
    pub fn unheard() -> Self {
        Self::new(0, |_| {})
    }

    /// Kills all jobs.
    pub fn kill_all(&self) {
        lock(&self.0.pages).jobs.clear();
    }

    /// The number of running jobs.
    pub(crate) fn running(&self) -> usize {
        lock(&self.0.pages).running()
    }

    /// A job by its number.
    pub(crate) fn get(&self, job: u32) -> Option<Arc<Job>> {
        lock(&self.0.pages)
            .jobs
            .get(&job)
            .map(|page| Arc::clone(&page.job))
    }

    /// The numbers of all known jobs.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        lock(&self.0.pages).jobs.keys().copied().collect()
    }

    /// Keeps a running command as a job and returns its number. Returns the command unchanged if `most` jobs run.
    pub(crate) fn keep(
        &self,
        command: String,
        job: &Arc<Job>,
        collecting: Collecting,
        most: usize,
    ) -> Result<u32, Collecting> {
        let mut pages = lock(&self.0.pages);
        if pages.running() >= most {
            return Err(collecting);
        }
        pages.forget_ended();
        let number = pages.last.saturating_add(1);
        pages.last = number;
        job.alone();
        let tell = Arc::clone(&self.0.tell);
        tell(JobNews::Started { job: number, command });
        let task = tokio::spawn(run(number, Arc::clone(job), collecting, tell));
        let page = Page {
            job: Arc::clone(job),
            _task: Task(task.abort_handle()),
        };
        pages.jobs.insert(number, page);
        Ok(number)
    }
}

impl Pages {
    fn running(&self) -> usize {
        self.jobs.values().filter(|page| page.job.end().is_none()).count()
    }

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
async fn run(number: u32, job: Arc<Job>, collecting: Collecting, tell: Arc<dyn Fn(JobNews) + Send + Sync>) {
    let (ending, whole) = match collecting.await {
        Ok(mut collected) => (ending(&collected, job.stopping()), whole(&mut collected)),
        Err(error) => (JobEnding::Lost(error.to_string()), None),
    };
    // Closed before the report, so that listeners find the job ended, with all of its output.
    job.close(ending.clone(), whole);
    tell(JobNews::Ended { job: number, ending });
}

/// The complete output, whether in memory or in a file.
fn whole(collected: &mut Collected) -> Option<Whole> {
    let output = &collected.output;
    let kept = match collected.spill.take() {
        Some(file) => Spilled::File(file),
        None if output.skipped() == 0 => Spilled::Memory([output.head(), &output.tail()].concat()),
        None => return None,
    };
    Some(Whole {
        kept,
        bytes: output.bytes(),
        lines: output.lines(),
    })
}

fn ending(collected: &Collected, asked: bool) -> JobEnding {
    let Exit {
        code,
        signal,
        exceeded,
        ..
    } = collected.exit;
    let stopped = match (collected.timed_out, asked && code.is_none()) {
        (true, _) => Some("its time limit was reached"),
        (false, true) => Some("BashKill"),
        (false, false) => exceeded.filter(|found| !found.earlier).map(Exceeded::short),
    };
    JobEnding::Exited {
        exit_code: code,
        signal,
        stopped,
    }
}
