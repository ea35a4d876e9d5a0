//! The traffic between the sessions of a tree of agents. Each job is a task outside the loops and retries for a while.
//! Its messages go through the supervisor like any command, so they reach cold sessions, too. A job lost with the daemon
//! starts over when the session that wanted it wakes.

use crate::load;
use crate::loop_request::loop_request;
use crate::retry_policy::{
    COMMAND, Next, after_creation, after_report, after_stop, missed, not_started, pauses, spent_of,
    unanswered,
};
use crate::services::Services;
use crate::shell::Shell;
use agentd_actor_kit::{
    CallError, Done, FeedMsg, NewSubagent, Read, Routed, SessionMsg, StoreMsg, SupervisorMsg,
};
use agentd_protocol::{
    Block, Delta, Fault, Lineage, Principal, SessionId, SharedPlace, Spent, Summary, ToolCallId,
};
use agentd_store::Row;
use agentd_turn::{Answer, Command, Delegation, Effect, Ended, LoopRequest, NewInput, QuestionId, Reply};
use ractor::ActorRef;
use serde_json::Value;
use std::sync::Arc;

/// The session messenger: what a job needs of a loop that may be gone before the job is done.
pub(crate) struct SessionMessenger {
    pub(crate) services: Arc<Services>,
    pub(crate) supervisor: ActorRef<SupervisorMsg>,
    /// The session that the job works for.
    pub(crate) session: SessionId,
}

impl Shell {
    /// Carries out the effects that concern children, the parent or the root.
    pub(crate) fn for_family(&mut self, effect: Effect) {
        match effect {
            Effect::StartChild {
                tool_call,
                child,
                name,
                input,
            } => self.start_child(tool_call, child, &name, &input),
            Effect::StopChild { child, reason } => self.stop_child(child, reason),
            Effect::Lead { child } => {
                let post = self.messenger();
                tokio::spawn(async move { post.lead(child).await });
            }
            Effect::TellRoot => self.tell_root(),
            _ => {}
        }
    }

    fn messenger(&self) -> SessionMessenger {
        SessionMessenger {
            services: Arc::clone(&self.services),
            supervisor: self.supervisor.clone(),
            session: self.session,
        }
    }

    /// Creates the child session of a call, or finds the existing one.
    pub(crate) fn start_child(&self, tool_call: ToolCallId, child: SessionId, name: &str, input: &Value) {
        let post = self.messenger();
        let order = self.prepare(name, input).map(|prepared| loop_request(&prepared));
        let new = match order {
            Ok(Some(LoopRequest::Delegate(order))) => self.new_subagent(tool_call, order),
            Ok(_) => Err("it is not a task for a sub-agent".to_owned()),
            Err(outcome) => Err(outcome.llm_text),
        };
        tokio::spawn(async move {
            match new {
                Ok((new, prompt)) => post.bring_up(child, new, prompt).await,
                Err(why) => post.give_up(child, why).await,
            }
        });
    }

    fn new_subagent(
        &self,
        tool_call: ToolCallId,
        order: Delegation,
    ) -> Result<(NewSubagent, String), String> {
        let durable = self.core.agent.durable();
        let settings = durable
            .settings
            .clone()
            .ok_or("its parent session does not exist")?;
        let mut path = durable.path();
        if path.is_empty() {
            path.push(settings.title.clone());
        }
        let new = NewSubagent {
            parent: self.session,
            model: durable.model().to_owned(),
            budget: durable.budget(),
            lineage: Lineage {
                root: durable.root(),
                tool_call,
                depth: durable.depth().saturating_add(1),
                path,
                // The fleet's rules apply to the child, too, as long as they are in force.
                grants: durable
                    .grants
                    .iter()
                    .filter(|grant| !durable.always.contains(grant))
                    .cloned()
                    .collect(),
                shares: shares(&settings.workdir, durable.project()),
            },
            settings,
            purpose: order.purpose,
            agent: order.agent,
        };
        Ok((new, order.prompt))
    }

    /// Stops a sub-agent whose result is no longer wanted.
    pub(crate) fn stop_child(&self, child: SessionId, reason: String) {
        let post = self.messenger();
        tokio::spawn(async move { post.stop(child, reason).await });
    }

    /// Reports to the parent that this sub-agent ended.
    pub(crate) fn tell_parent(&self, id: QuestionId, parent: SessionId, ended: Ended) {
        let (post, me) = (self.messenger(), self.me.clone());
        tokio::spawn(async move {
            let answer = Box::new(Answer::Report(post.report(parent, post.session, ended).await));
            // If the loop is gone, it reports again when it is back, unless it is closed.
            let _ = me.cast(SessionMsg::Answered { id, answer });
        });
    }

    /// The sessions whose viewers may answer its questions: itself and the root.
    pub(crate) fn watched_at(&self) -> Vec<SessionId> {
        let root = self.core.agent.durable().root();
        std::iter::once(self.session)
            .chain((root != self.session).then_some(root))
            .collect()
    }

    /// Shows the viewers of the root what is open here.
    pub(crate) fn tell_root(&self) {
        let durable = self.core.agent.durable();
        self.services.feed.cast(FeedMsg::Delta {
            session: durable.root(),
            delta: Delta::Asks {
                child: self.session,
                approvals: durable.approvals.clone(),
            },
        });
    }

