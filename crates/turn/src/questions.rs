//! The one table of the questions that the agent has asked and whose answers it waits for. It is volatile: after a
//! restart, whatever is still open is asked again.
//!
//! A new question takes a variant of [`Question`], [`Answer`] and [`Subject`] with its row in [`Subject::row`], an arm of
//! [`answered`], and an arm of [`without_answer`], which says what holds if nobody answers.

use crate::calls::{approvals, judging};
use crate::config::Config;
use crate::context::overflow;
use crate::draft::Draft;
use crate::durable::OpenHistory;
use crate::effect::{Effect, Shrink, SideCall, Summariser};
use crate::history::Reworked;
use crate::input::{Judged, Shrunk, SideEnded};
use crate::lifecycle::event::LifecycleEvent;
use crate::tree::completion_report;
use crate::tree::delegate::Ended;
use crate::tree::shared_budget::{self, TreeSpent};
use crate::{checkpoints, history, lifecycle, setup, side};
use agentd_protocol::{
    ApprovalId, CompactionCause, Grant, HookFinished, RequestPart, Seq, SessionId, SidePurpose, Timestamp,
    ToolCallId, WorkspaceCheckpointed, WorkspacePrepared,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Identifies a question within one incarnation of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub(crate) u64);

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the agent asks of its surroundings.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// Prepare a call and have the gate judge it.
    Verdict {
        /// The call.
        tool_call: ToolCallId,
        /// The tool's name as the model gave it.
        name: String,
        /// The arguments.
        input: Value,
        /// What people granted for this session.
        grants: Vec<Grant>,
    },
    /// Run the lifecycle hooks.
    Hooks(LifecycleEvent),
    /// Make the conversation shorter.
    Shorten {
        /// The method.
        how: Shrink,
        /// The target size in tokens.
        target_tokens: u64,
        /// The cause.
        cause: CompactionCause,
        /// The model that writes the summary, if any.
        summariser: Option<Summariser>,
    },
    /// Ask a model outside of the turn.
    Side(SideCall),
    /// Have the provider count the tokens of the next request.
    TokenCount {
        /// The configured name of the next call's model.
        model: String,
        /// The credential to use.
        credential: Option<String>,
        /// Request parts to leave out because the server has rejected them.
        without: Vec<RequestPart>,
        /// The time limit.
        within_ms: u64,
    },
    /// Look up what the tree of agents has spent.
    TreeSpending {
        /// The root of the tree.
        root: SessionId,
        /// The session that waits for this one.
        parent: Option<SessionId>,
    },
    /// Count the attached viewers that may decide.
    Deciders {
        /// The approval.
        approval: ApprovalId,
    },
    /// Report this sub-agent's end to its parent.
    Report {
        /// The parent.
        parent: SessionId,
        /// The report.
        ended: Box<Ended>,
    },
    /// Restore files and the conversation.
    Rework(Box<OpenHistory>),
    /// Record the files of the working directory.
    Checkpoint,
    /// Run the setup commands of the workspace.
    Setup,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The gate judged the call, or the call could not be prepared.
    Verdict(Judged),
    /// The hooks' results.
    Hooks(Vec<HookFinished>),
    /// The outcome of making the conversation shorter.
    Shortened(Shrunk),
    /// What the model said; one that arrives after the question was withdrawn is still charged.
    Side(SideEnded),
    /// The provider's count.
    TokenCount {
        /// The provider's model id.
        model: String,
        /// Tokens of the next request.
        tokens: u64,
    },
    /// The spending of the tree.
    TreeSpending(TreeSpent),
    /// The number of attached viewers that may decide.
    Deciders(u32),
    /// The parent has the report or does not want it; false: it could not be reached.
    Report(bool),
    /// How the work on files and history ended.
    Rework(Reworked),
    /// The recorded files, or why they could not be recorded.
    Checkpoint(Result<WorkspaceCheckpointed, String>),
    /// How the setup commands ended.
    Setup(WorkspacePrepared),
    /// There will be no answer, for this reason.
    Nobody(String),
}

/// What a pending question is about: the part of it that decisions need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Verdict(ToolCallId),
    Hooks(LifecycleEvent),
    Shorten,
    Side(SidePurpose),
    TokenCount,
    TreeSpending,
    Deciders(ApprovalId),
    Report,
    Rework(Seq),
    Checkpoint,
    Setup,
}

