//! The events of the schedule, and the messages to a loop.

use crate::membership::Question;
use crate::node::NodeEvent;
use agentd_actor_kit::{Earlier, Published, Routed};
use agentd_policy::Judgement;
use agentd_protocol::{CallId, Fault, InputId, SessionId, ToolCallId, ToolOutcome};
use agentd_store::{Append, Outcome};
use agentd_turn::{
    Answer, Command, JobEnd, ModelAnswer, ModelFailure, QuestionId, Reply, Reworked, TimerKey,
};

/// One scheduled event.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A message reaches a loop.
    Loop(u64, Message),
    /// A worker reaches its next point.
    Worker(u64),
    /// An append reaches the disk.
    Disk {
        era: u64,
        from: u64,
        append: Box<Append>,
        /// When the store's client gives up.
        until: u64,
    },
    /// A question about the membership reaches the store.
    Asked { era: u64, question: Question },
    /// A stopped node goes on.
    Thaw { era: u64 },
    /// A commit reaches the feed.
    Feed { era: u64, published: Published },
    /// A provider's own timer fires.
    Alarm {
        era: u64,
        provider: &'static str,
        number: u64,
    },
    /// Something reaches the supervisor, or its tasks.
    Node { era: u64, event: NodeEvent },
    /// A command reaches the node.
    Send(Box<Order>),
    /// A message between sessions makes an attempt.
    TreeMessage(u64, u32),
    /// It is answered; `None`: there will be no answer.
    Word {
        number: u64,
        tried: u32,
        answer: Option<Result<Reply, Fault>>,
    },
    /// A person does something.
    Person,
    /// A viewer reads what has arrived.
    Viewer(u64),
    /// The node crashes.
    Kill { era: u64 },
    /// The node starts.
    Start,
    /// A replaced owner exits for good.
    Replaced(u64),
    /// Fault injection has stopped: checks whether everything is at rest.
    Calm,
}

/// A command in transit.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) ticket: u64,
    pub(crate) session: SessionId,
    pub(crate) command: Command,
    pub(crate) key: Option<String>,
    /// The message between sessions, and its attempt, that sent it; `None`: a person did.
    pub(crate) message: Option<(u64, u32)>,
    /// The node that sent it.
    pub(crate) home: u64,
}

/// A message to a loop.
#[derive(Debug)]
pub(crate) enum Message {
    Start,
    Command(Box<Routed>),
    Model {
        call: CallId,
        attempt: u32,
        news: News,
    },
    Tool {
        tool_call: ToolCallId,
        worker: u64,
        outcome: Box<ToolOutcome>,
    },
    JobStarted {
        job: u32,
    },
    JobEnded {
        job: u32,
        end: JobEnd,
    },
    Judged {
        tool_call: ToolCallId,
        judgement: Option<Box<Judgement>>,
    },
    Detailed {
        tool_call: ToolCallId,
        known: bool,
    },
    Stored(Option<Outcome>),
    Retry(u64),
    Overdue(u64),
    Timer {
        key: TimerKey,
        generation: u64,
    },
    /// The hooks of a call have finished; identified by the number of their worker.
    Hooked {
        tool_call: ToolCallId,
        worker: u64,
    },
    Answered {
        id: QuestionId,
        answer: Box<Answer>,
    },
    SideOverdue {
        call: CallId,
    },
    Reworked {
        id: QuestionId,
        reworked: Box<Reworked>,
        earlier: Option<Box<Earlier>>,
    },
    SummaryOverdue {
        id: QuestionId,
    },
    /// Report whether the loop may go cold; its own alarm has a number.
    Idle(Option<u64>),
    Drain,
}

/// An event of a model call.
#[derive(Debug)]
pub(crate) enum News {
    Waiting,
    Granted(Option<u64>),
    Text(String),
    Answered(Box<ModelAnswer>),
    Failed(Box<ModelFailure>),
}

