//! The budget of a tree of agents is the root's. Before each step of a sub-agent everything that the tree has spent is
//! looked up, as far as it is durable, and a session asks only when its own steps are. So whoever is told that there is
//! room is told of every step that ended before, and the budget is exceeded by at most one step of each running agent.
//! The same look finds out whether anybody still waits for the sub-agent: nobody works for nobody.

use crate::draft::Draft;
use crate::durable::Durable;
use crate::effect::Effect;
use crate::{ending, following, limits, words};
use agentd_protocol::{Budget, EndReason, PermissionMode, Spent};

/// What the rest of a tree spent, and what all of it may spend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeSpent {
    /// The parent still waits for this session.
    pub wanted: bool,
    /// All sessions of the tree but this one and those below it that have ended.
    pub others: Spent,
    /// The root's budget as it is now.
    pub budget: Budget,
    /// What holds for the parent, and so for whom works for it; none for a root.
    pub above: Option<Above>,
}

/// A parent as its row says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Above {
    /// Its mode.
    pub mode: PermissionMode,
    /// It is paused.
    pub paused: bool,
}

/// What is known of the tree.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tree {
    /// The number of the last asking.
    number: u64,
    /// It has not been answered.
    asking: bool,
    /// A step waits for the answer.
    for_step: bool,
    /// The answer is for the step that begins now.
    fresh: bool,
    pub(crate) last: Option<TreeSpent>,
}

impl Tree {
    /// The answer is waited for.
    pub(crate) const fn asking(&self) -> bool {
        self.asking
    }

    /// The step that it was asked for has begun, or does not.
    pub(crate) const fn used(&mut self) {
        (self.asking, self.for_step, self.fresh) = (false, false, false);
    }
}

/// Before a step: is it known what the tree spent? False: it is being asked.
pub(crate) fn is_known(draft: &mut Draft<'_, '_>) -> bool {
    if !is_shared(draft.durable()) || draft.seen().tree.fresh {
        return true;
    }
    draft.volatile().tree.for_step = true;
    if !draft.seen().tree.asking {
        ask(draft);
    }
    false
}

/// Has it looked up; an answer to an earlier asking does not count any more.
pub(crate) fn ask(draft: &mut Draft<'_, '_>) {
    let tree = &mut draft.volatile().tree;
    tree.asking = true;
    tree.number = tree.number.wrapping_add(1);
    let number = tree.number;
    let (root, parent) = (
        draft.durable().root(),
        draft.durable().lineage().map(|(parent, _)| parent),
    );
    draft.effect(Effect::AskTree { number, root, parent });
}

/// The answer. Without one nothing may be spent (I7).
pub(crate) fn answered(draft: &mut Draft<'_, '_>, number: u64, spent: Option<TreeSpent>) {
    let tree = &mut draft.volatile().tree;
    if !tree.asking || tree.number != number {
        return;
    }
    tree.asking = false;
    let for_step = std::mem::take(&mut tree.for_step);
    if let Some(spent) = spent {
        if !spent.wanted {
            if for_step {
                let error = limits::error("cancelled", words::NOT_WANTED);
                ending::finish(draft, EndReason::Cancelled, Some(error));
            }
            return;
        }
        following::follow(draft, spent.above);
        // Who was paused by this asks again when the pause is over.
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

/// Others spend from the same budget.
fn is_shared(durable: &Durable) -> bool {
    let limited = durable.budget() != Budget::default();
    durable.lineage().is_some() || (limited && !durable.children.is_empty())
}
