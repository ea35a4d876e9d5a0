//! What a session loop understands. Only the loop supervisor keeps references to loops; kids get theirs in their arguments.

use crate::model_port::Place;
use crate::tool_port::CallDetail;
use agentd_actor_core::{Done, Down};
use agentd_hooks::Ran;
use agentd_policy::Judgement;
use agentd_protocol::{
    ApprovalId, CallId, Delta, Fault, HookEvent, HookFinished, Principal, Seq, ToolCallId, ToolOutcome,
};
use agentd_store::{Blob, IdempotencyKey, Outcome};
use agentd_tools::{FilesSeen, JobNews, Offered};
use agentd_transcript::Transcript;
use agentd_turn::{Command, ModelAnswer, ModelFailure, Reply, Reworked, TimerKey, TreeSpent};
use tokio::sync::OwnedSemaphorePermit;

/// What a kid works on; with the attempt it is the generation that every message of a kid carries.
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
        /// Which run of it (an idempotent call can run again after a restart).
        attempt: u32,
    },
    /// Hooks that are told of something else.
    Occasion {
        /// Which asking.
        number: u64,
        /// Of what.
        event: HookEvent,
    },
    /// The hooks of a tool call.
    Hooks {
        /// The call.
        tool_call: ToolCallId,
        /// Which asking.
        attempt: u32,
    },
    /// The next request is being counted.
    Count {
        /// Which count.
        call: CallId,
    },
    /// Files or the conversation are being put back.
    Rework {
        /// The seq of its intent.
        seq: Seq,
    },
}

/// A conversation as it was at an earlier point.
#[derive(Debug, Default)]
pub struct Earlier {
    /// What was said.
    pub transcript: Transcript,
    /// What the model knew of files.
    pub seen: FilesSeen,
}

/// The right to have one delta in the loop's mailbox; dropped when the delta is handled.
#[derive(Debug)]
pub struct Credit(pub Option<OwnedSemaphorePermit>);

/// News of a model call.
#[derive(Debug)]
pub enum CallEvent {
    /// It waits for a permit; said again when its place changed.
    Waiting(Option<Place>),
    /// It has its permit and talks to the provider.
    Granted {
        /// The window that the model was found to have.
        window: Option<u64>,
    },
    /// A merged fragment.
    Delta(Delta, Credit),
    /// The answer. The last message of the kid.
    Answered(Box<ModelAnswer>),
    /// The failure. The last message of the kid.
    Failed(ModelFailure),
}

/// News of a tool call.
#[derive(Debug)]
pub enum RunEvent {
    /// It waits for a permit.
    Waiting,
    /// It runs.
    Granted,
    /// Output so far not shown.
    Output(Delta, Credit),
    /// The result. The last message of the kid. The blobs go into the same append.
    Ended(Box<ToolOutcome>, Vec<Blob>),
}

/// Messages of a session loop.
#[derive(Debug)]
pub enum SessionMsg {
    /// A principal's command; answered when it is durable.
    Command {
        /// What.
        command: Box<Command>,
        /// Who.
        by: Principal,
        /// The idempotency key to store with it.
        key: Option<IdempotencyKey>,
        /// The answer.
        done: Done<Result<Reply, Fault>>,
    },
    /// News of a model call.
    Model {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: u32,
        /// What.
        event: CallEvent,
    },
    /// News of a tool call.
    Tool {
        /// The call.
        tool_call: ToolCallId,
        /// Which run.
        attempt: u32,
        /// What.
        event: RunEvent,
    },
    /// News of a background job.
    Job(JobNews),
    /// The parent of this sub-agent knows that it ended, or could not be told.
    Told {
        /// It knows, or does not want to.
        heard: bool,
    },
    /// What the tree of agents spent.
    TreeSpent {
        /// Which asking.
        number: u64,
        /// Nothing: it could not be read.
        spent: Option<TreeSpent>,
    },
    /// Files are put back, or cannot be. The last message of the kid.
    Reworked {
        /// The seq of its intent.
        seq: Seq,
        /// How it ended.
        reworked: Box<Reworked>,
        /// What the files were before; they go into the same append.
        blobs: Vec<Blob>,
        /// The conversation that it goes back to.
        earlier: Option<Box<Earlier>>,
    },
    /// A kid went down; re-queued by the loop to itself, so it comes after everything the kid sent.
    Down {
        /// What it worked on.
        work: Work,
        /// Why.
        why: Down,
    },
    /// The hooks of a call ended.
    Hooked {
        /// The call.
        tool_call: ToolCallId,
        /// Which asking.
        attempt: u32,
        /// What they want.
        ran: Box<Ran>,
    },
    /// The hooks that were told of something else than a call ended.
    Heard {
        /// Which asking.
        number: u64,
        /// What they said.
        records: Vec<HookFinished>,
    },
    /// The gate answered; `None`: there will be no answer, which is a denial.
    Judged {
        /// The call.
        tool_call: ToolCallId,
        /// The judgement.
        judgement: Option<Judgement>,
    },
    /// The detail of a call that must be asked about.
    Detailed {
        /// The call.
        tool_call: ToolCallId,
        /// The detail; `None`: it could not be made.
        detail: Option<CallDetail>,
    },
    /// What the tool servers offer now; `None`: they were not asked to the end.
    Offered {
        /// Server by server.
        found: Option<Vec<Offered>>,
    },
    /// How many viewers may decide; `None` counts as nobody.
    Deciders {
        /// For which approval.
        approval: ApprovalId,
        /// The number.
        count: Option<u32>,
    },
    /// The next request was counted; `None`: it was not.
    Counted {
        /// Which count.
        call: CallId,
        /// Tokens.
        tokens: Option<u64>,
    },
    /// A question beside the turn takes too long (private timer).
    SideOverdue {
        /// Which.
        call: CallId,
    },
    /// A summary of the conversation takes too long.
    CompactionOverdue {
        /// For which model call.
        call: CallId,
        /// The attempt that failed for it.
        attempt: u32,
    },
    /// The store answered; `None`: it went down, the outcome is unknown.
    Stored {
        /// What came of it.
        outcome: Option<Outcome>,
    },
    /// A timer fired.
    Timer {
        /// Which.
        key: TimerKey,
        /// Its generation.
        generation: u64,
    },
    /// The append takes too long (private timer).
    AppendOverdue {
        /// The number of the append.
        number: u64,
    },
    /// Try the refused append again: the store was full (private timer).
    RetryAppend {
        /// The number of the append.
        number: u64,
    },
    /// Go on after a fold (private, the first message).
    Start,
    /// Report to the supervisor whether this loop may be passivated.
    Idle,
    /// The daemon drains.
    Drain,
}
