//! Workers of a loop: model calls, tools, background jobs, hooks, history work. Each advances point by point in the
//! schedule, ends when it is killed, and sends its messages in order.

use crate::effects::died;
use crate::loading::conversation;
use crate::messages::{Happening, Message, News};
use crate::models::Call;
use crate::options::Knob;
use crate::world::World;
use agentd_actor_kit::Earlier;
use agentd_protocol::{
    CallId, EffectClass, HistoryFailed, HookEvent, Seq, SessionId, ToolCallId, ToolOutcome, ToolStatus,
    UndoApplied, WorkspaceCheckpointed, WorkspacePrepared,
};
use agentd_turn::{Answer, Durable, Held, JobEnd, Phase, QuestionId, Reworked, Violation};

/// The task of a worker.
#[derive(Debug, PartialEq)]
pub(crate) enum Work {
    Model(Box<Call>),
    Tool {
        tool_call: ToolCallId,
        effect: EffectClass,
    },
    Job(u32),
    Hooks(QuestionId, HookEvent),
    CallHooks(ToolCallId),
    Rework {
        id: QuestionId,
        to: Option<Seq>,
    },
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The number of the loop that it works for.
    pub(crate) owner: u64,
    pub(crate) session: SessionId,
    pub(crate) work: Work,
    /// When its last message arrives: the next one must not overtake it.
    arrives: u64,
}

impl World {
    pub(crate) fn spawn(&mut self, owner: u64, session: SessionId, work: Work, within_ms: u64) -> u64 {
        self.last_worker += 1;
        let number = self.last_worker;
        let after = match self.chance(Knob::Slow, 100) {
            true => self.dice.between(20_000, 400_000),
            false => self.dice.between(1, within_ms.max(1)),
        };
        let worker = Worker {
            owner,
            session,
            work,
            arrives: 0,
        };
        self.here.workers.insert(number, worker);
        self.post(after, Happening::Worker(number));
        number
    }

    /// Kills a worker and releases what it holds.
    pub(crate) fn kill(&mut self, number: u64) {
        if let Some(Worker {
            work: Work::Model(call),
            ..
        }) = self.here.workers.remove(&number)
        {
            self.call_dropped(*call);
        }
    }

    pub(crate) fn kill_where(&mut self, which: impl Fn(&Worker) -> bool) {
        let chosen = self
            .here
            .workers
            .iter()
            .filter(|(_, worker)| which(worker))
            .map(|(number, _)| *number);
        for number in chosen.collect::<Vec<_>>() {
            self.kill(number);
        }
    }

    /// Sends a message from a worker to its loop.
    pub(crate) fn worker_says(&mut self, worker: &mut Worker, message: Message) {
        let soon = self.now.0 + self.dice.between(0, 3);
        worker.arrives = worker.arrives.max(soon);
        let after = worker.arrives - self.now.0;
        self.post(after, Happening::Loop(worker.owner, message));
    }

    /// Advances a worker to its next point.
    pub(crate) fn worker(&mut self, number: u64) {
        let Some(mut worker) = self.here.workers.remove(&number) else {
            return;
        };
        match &mut worker.work {
            Work::Model(_) => self.call_goes_on(number, worker),
            Work::Tool { tool_call, effect } => {
                let (tool_call, effect) = (*tool_call, *effect);
                self.tool_ends(&mut worker, number, tool_call, effect);
            }
            Work::Job(job) => {
                let (job, end) = (*job, self.job_ends());
                self.worker_says(&mut worker, Message::JobEnded { job, end });
            }
            Work::Hooks(asking, event) => {
                let id = *asking;
                let answer = Box::new(Answer::Hooks(self.hooks_said(*event)));
                self.worker_says(&mut worker, Message::Answered { id, answer });
            }
            Work::CallHooks(tool_call) => {
                let tool_call = *tool_call;
                self.worker_says(
                    &mut worker,
                    Message::Hooked {
                        tool_call,
                        worker: number,
                    },
                );
            }
            Work::Rework { id, to } => {
                let (id, to) = (*id, *to);
                self.rework_ends(&mut worker, id, to);
            }
        }
    }

    fn tool_ends(&mut self, worker: &mut Worker, number: u64, tool_call: ToolCallId, effect: EffectClass) {
        if effect == EffectClass::Exec && self.chance(Knob::Jobs, 100) {
            let (owner, session) = (worker.owner, worker.session);
            if let Some(hot) = self.here.loops.get_mut(&owner) {
                hot.last_job += 1;
                let job = hot.last_job;
                let running = self.spawn(owner, session, Work::Job(job), 90_000);
                if let Some(hot) = self.here.loops.get_mut(&owner) {
                    hot.jobs.insert(job, running);
                }
                self.worker_says(worker, Message::JobStarted { job });
            }
        }
        let outcome = Box::new(self.outcome());
        let message = Message::Tool {
            tool_call,
            worker: number,
            outcome,
        };
        self.worker_says(worker, message);
    }