    /// Asks what the tree spent.
    pub(crate) fn ask_tree(&self, id: QuestionId, root: SessionId, parent: Option<SessionId>) {
        let (post, me) = (self.messenger(), self.me.clone());
        tokio::spawn(async move {
            let unknown = || Answer::Nobody("what the tree spent could not be read".to_owned());
            let spent = post.tree(root, parent).await;
            let answer = Box::new(spent.map_or_else(unknown, Answer::TreeSpending));
            let _ = me.cast(SessionMsg::Answered { id, answer });
        });
    }
}

/// The project of a directory that has another name.
fn shares(dir: &str, place: String) -> Option<SharedPlace> {
    (place != dir).then(|| SharedPlace {
        dir: dir.to_owned(),
        place,
    })
}

impl SessionMessenger {
    /// Creates a child, or asks an existing one to report.
    async fn bring_up(&self, child: SessionId, new: NewSubagent, prompt: String) {
        let mut why = "no one answered".to_owned();
        for pause in pauses() {
            match self.bring_up_once(child, &new, &prompt).await {
                Ok(()) => return,
                Err(fault) => match after_creation(&fault) {
                    Next::Over => return,
                    Next::GiveUp(why) => return self.give_up(child, why).await,
                    Next::Again | Next::Tell => why = fault.message,
                },
            }
            tokio::time::sleep(pause).await;
        }
        self.give_up(child, why).await;
    }

    async fn bring_up_once(&self, child: SessionId, new: &NewSubagent, prompt: &str) -> Result<(), Fault> {
        if let Some(row) = self.row(child).await? {
            self.catch_up(&row.summary).await?;
            if row.summary.turn.is_none() {
                self.route(child, Command::Tell).await?;
            }
            return Ok(());
        }
        let created = self.services.subagents.first_event(new.clone()).await?;
        let first = NewInput {
            content: vec![Block::text(prompt)],
            delivery: None,
            key: None,
            model: None,
        };
        let command = Command::Create {
            created: Box::new(created),
            first: Some(first),
        };
        self.route(child, command).await.map(drop)
    }

    /// Asks a child that may have missed a change in its parent to check the parent.
    async fn catch_up(&self, child: &Summary) -> Result<(), Fault> {
        let Some(own) = self.row(self.session).await?.map(|row| row.summary) else {
            return Ok(());
        };
        if missed(child, &own) {
            self.route(child.session, Command::Follow).await?;
        }
        Ok(())
    }

    /// Asks a child to check its parent. One that cannot be reached checks before its next step.
    async fn lead(&self, child: SessionId) {
        for pause in pauses() {
            match self.route(child, Command::Follow).await {
                Err(fault) if after_creation(&fault) != Next::Again => return,
                Err(_) => {}
                Ok(_) => return,
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!(%child, "could not notify a sub-agent of its parent's change; it checks before its next step");
    }

    /// A child cannot be created: its call gets the reason as its result.
    async fn give_up(&self, child: SessionId, why: String) {
        let row = self.row(child).await.ok().flatten();
        let spent = row.map_or_else(Spent::default, |row| spent_of(&row.summary));
        let gone = not_started(why, spent);
        self.report(self.session, child, gone).await;
    }

    /// Closes a child. The child reports to its parent by itself when all sessions below it have ended.
    async fn stop(&self, child: SessionId, reason: String) {
        for pause in pauses() {
            let close = Command::Close {
                reason: reason.clone(),
                force: true,
            };
            let Err(fault) = self.route(child, close).await else {
                return;
            };
            match after_stop(&fault) {
                Next::Over => return,
                Next::GiveUp(why) => return self.give_up(child, why).await,
                Next::Tell if self.route(child, Command::Tell).await.is_ok() => return,
                Next::Tell | Next::Again => {}
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!(%child, "could not close a sub-agent; retrying when its parent wakes");
    }

    /// Reports to a parent how a child ended. True when the parent knows, or does not want to know.
    pub(crate) async fn report(&self, parent: SessionId, child: SessionId, ended: Ended) -> bool {
        for pause in pauses() {
            let command = Command::ChildEnded {
                child,
                ended: Box::new(ended.clone()),
            };
            let Err(fault) = self.route(parent, command).await else {
                return true;
            };
            if let Some(heard) = after_report(&fault) {
                return heard;
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!(%parent, %child, "could not notify a parent that its sub-agent ended");
        false
    }

    pub(crate) async fn row(&self, session: SessionId) -> Result<Option<Row>, Fault> {
        let read = |done| StoreMsg::Read(Read::Row { session, done });
        let answer = self.services.store.call(self.services.timing.load, read).await;
        load::answer(answer).map_err(|error| Fault::unavailable("store_unavailable", error.to_string()))
    }

    async fn route(&self, session: SessionId, command: Command) -> Result<Reply, Fault> {
        let (done, answer) = Done::channel();
        let routed = Routed {
            session,
            command: Box::new(command),
            by: Principal::agentd(),
            key: None,
            done,
        };
        let gone = || Fault::unavailable("supervisor_gone", "the loop supervisor is not running");
        if self.supervisor.cast(SupervisorMsg::Route(routed)).is_err() {
            return Err(gone());
        }
        match tokio::time::timeout(COMMAND, answer).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(unanswered()),
            Err(_) => Err(Fault::timeout(
                "session_slow",
                CallError::Timeout("the session").to_string(),
            )),
        }
    }
}
