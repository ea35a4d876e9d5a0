//! Calls that the loop answers itself, such as the to-do list and questions to the person. No tool runs for them.

use crate::calls::approvals;
use crate::calls::open_call::Stage;
use crate::draft::Draft;
use crate::durable::Durable;
use crate::durable::apply::Refusal;
use crate::planning::PlanRequest;
use crate::tree::delegate::Delegation;
use crate::{
    planning::{self, plan_mode},
    tree::delegate,
    words,
};
use agentd_protocol::{
    ApprovalDecided, Choice, Decision, OpenApproval, SandboxLevel, TodoItem, TodoStatus, TodoUpdated,
    ToolCallId, ToolFinished, ToolOutcome, ToolStatus,
};

/// The content of a call that the loop answers itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopRequest {
    /// Replaces the to-do list.
    Todo(Vec<TodoItem>),
    /// Creates or advances the plan.
    Plan(PlanRequest),
    /// Shows the person a plan; the person may end plan mode.
    LeavePlanMode(String),
    /// Starts a sub-agent; its last text is the call's result.
    Delegate(Delegation),
    /// Asks the person a question; the answer is the call's result.
    Ask {
        /// The question.
        question: String,
        /// Suggested answers; the person may also answer freely.
        choices: Vec<Choice>,
    },
}

/// Carries out an allowed call.
pub(crate) fn start(
    draft: &mut Draft<'_, '_>,
    tool_call: ToolCallId,
    title: String,
    sandbox: SandboxLevel,
    request: LoopRequest,
) {
    match request {
        LoopRequest::Todo(items) => {
            let outcome = ToolOutcome::text(ToolStatus::Ok, counted(&items));
            draft.emit(TodoUpdated { tool_call, items });
            draft.emit(ToolFinished { tool_call, outcome });
        }
        LoopRequest::Plan(request) => planning::start(draft, tool_call, request),
        LoopRequest::Delegate(order) => {
            delegate::start(draft, tool_call, title, sandbox, order.purpose);
        }
        LoopRequest::LeavePlanMode(plan) => plan_mode::ask(draft, tool_call, title, plan),
        LoopRequest::Ask { question, choices } => {
            approvals::ask_person(draft, tool_call, (title, question), choices);
        }
    }
}

fn counted(items: &[TodoItem]) -> String {
    let count = |status| items.iter().filter(|item| item.status == status).count();
    format!(
        "The list is kept: {} done, {} in progress, {} to do.",
        count(TodoStatus::Completed),
        count(TodoStatus::InProgress),
        count(TodoStatus::Pending)
    )
}

impl Durable {
    /// Folds the decision about a question, by a person or by expiry.
    pub(crate) fn question_decided(
        &mut self,
        tool_call: ToolCallId,
        open: &OpenApproval,
        decided: &ApprovalDecided,
    ) -> Result<(), Refusal> {
        let call = self.running_turn()?.call_mut(tool_call)?;
        if call.stage != Stage::Asking(open.approval) {
            return Err("the call does not wait for this answer");
        }
        call.stage = match decided.decision {
            Decision::Answer => Stage::Answered(answer(open, decided)),
            Decision::Withdrawn => Stage::Allowed,
            // The question is refused, not a permission, so this never stops the turn.
            Decision::Deny | Decision::Expired => Stage::Denied(words::unanswered(decided)),
            Decision::Allow => return Err("a question is answered, not allowed"),
        };
        Ok(())
    }
}

/// The answer for the model: the text of the chosen option, else the person's own words.
fn answer(open: &OpenApproval, decided: &ApprovalDecided) -> String {
    let said = decided.answer.as_deref().unwrap_or_default();
    let chosen = open.choices.iter().find(|choice| choice.id == said);
    chosen.map_or(said, |choice| choice.label.as_str()).to_owned()
}
