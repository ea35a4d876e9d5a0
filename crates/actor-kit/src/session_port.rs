//! The messages of a session loop. Only the loop supervisor keeps references to loops; workers get theirs as arguments.

use crate::model_port::QueuePosition;
use crate::supervisor_port::Routed;
use crate::tool_port::{CallDetail, Contents};
use agentd_actor_core::Down;
use agentd_hooks::Ran;
use agentd_policy::Judgement;
use agentd_protocol::{CallId, Delta, ToolCallId, ToolOutcome};
use agentd_store::{Blob, Outcome};
use agentd_tools::{FilesSeen, JobNews, Offered};
use agentd_transcript::Transcript;
use agentd_turn::{Answer, ModelAnswer, ModelFailure, QuestionId, Reworked, TimerKey};
use tokio::sync::OwnedSemaphorePermit;

/// The task of a worker; together with the attempt it is the generation that every message of a worker carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// One attempt of a model call.
    Model {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: u32,
    },
    /// One running tool call.
    Tool {
        /// The call.
        tool_call: ToolCallId,
        /// The number of the run (an idempotent call can run again after a restart).
        attempt: u32,
    },
    /// The hooks of a tool call.
    Hooks {
        /// The call.
        tool_call: ToolCallId,
        /// The number of the run.
        attempt: u32,
    },
    /// The worker that finds the answer to a question of the agent.
    Question {
        /// The question.
        id: QuestionId,
    },
}

/// A conversation at an earlier point.
#[derive(Debug, Default)]
pub struct Earlier {
    /// The transcript.
    pub transcript: Transcript,
    /// The model's knowledge of files.
    pub seen: FilesSeen,
}

/// The right to have one delta in the loop's mailbox; dropped once the delta is handled.
#[derive(Debug)]
pub struct Credit(pub Option<OwnedSemaphorePermit>);

/// Progress of a model call.
#[derive(Debug)]
pub enum CallEvent {
    /// It waits for a permit; sent again when its place changes.
    Waiting(Option<QueuePosition>),
    /// It has its permit and calls the provider.
    Granted {
        /// The actual window of the model, if known.
        window: Option<u64>,
    },
    /// A merged fragment.
    Delta(Delta, Credit),
    /// The answer: the last message of the worker.
    Answered(Box<ModelAnswer>),
    /// The failure: the last message of the worker.
    Failed(ModelFailure),
}

/// Progress of a tool call.
#[derive(Debug)]
pub enum RunEvent {
    /// It waits for a permit.
    Waiting,
    /// It runs.
    Granted,
    /// Output that was not shown yet.
    Output(Delta, Credit),
    /// The result: the last message of the worker. The blobs go into the same append.
    Ended(Box<ToolOutcome>, Vec<Blob>),
}

/// Messages of a session loop.
#[derive(Debug)]
pub enum SessionMsg {
    /// A principal's command; answered once it is durable.
    Command(Routed),
    /// Progress of a model call.
    Model {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: u32,
        /// The progress.
        event: CallEvent,
    },
    /// Progress of a tool call.
    Tool {
        /// The call.
        tool_call: ToolCallId,
        /// The number of the run.
        attempt: u32,
        /// The progress.
        event: RunEvent,
    },
    /// Progress of a background job.
    Job(JobNews),
    /// The answer to a question of the agent; a worker's last message.
    Answered {
        /// The question.
        id: QuestionId,
        /// The answer.
        answer: Box<Answer>,
    },
    /// Files were put back, or could not be. The last message of the worker.
    Reworked {
        /// The question that it answers.
        id: QuestionId,
        /// The outcome.
        reworked: Box<Reworked>,
        /// The former contents of the files; they go into the same append.
        blobs: Vec<Blob>,
        /// The conversation to go back to.
        earlier: Option<Box<Earlier>>,
    },
    /// A worker went down. The loop re-queues this to itself, so it arrives after everything that the worker sent.
    Down {
        /// The worker's task.
        work: Work,
        /// The cause.
        why: Down,
    },
    /// The hooks of a call ended.
    Hooked {
        /// The call.
        tool_call: ToolCallId,
        /// The number of the run.
        attempt: u32,
        /// The result of the run.
        ran: Box<Ran>,
    },
    /// The state of the files that a call runs; `None`: it could not be determined.
    Compared {
        /// The call.
        tool_call: ToolCallId,
        /// The files.
        contents: Option<Contents>,
    },
    /// The gate answered; `None`: no answer will come, which is a denial.
    Judged {
        /// The call.
        tool_call: ToolCallId,
        /// The judgement.
        judgement: Option<Judgement>,
    },
    /// The detail of a call that needs a person's approval.
    Detailed {
        /// The call.
        tool_call: ToolCallId,
        /// The detail; `None`: it could not be produced.
        detail: Option<CallDetail>,
    },
    /// The tools that the tool servers offer now; `None`: the query did not finish.
    Offered {
        /// One entry per server.
        found: Option<Vec<Offered>>,
    },
    /// A side call takes too long (private timer).
    SideOverdue {
        /// The side call.
        call: CallId,
    },
    /// A summary of the conversation takes too long.
    CompactionOverdue {
        /// The question that it answers.
        id: QuestionId,
    },
    /// The store answered; `None`: it went down and the outcome is unknown.
    Stored {
        /// The outcome.
        outcome: Option<Outcome>,
    },
    /// A timer fired.
    Timer {
        /// The timer.
        key: TimerKey,
        /// Its generation.
        generation: u64,
    },
    /// The append takes too long (private timer).
    AppendOverdue {
        /// The number of the append.
        number: u64,
    },
    /// Retry the refused append: the store was full (private timer).
    RetryAppend {
        /// The number of the append.
        number: u64,
    },
    /// Continue after a fold (private, the first message).
    Start,
    /// Report to the supervisor whether this loop may be passivated.
    Idle,
    /// The daemon drains.
    Drain,
}
