//! The total spending of a tree of agents, and the parent's state: read from the list rows, from the root down.

use crate::family::SessionMessenger;
use crate::retry_policy::{pauses, spent_of};
use agentd_protocol::{Budget, Fault, SessionId, Spent, Summary};
use agentd_turn::{Above, TreeSpent};

/// The most sessions of a tree that its budget check reads. Sessions that ended are in the sums of their parents.
const MOST_SESSIONS: usize = 10_000;

impl SessionMessenger {
    /// The facts that a sub-agent needs before a step. `None`: they cannot be read.
    pub(crate) async fn tree(&self, root: SessionId, parent: Option<SessionId>) -> Option<TreeSpent> {
        for pause in pauses().take(8) {
            match self.tree_once(root, parent).await {
                Ok(spent) => return Some(spent),
                Err(fault) => tracing::debug!(%root, %fault, "cannot read now what the tree has spent"),
            }
            tokio::time::sleep(pause).await;
        }
        None
    }

    async fn tree_once(&self, root: SessionId, parent: Option<SessionId>) -> Result<TreeSpent, Fault> {
        let above = match parent {
            Some(parent) => self.row(parent).await?.map(|row| row.summary),
            None => None,
        };
        let wanted = |row: &Summary| row.children.contains(&self.session);
        let mut spent = TreeSpent {
            // The parent's row has listed it since before it was created.
            wanted: parent.is_none() || above.as_ref().is_some_and(wanted),
            others: Spent::default(),
            budget: Budget::default(),
            above: above.map(|row| Above {
                mode: row.mode,
                paused: row.paused,
            }),
        };
        let Some(top) = self.row(root).await?.map(|row| row.summary) else {
            spent.wanted = false;
            return Ok(spent);
        };
        spent.budget = top.budget;
        if !spent.wanted || top.budget == Budget::default() {
            return Ok(spent);
        }
        let (mut open, mut seen) = (vec![top], 0);
        while let Some(summary) = open.pop() {
            seen += 1;
            if seen > MOST_SESSIONS {
                return Err(Fault::limit("tree_too_large", "the tree has too many sessions"));
            }
            if summary.session != self.session {
                spent.others = spent.others.and(spent_of(&summary));
            }
            for child in summary.children {
                // A child that does not exist yet has spent nothing.
                open.extend(self.row(child).await?.map(|row| row.summary));
            }
        }
        Ok(spent)
    }
}