impl Message {
    /// One line of the trace.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Start => "start".into(),
            Self::Command(routed) => format!("command {}", name(&routed.command)),
            Self::Model { attempt, news, .. } => format!("model attempt {attempt}: {}", news.line()),
            Self::Tool {
                tool_call, outcome, ..
            } => format!("tool {} {:?}", tool_call.short(), outcome.status),
            Self::JobStarted { job } => format!("job {job} started"),
            Self::JobEnded { job, .. } => format!("job {job} ended"),
            Self::Judged { tool_call, judgement } => {
                let kind = judgement.as_ref().map(|judgement| judgement.verdict.kind);
                format!("judged {} {kind:?}", tool_call.short())
            }
            Self::Detailed { tool_call, known } => format!("detail {} {known}", tool_call.short()),
            Self::Stored(outcome) => format!("stored {outcome:?}"),
            Self::Retry(number) => format!("retry append {number}"),
            Self::Overdue(number) => format!("append {number} overdue"),
            Self::Timer { key, generation } => format!("timer {key:?} {generation}"),
            Self::Reworked { id, .. } => format!("reworked {id}"),
            Self::Hooked { tool_call, .. } => format!("hooks of {}", tool_call.short()),
            Self::Answered { id, answer } => format!("answer {id}: {}", answer_line(answer)),
            Self::SideOverdue { .. } => "side call overdue".into(),
            Self::SummaryOverdue { .. } => "summary overdue".into(),
            Self::Idle(_) => "idle".into(),
            Self::Drain => "drain".into(),
        }
    }
}

/// Without texts of random length.
fn answer_line(answer: &Answer) -> String {
    match answer {
        Answer::Hooks(records) => format!("{} hooks", records.len()),
        Answer::TreeSpending(spent) => format!("the tree spent {spent:?}"),
        Answer::Deciders(count) => format!("{count} may decide"),
        Answer::Report(settled) => format!("report {settled}"),
        Answer::Checkpoint(taken) => format!("files recorded: {}", taken.is_ok()),
        Answer::Setup(prepared) => format!("set up: {}", prepared.error.is_none()),
        Answer::Nobody(why) => why.clone(),
        Answer::Verdict(_)
        | Answer::Shortened(_)
        | Answer::Side(_)
        | Answer::TokenCount { .. }
        | Answer::Rework(_) => "done".into(),
    }
}

impl News {
    fn line(&self) -> String {
        match self {
            Self::Waiting => "waits".into(),
            Self::Granted(_) => "granted".into(),
            Self::Text(text) => format!("text {}", text.len()),
            Self::Answered(answer) => format!(
                "answered {} blocks {:?}",
                answer.content.len(),
                answer.stop_reason
            ),
            Self::Failed(failure) => format!("failed {:?}", failure.class),
        }
    }
}

/// A command's name.
pub(crate) fn name(command: &Command) -> String {
    match command {
        Command::Create { .. } => "create".into(),
        Command::Send(new) => format!("send {:?}", new.delivery),
        Command::CancelInput(input) => format!("cancel input {}", short(*input)),
        Command::CancelTurn { jobs, .. } => format!("cancel turn, jobs {jobs}"),
        Command::Decide {
            approval,
            decision,
            scope,
            ..
        } => {
            format!("decide {} {decision:?} {scope:?}", approval.short())
        }
        Command::Pause { .. } => "pause".into(),
        Command::Resume { .. } => "resume".into(),
        Command::Close { force, .. } => format!("close, force {force}"),
        Command::Rework(rework) => format!("rework to {:?}", rework.work.rewind_to),
        Command::Compact => "compact".into(),
        Command::Summarize => "summarize".into(),
        Command::Transfer(_) => "deliver".into(),
        Command::ChildEnded { .. } => "child ended".into(),
        Command::Tell => "tell".into(),
        Command::Follow => "follow".into(),
        Command::Update { .. } => "update".into(),
    }
}

fn short(input: InputId) -> String {
    input.short()
}
