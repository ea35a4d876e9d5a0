//! The actor of a loop: each message is one handler call; afterwards the decided events go to the store.

use crate::error::LoopError;
use crate::load::Folded;
use crate::services::Services;
use crate::shell::Shell;
use agentd_actor_kit::{FeedMsg, SessionMsg, SupervisorMsg};
use agentd_turn::{Input, TimerKey};
use ractor::{Actor, ActorProcessingErr, ActorRef, SpawnErr, SupervisionEvent};
use std::sync::Arc;

/// The loop of one hot session.
#[derive(Debug)]
pub struct SessionLoop;

/// The arguments that a loop starts with.
#[derive(Debug)]
pub struct LoopArgs {
    /// The services that all loops share.
    pub services: Arc<Services>,
    /// The folded log.
    pub folded: Folded,
    /// The supervisor; it also routes messages to the loop.
    pub supervisor: ActorRef<SupervisorMsg>,
}

impl SessionLoop {
    /// Starts a loop, linked to its supervisor.
    ///
    /// # Errors
    /// The actor could not be started.
    pub async fn start(args: LoopArgs) -> Result<ActorRef<SessionMsg>, SpawnErr> {
        let supervisor = args.supervisor.get_cell();
        ractor::Actor::spawn_linked(None, Self, args, supervisor)
            .await
            .map(|(actor, _)| actor)
    }
}

impl Actor for SessionLoop {
    type Msg = SessionMsg;
    type State = Shell;
    type Arguments = LoopArgs;

    async fn pre_start(&self, me: ActorRef<SessionMsg>, args: LoopArgs) -> Result<Shell, ActorProcessingErr> {
        let _ = me.cast(SessionMsg::Start);
        Ok(Shell::new(me, args.supervisor, args.services, args.folded))
    }

    async fn handle(
        &self,
        me: ActorRef<SessionMsg>,
        message: SessionMsg,
        shell: &mut Shell,
    ) -> Result<(), ActorProcessingErr> {
        // Boxed, so that a session waiting for a message does not reserve the memory of a running handler (7 KB, twice).
        Box::pin(shell.take(message)).await?;
        if let Some(reason) = shell.finish() {
            me.stop(Some(reason.to_owned()));
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SessionMsg>,
        event: SupervisionEvent,
        shell: &mut Shell,
    ) -> Result<(), ActorProcessingErr> {
        // Supervision events overtake messages: the worker's result may still be in the mailbox, so `Down` goes behind it.
        if let Some((work, why)) = shell.running.fell(event) {
            let _ = me.cast(SessionMsg::Down { work, why });
        }
        Ok(())
    }
}

impl Shell {
    async fn take(&mut self, message: SessionMsg) -> Result<(), LoopError> {
        match message {
            SessionMsg::Command(routed) => {
                self.core.command(routed);
                self.run_followers().await
            }
            SessionMsg::Model { call, attempt, event } => self.model_news(call, attempt, event).await,
            SessionMsg::Tool {
                tool_call,
                attempt,
                event,
            } => self.tool_news(tool_call, attempt, event).await,
            SessionMsg::Job(news) => self.job_news(news).await,
            SessionMsg::Answered { id, answer } => {
                let answer = *answer;
                self.advance(Input::Answered { id, answer }).await
            }
            SessionMsg::Reworked {
                id,
                reworked,
                blobs,
                earlier,
            } => self.reworked(id, *reworked, blobs, earlier).await,
            SessionMsg::Down { work, why } => self.down(work, why).await,
            SessionMsg::Hooked {
                tool_call,
                attempt,
                ran,
            } => self.hooked(tool_call, attempt, *ran).await,
            SessionMsg::Judged { tool_call, judgement } => self.gate_spoke(tool_call, judgement).await,
            SessionMsg::Compared { tool_call, contents } => {
                self.compared(tool_call, contents);
                Ok(())
            }
            SessionMsg::Detailed { tool_call, detail } => self.detailed(tool_call, detail).await,
            SessionMsg::Offered { found } => {
                self.servers_said(found);
                Ok(())
            }
            SessionMsg::Stored { outcome } => self.stored(outcome).await,
            SessionMsg::RetryAppend { number } => {
                self.retry(number);
                Ok(())
            }
            SessionMsg::CompactionOverdue { id } => self.hurry_summary(Some(id), "it took too long").await,
            SessionMsg::SideOverdue { call } => self.side_overdue(call).await,
            SessionMsg::AppendOverdue { number } => self.overdue(number).await,
            SessionMsg::Timer { key, generation } => self.timer(key, generation).await,
            SessionMsg::Start => self.start().await,
            SessionMsg::Idle => {
                self.idle_asked();
                Ok(())
            }
            SessionMsg::Drain => self.drain().await,
        }
    }

    async fn timer(&mut self, key: TimerKey, generation: u64) -> Result<(), LoopError> {
        self.core.fired(key, generation);
        self.run_followers().await
    }

    /// A folded log continues where it stopped; a new session waits for its first command.
    async fn start(&mut self) -> Result<(), LoopError> {
        if self.core.agent.durable().head == 0 {
            return Ok(());
        }
        self.live.touch();
        self.services.feed.cast(FeedMsg::Loaded {
            session: self.session,
            head: self.core.agent.durable().head,
        });
        self.advance(Input::Recover).await
    }

    /// Runs after each message: sends decided events to the store, reports changes, and stops or rests the loop.
    fn finish(&mut self) -> Option<&'static str> {
        self.flush();
        self.report();
        self.settle_down();
        self.core.stop()
    }
}