/// The rules for one kind of question.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// It is asked only after everything decided before it is durable (I4).
    after_commit: bool,
    /// It is withdrawn when the turn ends.
    of_turn: bool,
    /// It is withdrawn when the daemon drains.
    until_drain: bool,
    /// The agent's own deadline. Without one, whoever is asked has a deadline and always answers.
    within_ms: Option<fn(&Config) -> u64>,
}

impl Subject {
    /// The table.
    fn row(&self) -> Row {
        let row = |after_commit, of_turn, until_drain| Row {
            after_commit,
            of_turn,
            until_drain,
            within_ms: None,
        };
        match self {
            Self::Verdict(_) => Row {
                within_ms: Some(|config| config.judge_timeout_ms),
                ..row(false, true, false)
            },
            // Each lifecycle event has a cause of its own: see `lifecycle::reconcile`.
            Self::Hooks(_) => row(true, false, false),
            Self::Shorten | Self::Deciders(_) => row(false, true, false),
            Self::Side(purpose) => row(false, matches!(purpose, SidePurpose::Intent), true),
            Self::TokenCount => row(false, true, true),
            Self::TreeSpending => row(true, true, false),
            // Recorded files belong to what comes after them, in this turn or the next one.
            Self::Checkpoint => row(false, false, true),
            Self::Setup => row(true, true, true),
            Self::Report | Self::Rework(_) => row(true, false, false),
        }
    }
}

impl Question {
    fn subject(&self) -> Subject {
        match self {
            Self::Verdict { tool_call, .. } => Subject::Verdict(*tool_call),
            Self::Hooks(event) => Subject::Hooks(event.clone()),
            Self::Shorten { .. } => Subject::Shorten,
            Self::Side(side) => Subject::Side(side.purpose),
            Self::TokenCount { .. } => Subject::TokenCount,
            Self::TreeSpending { .. } => Subject::TreeSpending,
            Self::Deciders { approval } => Subject::Deciders(*approval),
            Self::Report { .. } => Subject::Report,
            Self::Rework(work) => Subject::Rework(work.seq),
            Self::Checkpoint => Subject::Checkpoint,
            Self::Setup => Subject::Setup,
        }
    }

    /// Whether it may be asked only after everything decided before it is durable (I4).
    #[must_use]
    pub fn waits_for_commit(&self) -> bool {
        self.subject().row().after_commit
    }
}

#[derive(Debug, Clone)]
struct Pending {
    subject: Subject,
    deadline: Option<Timestamp>,
}

/// The table of pending questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Questions {
    pending: BTreeMap<QuestionId, Pending>,
    last: u64,
    /// The deadline that the timer was set for: the clock may have been set back since.
    alarm: Option<Timestamp>,
}

impl Questions {
    /// The subjects of all pending questions.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.pending.values().map(|pending| &pending.subject)
    }

    /// The lifecycle events that hooks are being asked about.
    pub(crate) fn events(&self) -> impl Iterator<Item = &LifecycleEvent> {
        self.subjects().filter_map(|subject| match subject {
            Subject::Hooks(event) => Some(event),
            _ => None,
        })
    }

    pub(crate) fn is_pending(&self, subject: &Subject) -> bool {
        self.subjects().any(|pending| pending == subject)
    }

    pub(crate) fn awaits(&self, id: QuestionId) -> bool {
        self.pending.contains_key(&id)
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.pending.values().filter_map(|pending| pending.deadline).min()
    }
}

/// Asks a question.
pub(crate) fn ask(draft: &mut Draft<'_, '_>, question: Question) {
    let subject = question.subject();
    let within_ms = subject.row().within_ms.map(|limit| limit(draft.config()));
    let deadline = within_ms.map(|ms| draft.now().plus_ms(ms));
    let questions = &mut draft.volatile().questions;
    questions.last = questions.last.wrapping_add(1);
    let id = QuestionId(questions.last);
    questions.pending.insert(id, Pending { subject, deadline });
    draft.effect(Effect::Ask { id, question });
}

/// Gives a pending question its full time again.
pub(crate) fn extend(draft: &mut Draft<'_, '_>, subject: &Subject) {
    let within_ms = subject.row().within_ms.map(|limit| limit(draft.config()));
    let deadline = within_ms.map(|ms| draft.now().plus_ms(ms));
    for pending in draft.volatile().questions.pending.values_mut() {
        if pending.subject == *subject {
            pending.deadline = deadline;
        }
    }
}

