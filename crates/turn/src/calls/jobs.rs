//! Background jobs: commands that continue across calls and turns. The log records which are running; the model learns
//! of an end with its next request.

use crate::draft::Draft;
use crate::durable::Durable;
use crate::durable::apply::Refusal;
use crate::effect::Effect;
use agentd_protocol::{JobFinished, JobLost, JobStarted, NoteInjected, NoteKind, RunningJob, Timestamp};

/// How many characters of its command line the model is reminded of.
const COMMAND_CHARS: usize = 200;

/// Why a job ends when the daemon does.
pub(crate) const DRAINING: &str = "the daemon is stopping";

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// Its end was observed.
    Exited {
        /// Its exit code, when it ended by itself.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Why it was stopped, if it was.
        stopped: Option<String>,
    },
    /// Its end was not observed.
    Lost(String),
}

/// A call started a job. A job that starts when nothing may run any more is killed immediately (I5).
pub(crate) fn started(draft: &mut Draft<'_, '_>, job: u32, command: String) {
    if draft.durable().closed.is_some() {
        draft.effect(Effect::KillJobs);
        return;
    }
    draft.volatile().jobs.insert(job);
    draft.emit(JobStarted { job, command });
    if draft.seen().draining {
        stop_all(draft, DRAINING);
    }
}

/// Records a job's end. For a job that was closed earlier, the log already has one.
pub(crate) fn ended(draft: &mut Draft<'_, '_>, job: u32, end: JobEnd) {
    draft.volatile().jobs.remove(&job);
    if !draft.durable().jobs.iter().any(|running| running.job == job) {
        return;
    }
    match end {
        JobEnd::Exited {
            exit_code,
            signal,
            stopped,
        } => draft.emit(JobFinished {
            job,
            exit_code,
            signal,
            stopped,
        }),
        JobEnd::Lost(reason) => draft.emit(JobLost { job, reason }),
    }
}

/// Kills all jobs because the session closes or the daemon stops.
pub(crate) fn stop_all(draft: &mut Draft<'_, '_>, why: &str) {
    let running: Vec<u32> = draft.durable().jobs.iter().map(|running| running.job).collect();
    if running.is_empty() {
        return;
    }
    draft.volatile().jobs.clear();
    draft.effect(Effect::KillJobs);
    for job in running {
        draft.emit(JobFinished {
            job,
            exit_code: None,
            signal: None,
            stopped: Some(why.to_owned()),
        });
    }
}

/// Jobs in the log that do not run here: their processes died with the incarnation that started them.
pub(crate) fn lost(draft: &Draft<'_, '_>) -> Vec<u32> {
    let jobs = draft.durable().jobs.iter().map(|running| running.job);
    jobs.filter(|job| !draft.seen().jobs.contains(job)).collect()
}

/// Tells the model what happened to its jobs since it was last told.
pub(crate) fn tell(draft: &mut Draft<'_, '_>) {
    let text = draft.durable().job_news.join("\n");
    if !text.is_empty() {
        draft.emit(NoteInjected {
            kind: NoteKind::JobNotice,
            text,
        });
    }
}

impl Durable {
    pub(crate) fn job_started(&mut self, started: &JobStarted, at: Timestamp) -> Result<(), Refusal> {
        if started.job <= self.jobs_started {
            return Err("the job was started before");
        }
        self.jobs_started = started.job;
        self.jobs.push(RunningJob {
            job: started.job,
            command: started.command.clone(),
            started_at: at,
        });
        Ok(())
    }

    pub(crate) fn job_finished(&mut self, finished: &JobFinished) -> Result<(), Refusal> {
        let how = match (&finished.stopped, finished.exit_code, finished.signal) {
            (Some(why), ..) => format!("was stopped: {why}"),
            (None, Some(code), _) => format!("ended with exit code {code}"),
            (None, None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None, None) => "ended in an unknown way".to_owned(),
        };
        self.job_gone(finished.job, &how)
    }

    pub(crate) fn job_lost(&mut self, lost: &JobLost) -> Result<(), Refusal> {
        let how = format!(
            "is lost: {}. It does not run any more, what it had done may remain, and its unread output is gone",
            lost.reason
        );
        self.job_gone(lost.job, &how)
    }

    fn job_gone(&mut self, job: u32, how: &str) -> Result<(), Refusal> {
        let at = self
            .jobs
            .iter()
            .position(|running| running.job == job)
            .ok_or("no such job runs")?;
        let command = self.jobs.remove(at).command;
        let mut short: String = command.chars().take(COMMAND_CHARS).collect();
        if short.len() < command.len() {
            short.push_str("...");
        }
        self.job_news
            .push(format!("Background job {job} (`{short}`) {how}."));
        Ok(())
    }
}
