//! A tree of agents shares the root's budget. Before each step, a sub-agent looks up what the tree has durably spent,
//! and only once its own steps are durable. So whoever gets permission knows of every step that ended before, and the
//! budget is exceeded by at most one step of each running agent. The same look-up tells whether anyone still waits for
//! the sub-agent; if no session does, its turn ends.

use crate::draft::Draft;
use crate::durable::Durable;
use crate::questions::{self, Question, Subject};
use crate::{
    steps::{ending, limits},
    tree::following,
    words,
};
use agentd_protocol::{Budget, EndReason, PermissionMode, Spent};

/// The spending of the rest of a tree, and the budget of the whole tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeSpent {
    /// The parent still waits for this session.
    pub wanted: bool,
    /// The spending of all sessions of the tree except this one and its ended descendants.
    pub others: Spent,
    /// The root's current budget.
    pub budget: Budget,
    /// The parent's state, which its sub-agents follow; none for a root.
    pub above: Option<Above>,
}

/// A parent's state, read from its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Above {
    /// The parent's mode.
    pub mode: PermissionMode,
    /// Whether the parent is paused.
    pub paused: bool,
}

/// The known state of the tree.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tree {
    /// A step waits for the answer.
    for_step: bool,
    /// The answer is valid for the step that begins now.
    fresh: bool,
    pub(crate) last: Option<TreeSpent>,
}

impl Tree {
    /// The step has begun, or will not.
    pub(crate) const fn used(&mut self) {
        (self.for_step, self.fresh) = (false, false);
    }
}

/// Whether the tree's spending is known before a step. False: it is being looked up.
pub(crate) fn is_known(draft: &mut Draft<'_, '_>) -> bool {
    if !is_shared(draft.durable()) || draft.seen().tree.fresh {
        return true;
    }
    draft.volatile().tree.for_step = true;
    if !draft.seen().questions.is_pending(&Subject::TreeSpending) {
        ask(draft);
    }
    false
}

/// Requests the tree's spending; the answer to an earlier request no longer counts.
pub(crate) fn ask(draft: &mut Draft<'_, '_>) {
    forget(draft);
    let durable = draft.durable();
    let (root, parent) = (durable.root(), durable.lineage().map(|(parent, _)| parent));
    questions::ask(draft, Question::TreeSpending { root, parent });
}

/// An answer that is still on its way comes from before the step that begins now.
pub(crate) fn forget(draft: &mut Draft<'_, '_>) {
    questions::withdraw(draft, |subject| *subject == Subject::TreeSpending);
}

/// Handles the answer. If the spending could not be read, nothing may be spent (I7).
pub(crate) fn answered(draft: &mut Draft<'_, '_>, spent: Option<TreeSpent>) {
    let for_step = std::mem::take(&mut draft.volatile().tree.for_step);
    if let Some(spent) = spent {
        if !spent.wanted {
            if for_step {
                let error = limits::error("cancelled", words::NOT_WANTED);
                ending::finish(draft, EndReason::Cancelled, Some(error));
            } else {
                following::let_go(draft);
            }
            return;
        }
        following::follow(draft, spent.above);
        // If this pauses the session, it asks again when the pause is over.
        let held = draft.held();
        let tree = &mut draft.volatile().tree;
        tree.last = Some(spent);
        tree.fresh |= for_step && !held;
        return;
    }
    if !for_step {
        return;
    }
    let message = "what its tree of agents has spent could not be read, so it may spend nothing more";
    let error = limits::error("budget", message);
    ending::finish(draft, EndReason::Budget, Some(error));
}

/// Whether other sessions spend from the same budget.
fn is_shared(durable: &Durable) -> bool {
    let limited = durable.budget() != Budget::default();
    durable.lineage().is_some() || (limited && !durable.children.is_empty())
}