    fn outcome(&mut self) -> ToolOutcome {
        if self.chance(Knob::ToolFail, 100) {
            return match self.dice.below(3) {
                0 => died(),
                1 => ToolOutcome::text(ToolStatus::Timeout, "it took too long"),
                _ => ToolOutcome::text(ToolStatus::Error, "it failed"),
            };
        }
        let words = match self.chance(Knob::Long, 100) {
            true => self.dice.between(500, 8_000),
            false => self.dice.between(1, 30),
        };
        let text = "word ".repeat(usize::try_from(words).unwrap_or(1));
        ToolOutcome::text(ToolStatus::Ok, text)
    }

    fn job_ends(&mut self) -> JobEnd {
        match self.dice.below(4) {
            0 => JobEnd::Lost("its warden went down".into()),
            exit_code => JobEnd::Exited {
                exit_code: i32::try_from(exit_code - 1).ok(),
                signal: None,
                stopped: None,
            },
        }
    }

    fn rework_ends(&mut self, worker: &mut Worker, id: QuestionId, to: Option<Seq>) {
        let failed = |message: &str| {
            Reworked::Failed(HistoryFailed {
                code: "E_TOOL".into(),
                message: message.into(),
            })
        };
        let mut earlier = None;
        let reworked = match to {
            _ if self.chance(Knob::ToolFail, 100) => failed("the disk is full"),
            Some(upto) => match conversation(&self.disk, worker.session, upto) {
                Ok(then) => {
                    earlier = Some(Box::new(Earlier {
                        transcript: then,
                        ..Earlier::default()
                    }));
                    Reworked::Done(nothing())
                }
                Err(error) => failed(&error.to_string()),
            },
            None => Reworked::Done(nothing()),
        };
        let message = Message::Reworked {
            id,
            reworked: Box::new(reworked),
            earlier,
        };
        self.worker_says(worker, message);
    }

    pub(crate) fn model_says(&mut self, worker: &mut Worker, id: (agentd_protocol::CallId, u32), news: News) {
        let (call, attempt) = id;
        self.worker_says(worker, Message::Model { call, attempt, news });
    }
}

impl World {
    /// The files of a session, recorded now: they often differ from the last time.
    pub(crate) fn checkpoint(&mut self) -> Result<WorkspaceCheckpointed, String> {
        if self.chance(Knob::ToolFail, 100) {
            return Err("the directory does not answer".to_owned());
        }
        let tree = format!("{:040x}", self.dice.between(1, 4));
        Ok(WorkspaceCheckpointed {
            tree,
            left_out: Vec::new(),
            kept: None,
            not_kept: None,
        })
    }
}

impl World {
    /// The setup commands of a workspace, run now.
    pub(crate) fn prepare(&mut self) -> WorkspacePrepared {
        if self.chance(Knob::ToolFail, 100) {
            return WorkspacePrepared::not_run("the sandbox is not available");
        }
        WorkspacePrepared {
            commands: Vec::new(),
            error: None,
        }
    }
}

fn nothing() -> UndoApplied {
    UndoApplied {
        undoes: Vec::new(),
        undoes_below: Vec::new(),
        undo_id: String::new(),
        changes: Vec::new(),
        trees: None,
        paths: Vec::new(),
    }
}

impl Worker {
    /// I5: according to the session's log, the work is still in progress.
    pub(crate) fn may_run(&self, durable: &Durable, beside: impl Fn(CallId) -> bool) -> Held {
        match &self.work {
            Work::Tool { tool_call, .. } => {
                let runs = durable
                    .open_calls()
                    .any(|call| call.id == *tool_call && call.is_running());
                let what = || {
                    format!(
                        "the tool of call {} runs, but the call does not",
                        tool_call.short()
                    )
                };
                if runs {
                    Ok(())
                } else {
                    Err(Violation::of("I5", what()))
                }
            }
            Work::Model(call) => {
                let phase = durable.turn.as_ref().map(|turn| &turn.phase);
                let streams =
                    matches!(phase, Some(Phase::Streaming(now)) if (now.call, now.attempt) == call.id);
                if streams || beside(call.id.0) {
                    Ok(())
                } else {
                    Err(Violation::of(
                        "I5",
                        "a model call runs, but no session waits for it",
                    ))
                }
            }
            Work::Job(_) if durable.closed.is_some() => {
                Err(Violation::of("I5", "a background job runs in a closed session"))
            }
            Work::Job(_) | Work::Hooks(..) | Work::CallHooks(_) | Work::Rework { .. } => Ok(()),
        }
    }
}
