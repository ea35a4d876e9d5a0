//! A viewer's list of a session's open approvals.

use agentd_protocol::{
    ApprovalAsked, ApprovalDecided, ApprovalId, Decision, Event, EventBody, OpenApproval, Principal,
    SessionId,
};
use std::collections::HashSet;

/// Open approvals in the order in which they were asked, and the ids of those answered here.
#[derive(Debug, Default)]
pub struct Asks {
    open: Vec<OpenApproval>,
    mine: HashSet<ApprovalId>,
}

/// An approval answered by another client: the question and the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Elsewhere {
    /// The question.
    pub asked: OpenApproval,
    /// The answer.
    pub decided: ApprovalDecided,
    /// Who gave it.
    pub by: Principal,
}

impl Asks {
    /// The one to answer next.
    pub fn front(&self) -> Option<&OpenApproval> {
        self.waiting().next()
    }

    /// The given approval, while it waits for an answer.
    pub fn waits(&self, approval: ApprovalId) -> Option<&OpenApproval> {
        self.waiting().find(|open| open.approval == approval)
    }

    /// How many more approvals wait after that one.
    pub fn behind(&self) -> usize {
        self.waiting().count().saturating_sub(1)
    }

    /// Those that wait for an answer.
    pub fn waiting(&self) -> impl Iterator<Item = &OpenApproval> {
        self.open
            .iter()
            .filter(|open| !self.mine.contains(&open.approval))
    }

    /// Replaces the list: these are all open approvals.
    pub fn synced(&mut self, open: &[OpenApproval]) {
        self.open = open.to_vec();
    }

    /// Updates a sub-agent's open approvals. Those that remain keep their place, so the shown one remains the next.
    /// Returns those that ended without an answer from here.
    pub fn of_subagent(&mut self, child: SessionId, now: &[OpenApproval]) -> Vec<OpenApproval> {
        let still = |one: &OpenApproval| now.iter().any(|open| open.approval == one.approval);
        let over = self
            .open
            .extract_if(.., |one| one.session == child && !still(one));
        let over: Vec<OpenApproval> = over.collect();
        for open in now {
            match self.open.iter_mut().find(|one| one.approval == open.approval) {
                Some(one) => one.clone_from(open),
                None => self.open.push(open.clone()),
            }
        }
        over.into_iter()
            .filter(|one| !self.mine.remove(&one.approval))
            .collect()
    }

    /// Records that it was answered here.
    pub fn answered(&mut self, approval: ApprovalId) {
        self.mine.insert(approval);
    }

    /// The answer from here was not delivered: it waits again.
    pub fn unanswered(&mut self, approval: ApprovalId) {
        self.mine.remove(&approval);
    }

    /// Removes an approval that is over, whatever its outcome.
    pub fn forget(&mut self, approval: ApprovalId) {
        self.open.retain(|open| open.approval != approval);
    }

    /// Takes in an event; returns an approval that another client answered.
    pub fn observe(&mut self, event: &Event, tool: Option<&str>) -> Option<Elsewhere> {
        if let EventBody::ApprovalAsked(ask) = &event.body {
            self.forget(ask.approval);
            self.open.push(opened(event, ask, tool));
        }
        if let EventBody::ApprovalEscalated(escalated) = &event.body {
            let same = |open: &&mut OpenApproval| open.approval == escalated.approval;
            if let Some(open) = self.open.iter_mut().find(same) {
                (open.level, open.expires_at) = (escalated.level, escalated.expires_at);
            }
        }
        let EventBody::ApprovalDecided(decided) = &event.body else {
            return None;
        };
        let at = self
            .open
            .iter()
            .position(|open| open.approval == decided.approval)?;
        let asked = self.open.remove(at);
        let mine = self.mine.remove(&decided.approval);
        // A timeout and the end of a turn are no answers; they withdraw the question.
        let answered = matches!(
            decided.decision,
            Decision::Allow | Decision::Deny | Decision::Answer
        );
        (!mine && answered).then(|| Elsewhere {
            asked,
            decided: decided.clone(),
            by: event.by.clone(),
        })
    }
}

fn opened(event: &Event, ask: &ApprovalAsked, tool: Option<&str>) -> OpenApproval {
    OpenApproval {
        tool: tool.map(str::to_owned),
        ..OpenApproval::asked(ask, event.session, event.at)
    }
}