/// Withdraws the questions whose answers are no longer needed. True: there were some.
pub(crate) fn withdraw(draft: &mut Draft<'_, '_>, which: impl Fn(&Subject) -> bool) -> bool {
    let pending = draft.seen().questions.pending.iter();
    let chosen = pending.filter(|(_, pending)| which(&pending.subject));
    let chosen: Vec<QuestionId> = chosen.map(|(id, _)| *id).collect();
    for id in &chosen {
        draft.volatile().questions.pending.remove(id);
        draft.effect(Effect::Withdraw { id: *id });
    }
    !chosen.is_empty()
}

/// The turn is over: withdraws the questions that belong to it.
pub(crate) fn turn_ended(draft: &mut Draft<'_, '_>) {
    withdraw(draft, |subject| subject.row().of_turn);
}

/// The daemon drains: withdraws the questions that the next incarnation asks again, or that nobody needs then.
pub(crate) fn drain(draft: &mut Draft<'_, '_>) {
    withdraw(draft, |subject| subject.row().until_drain);
}

/// The earliest deadline has passed.
pub(crate) fn overdue(draft: &mut Draft<'_, '_>) {
    let questions = &mut draft.volatile().questions;
    let alarm = questions.alarm.take().unwrap_or_default();
    let due = draft.now().max(alarm);
    let pending = draft.seen().questions.pending.iter();
    let late = pending.filter(|(_, pending)| pending.deadline.is_some_and(|deadline| deadline <= due));
    for id in late.map(|(id, _)| *id).collect::<Vec<_>>() {
        answered(
            draft,
            id,
            Answer::Nobody("there was no answer in time".to_owned()),
        );
    }
}

/// Notes the deadline that the timer is set for.
pub(crate) fn watch(draft: &mut Draft<'_, '_>, deadline: Timestamp) {
    draft.volatile().questions.alarm = Some(deadline);
}

/// Handles an answer. One to a question that is not pending any more is ignored, except for its cost.
pub(crate) fn answered(draft: &mut Draft<'_, '_>, id: QuestionId, answer: Answer) {
    let Some(Pending { subject, .. }) = draft.volatile().questions.pending.remove(&id) else {
        if let Answer::Side(ended) = answer {
            drop(side::charge(draft, &ended));
        }
        return;
    };
    match (subject, answer) {
        (Subject::Verdict(call), Answer::Verdict(judged)) => judging::judged(draft, call, judged),
        (Subject::Hooks(event), Answer::Hooks(records)) => lifecycle::heard(draft, &event, records),
        (Subject::Shorten, Answer::Shortened(shrunk)) => overflow::shrunk(draft, shrunk),
        (Subject::Side(_), Answer::Side(ended)) => side::ended(draft, &ended),
        // The estimate is now the provider's count: the next decision sees it.
        (Subject::TokenCount, Answer::TokenCount { .. }) => {}
        (Subject::TreeSpending, Answer::TreeSpending(spent)) => shared_budget::answered(draft, Some(spent)),
        (Subject::Deciders(approval), Answer::Deciders(count)) => approvals::counted(draft, approval, count),
        (Subject::Report, Answer::Report(settled)) => completion_report::delivered(draft, settled),
        (Subject::Rework(_), Answer::Rework(reworked)) => history::ended(draft, reworked),
        (Subject::Checkpoint, Answer::Checkpoint(taken)) => checkpoints::answered(draft, taken),
        (Subject::Setup, Answer::Setup(prepared)) => setup::answered(draft, prepared),
        (subject, Answer::Nobody(why)) => without_answer(draft, subject, &why),
        (subject, _) => without_answer(draft, subject, "the answer fits another question"),
    }
}

/// What holds if nobody answers. It is never more permissive than any answer (I7).
fn without_answer(draft: &mut Draft<'_, '_>, subject: Subject, why: &str) {
    match subject {
        Subject::Verdict(call) => judging::not_judged(draft, call),
        Subject::Hooks(event) => {
            let lost = HookFinished::lost(event.event(), why);
            lifecycle::heard(draft, &event, vec![lost]);
        }
        Subject::Shorten => overflow::shrunk(draft, Shrunk::Nothing),
        Subject::Side(purpose) => side::unanswered(draft, purpose),
        Subject::TokenCount => {}
        Subject::TreeSpending => shared_budget::answered(draft, None),
        Subject::Deciders(approval) => approvals::counted(draft, approval, 0),
        Subject::Report => completion_report::delivered(draft, false),
        Subject::Rework(_) => history::ended(draft, Reworked::not_done(why)),
        Subject::Checkpoint => checkpoints::answered(draft, Err(why.to_owned())),
        Subject::Setup => setup::answered(draft, WorkspacePrepared::not_run(why)),
    }
}
