//! Inputs and turns: `input.send`, `input.cancel`, `input.list`, `turn.cancel`.

use crate::answers::Answers as _;
use crate::api::Api;
use crate::idempotency::Keyed;
use crate::images::has_image;
use crate::sight::{Caller, Seen};
use crate::typed::Outcome;
use crate::validate;
use agentd_actor_kit::SupervisorMsg;
use agentd_fault_points as fault;
use agentd_protocol::{
    Block, CancelInputParams, CancelTurnParams, Done, Fault, QueuedInput, SendParams, Sent, SessionParams,
};
use agentd_turn::{Command, NewInput};
use serde_json::Value;

impl Api {
    pub(crate) async fn send(&self, who: &Caller, params: SendParams) -> Result<Value, Fault> {
        let (key, _turn) = match self
            .keyed(who, "input.send", params.key.as_deref(), &params)
            .await?
        {
            Keyed::Before(answer) => return Ok(answer),
            Keyed::New(key, turn) => (key, turn),
        };
        validate::content(&params.content, &self.loaded().settings)?;
        let session = self.session(who, &params.session).await?;
        let model = match params.model {
            Some(name) => Some(self.model(Some(&name)).await?),
            None => None,
        };
        if has_image(&params.content) {
            let model = match &model {
                Some(name) => name.clone(),
                None => self.row(session).await?.summary.model,
            };
            self.takes_images(&model, &params.content).await?;
        }
        let (content, notices) = if params.commands {
            match self.obeyed(who, session, params.content, key.clone()).await? {
                Outcome::Input(content, notices) => (content, notices),
                Outcome::Said(sent) => return self.settle(key, Ok(sent)).await,
            }
        } else {
            (params.content, Vec::new())
        };
        let content = self.given_to(session, params.agent.as_deref(), content).await?;
        let input = NewInput {
            content,
            delivery: params.delivery,
            key: params.key,
            model,
        };
        let reply = self.route(who, session, Command::Send(input), key.clone()).await;
        let sent = reply.and_then(|reply| reply.sent());
        self.settle(key, sent.map(|sent| Sent { notices, ..sent })).await
    }

    /// An input meant for a custom agent: the session's model starts it as a sub-agent, whose permissions are at most the
    /// session's.
    async fn given_to(
        &self,
        session: Seen,
        agent: Option<&str>,
        mut content: Vec<Block>,
    ) -> Result<Vec<Block>, Fault> {
        let Some(name) = agent else { return Ok(content) };
        let (created, _) = self.first(session).await?;
        let workdir = self.row(session).await?.summary.workdir;
        self.definition(Some(name), &workdir).await?;
        if !created.tools.iter().any(|tool| tool == "Task") {
            return Err(Fault::invalid(
                "no_subagents",
                "this session has no tool Task, so it cannot start an agent",
            )
            .hint(format!("agentctl run --agent {name} starts a session of its own")));
        }
        content.push(Block::text(format!(
            "\n\n[The agent {name:?} must do this: call Task with agent {name:?} and a prompt that contains everything it needs, \
             then report the result.]"
        )));
        Ok(content)
    }

    pub(crate) async fn cancel_input(&self, who: &Caller, params: CancelInputParams) -> Result<Done, Fault> {
        let input = params.input.ok_or_else(|| {
            Fault::invalid("input_missing", "the input is missing")
                .hint("only an input that waits in the queue can be cancelled; `agentctl show` lists those")
        })?;
        let session = self.session(who, &params.session).await?;
        Ok(self
            .route(who, session, Command::CancelInput(input), None)
            .await?
            .done())
    }

    pub(crate) async fn list_inputs(
        &self,
        who: &Caller,
        params: SessionParams,
    ) -> Result<Vec<QueuedInput>, Fault> {
        Ok(self.row_of(who, &params.session).await?.1.summary.queue)
    }

    pub(crate) async fn cancel_turn(&self, who: &Caller, params: CancelTurnParams) -> Result<Done, Fault> {
        let session = self.session(who, &params.session).await?;
        let id = *session;
        fault::point(fault::SESSION_CANCEL).map_err(crate::api::struck)?;
        let command = Command::CancelTurn {
            expect: params.expect_turn,
            reason: params.reason,
            jobs: params.kill,
        };
        let cancelled = self.route(who, session, command, None).await;
        self.give_back(id).await?;
        let done = cancelled?.done();
        // On a full disk the loop must stay to keep the events that it could not write.
        if params.kill && !done.pending {
            // The turn's end is durable; killing the loop also kills commands that are still shutting down gracefully.
            let evict = |done| SupervisorMsg::Evict { session: id, done };
            self.parts
                .supervisor
                .call(crate::api::READ, evict)
                .await
                .map_err(crate::api::fault_of)?;
        }
        Ok(done)
    }
}
