//! Checks of agent trees, based on the logs: every child is in its parent's log (I4), no child works without a
//! recipient (I5), none is left behind (I6), and spending is counted once.

use crate::world::World;
use agentd_protocol::{Event, EventBody, SessionCreated, SessionId, SubagentFinished, Timestamp};
use agentd_turn::{Agent, Held, Violation};
use std::collections::BTreeMap;

/// How long a sub-agent may continue after it is no longer needed: a stalled disk and a restart can delay the message.
const GOES_ON_MS: u64 = 300_000;

impl World {
    /// I4: a sub-agent is created only after its parent's log records it.
    pub(crate) fn may_be_created(&self, child: SessionId, created: &SessionCreated) -> Held {
        let Some(parent) = created
            .parent
            .filter(|parent| !self.disk.deleted.contains(parent))
        else {
            return Ok(());
        };
        let told = self.log(parent)?.iter().any(
            |event| matches!(&event.body, EventBody::SubagentStarted(started) if started.child == child),
        );
        match told {
            true => Ok(()),
            false => Err(Violation::of(
                "I4",
                "a sub-agent is created before its parent's log records it",
            )),
        }
    }

    /// I5: a sub-agent whose call has its result stops soon.
    pub(crate) fn may_go_on(&self, agent: &Agent) -> Held {
        let Some((parent, lineage)) = agent.durable().lineage() else {
            return Ok(());
        };
        if self.disk.deleted.contains(&parent) {
            return Ok(());
        }
        let log = self.log(parent)?;
        let ended = log.iter().find_map(|event| match &event.body {
            EventBody::ToolFinished(done) if done.tool_call == lineage.tool_call => Some(event.at),
            _ => None,
        });
        // The creation itself may have been delayed, and the message that stops it follows.
        let created = self.log(agent.durable().session)?.first().map(|event| event.at);
        let over = ended.is_some_and(|at: Timestamp| {
            let since = created.map_or(at, |created| created.max(at));
            self.now.since_ms(since) > GOES_ON_MS
        });
        match over {
            false => Ok(()),
            true => Err(Violation::of(
                "I5",
                "a sub-agent works, and no caller waits for the result",
            )),
        }
    }

    /// At rest, every sub-agent has ended, its parent knows, and its spending is in its parent's total.
    pub(crate) fn proof_of_trees(&self) -> Held {
        let sessions: Vec<SessionId> = self.disk.sessions().collect();
        let mut agents = BTreeMap::new();
        for session in sessions {
            let agent = Agent::fold(session, std::sync::Arc::clone(&self.config), &self.log(session)?);
            let agent = agent.map_err(|error| Violation::of("fold", error.to_string()))?;
            agents.insert(session, agent);
        }
        for agent in agents.values() {
            let durable = agent.durable();
            if durable.lineage().is_some() && durable.closed.is_none() {
                return Err(Violation::of(
                    "I6",
                    "a sub-agent is left that has ended and is not closed",
                ));
            }
            if !durable.children.is_empty() {
                return Err(Violation::of(
                    "I6",
                    "a session waits for sub-agents, and all is at rest",
                ));
            }
            for event in self.log(durable.session)? {
                if let EventBody::SubagentFinished(finished) = &event.body {
                    self.is_counted(finished, agents.get(&finished.child))?;
                }
            }
        }
        self.trees_kept_their_budgets(&agents)
    }

    /// A child that reported itself and had one task reported exactly the spending in its own log.
    fn is_counted(&self, finished: &SubagentFinished, child: Option<&Agent>) -> Held {
        let Some(durable) = child.map(Agent::durable).filter(|_| finished.reason.is_some()) else {
            return Ok(());
        };
        let inputs = self.log(durable.session)?;
        let inputs = inputs
            .iter()
            .filter(|event| matches!(event.body, EventBody::InputAccepted(_)));
        let steps = durable.totals.steps + durable.below.steps;
        if inputs.count() > 1 || steps == finished.spent.steps {
            return Ok(());
        }
        let told = finished.spent.steps;
        let what = format!("a sub-agent made {steps} steps, but its parent was notified of {told}");
        Err(Violation::of("budget", what))
    }

    /// No tree exceeds its budget by more than one step per session.
    fn trees_kept_their_budgets(&self, agents: &BTreeMap<SessionId, Agent>) -> Held {
        let mut trees: BTreeMap<SessionId, (u64, u64)> = BTreeMap::new();
        for agent in agents.values() {
            let durable = agent.durable();
            let (sessions, steps) = trees.entry(durable.root()).or_default();
            (*sessions, *steps) = (*sessions + 1, *steps + durable.totals.steps);
        }
        for (root, (sessions, steps)) in trees {
            let Some(top) = agents.get(&root) else { continue };
            let may = top.durable().budget().steps;
            let changed = self.log(root)?.iter().any(
                |event| matches!(&event.body, EventBody::SessionUpdated(updated) if updated.budget.is_some()),
            );
            if may > 0 && !changed && steps > may + sessions {
                let what = format!("{sessions} sessions made {steps} steps of {may}");
                return Err(Violation::of("budget", what));
            }
        }
        Ok(())
    }

    fn log(&self, session: SessionId) -> Result<Vec<Event>, Violation> {
        let events = self.disk.events(session, 0, self.disk.head(session));
        events.map_err(|error| Violation::of("I1", error.to_string()))
    }
}
