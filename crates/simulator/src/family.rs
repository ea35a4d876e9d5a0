//! Communication within a tree: messages from a loop to its children, parent and tree run outside of the loops with
//! retries, as in the daemon. The reaction to each answer is the daemon's own code.

use crate::hot::Hot;
use crate::options::{Flaw, Knob};
use crate::tree_messages::{TreeMessage, What};
use crate::world::World;
use agentd_protocol::{Budget, Fault, Lineage, SessionCreated, SessionId, Spent, ToolCallId};
use agentd_session_loop::{loop_request, spent_of};
use agentd_turn::{Above, Answer, Delegation, Effect, Ended, LoopRequest, QuestionId, TreeSpent};
use serde_json::Value;

impl World {
    pub(crate) fn for_family(&mut self, hot: &Hot, effect: Effect) {
        match effect {
            Effect::StartChild {
                tool_call,
                child,
                name,
                input,
            } => self.start_child(hot, (tool_call, child), &name, &input),
            Effect::StopChild { child, reason } if self.disk.flaw != Flaw::StrayChild => {
                let telling = false;
                self.message(
                    hot,
                    What::Stop {
                        child,
                        reason,
                        telling,
                    },
                );
            }
            Effect::Lead { child } => self.message(hot, What::Lead { child }),
            // Viewers learn of questions below the root live; nothing durable depends on this.
            _ => {}
        }
    }

    pub(crate) fn message(&mut self, hot: &Hot, what: What) {
        let message = TreeMessage::new(hot.number, hot.session, what);
        self.send_out(message);
    }

    fn start_child(&mut self, hot: &Hot, of: (ToolCallId, SessionId), name: &str, input: &Value) {
        let child = of.1;
        let order = self.registry.prepare(name, input);
        let created = match order.map(|prepared| loop_request(&prepared)) {
            Ok(Some(LoopRequest::Delegate(order))) => first_event(hot, of.0, order),
            Ok(_) => Err("it is not a task for a sub-agent".to_owned()),
            Err(outcome) => Err(outcome.llm_text),
        };
        match created {
            Ok((created, prompt)) => self.message(
                hot,
                What::BringUp {
                    child,
                    created,
                    prompt,
                },
            ),
            Err(why) => {
                let what = self.given_up(hot.session, child, why);
                self.message(hot, what);
            }
        }
    }

    pub(crate) fn tell_parent(
        &mut self,
        hot: &Hot,
        id: QuestionId,
        parent: SessionId,
        mut ended: Box<Ended>,
    ) {
        if self.disk.flaw == Flaw::LostReport {
            return self.reply_to(hot.number, 20, id, Answer::Report(true));
        }
        if self.disk.flaw == Flaw::LostSpent {
            ended.spent = Spent::default();
        }
        let (child, tells) = (hot.session, Some(id));
        self.message(
            hot,
            What::Report {
                parent,
                child,
                ended,
                tells,
            },
        );
    }

    /// The durable spending of the tree.
    pub(crate) fn tree(&self, asks: SessionId, root: SessionId, parent: Option<SessionId>) -> TreeSpent {
        let mut spent = TreeSpent {
            wanted: self.is_wanted(asks, parent),
            others: Spent::default(),
            budget: Budget::default(),
            above: parent.and_then(|parent| self.disk.row(parent)).map(|row| Above {
                mode: row.summary.mode,
                paused: row.summary.paused,
            }),
        };
        let Some(top) = self.disk.row(root).map(|row| row.summary) else {
            spent.wanted = false;
            return spent;
        };
        spent.budget = top.budget;
        if !spent.wanted || top.budget == Budget::default() {
            return spent;
        }
        let mut open = vec![top];
        while let Some(summary) = open.pop() {
            if summary.session != asks {
                spent.others = spent.others.and(spent_of(&summary));
            }
            let children = summary.children.into_iter();
            open.extend(children.filter_map(|child| self.disk.row(child).map(|row| row.summary)));
        }
        spent
    }

    fn is_wanted(&self, asks: SessionId, parent: Option<SessionId>) -> bool {
        let Some(parent) = parent else { return true };
        self.disk.flaw == Flaw::StrayChild
            || self
                .disk
                .row(parent)
                .is_some_and(|row| row.summary.children.contains(&asks))
    }

    /// A person forks a session: a prefix of its log that ends at rest becomes the log of a new session.
    pub(crate) fn fork(&mut self, from: SessionId) {
        let upto = self.dice.between(1, self.disk.head(from).max(1));
        let mut stamp = self.dice.stamp(self.now);
        let made = crate::forks::fork(&mut self.disk, from, upto, &mut stamp);
        match made {
            Ok(Some(made)) => self.say(|| format!("{} is forked as {}", from.short(), made.short())),
            Ok(None) => {}
            Err(violation) => self.fail(violation),
        }
    }

    /// Whether a child can be created. Fails occasionally, as if a custom agent no longer existed.
    pub(crate) fn creatable(&mut self) -> Result<(), Fault> {
        match self.chance(Knob::ToolFail, 400) {
            true => Err(Fault::invalid("no_agent", "there is no such custom agent")),
            false => Ok(()),
        }
    }
}

fn first_event(
    hot: &Hot,
    tool_call: ToolCallId,
    order: Delegation,
) -> Result<(Box<SessionCreated>, String), String> {
    let durable = hot.core.agent().durable();
    let settings = durable
        .settings
        .clone()
        .ok_or("its parent session does not exist")?;
    let mut path = durable.path();
    if path.is_empty() {
        path.push(settings.title.clone());
    }
    let lineage = Lineage {
        root: durable.root(),
        tool_call,
        depth: durable.depth().saturating_add(1),
        path,
        grants: Vec::new(),
        shares: None,
    };
    let created = SessionCreated {
        title: order.purpose,
        derived_title: false,
        workspace: None,
        model: durable.model().to_owned(),
        parent: Some(hot.session),
        budget: durable.budget(),
        lineage: Some(Box::new(lineage)),
        ..settings
    };
    Ok((Box::new(created), order.prompt))
}
