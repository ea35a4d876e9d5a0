//! The root of the actor tree: starts the singletons, restarts them, gives up when that does not help.
//!
//! Restart rule: the model clients, the tool executor, the gate and the feed alone; the session store with the loop
//! supervisor after it, because loops that wait for an answer of the old store must fold anew. Three restarts of one
//! child within a minute are a meltdown: the process ends with 70 and whoever watches it starts it again.

use crate::children::{Child, ChildArgs, Children};
use agentd_actor_kit::{Clock, Down, RestartWindow};
use agentd_protocol::Timestamp;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Restarts of one child that are forgiven within [`WINDOW_MS`].
const RESTARTS: usize = 3;
/// One minute.
const WINDOW_MS: u64 = 60_000;

/// What the root tells the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Restarts of singletons so far.
    pub restarts: u64,
    /// Why the tree cannot go on.
    pub fatal: Option<String>,
}

/// Messages of the root.
#[derive(Debug)]
pub(crate) enum RootMsg {
    /// A child went down; re-queued by the root to itself.
    Down {
        /// Which incarnation.
        who: ActorId,
        /// Why.
        why: Down,
    },
}

/// The root actor.
#[derive(Debug)]
pub(crate) struct Root;

/// What the root starts from.
#[derive(Debug)]
pub(crate) struct RootArgs {
    pub(crate) child_args: Arc<ChildArgs>,
    pub(crate) children: Children,
    pub(crate) health: watch::Sender<Health>,
    pub(crate) clock: Clock,
}

/// The root's state.
#[derive(Debug)]
pub(crate) struct State {
    args: RootArgs,
    running: BTreeMap<ActorId, Child>,
    windows: BTreeMap<Child, RestartWindow>,
}

impl State {
    fn fatal(&self, why: String) {
        tracing::error!(%why, "the daemon cannot go on");
        self.args.health.send_modify(|health| health.fatal = Some(why));
    }

    async fn start(&mut self, child: Child, me: &ActorRef<RootMsg>) -> Result<(), ActorProcessingErr> {
        let id = self
            .args
            .children
            .start(&child, &self.args.child_args, me.get_cell())
            .await?;
        self.running.insert(id, child);
        Ok(())
    }

    /// Starts what went down again, and what depends on it.
    async fn restart(&mut self, child: Child, me: &ActorRef<RootMsg>) {
        let now: Timestamp = self.args.clock.now();
        let window = self
            .windows
            .entry(child.clone())
            .or_insert_with(|| RestartWindow::new(RESTARTS, WINDOW_MS));
        if !window.allow(now) {
            self.fatal(format!("{child} failed {RESTARTS} times within a minute"));
            return;
        }
        self.args.health.send_modify(|health| health.restarts += 1);
        let mut again = vec![child.clone()];
        if child == Child::SessionStore {
            self.stop(&Child::LoopSupervisor).await;
            again.push(Child::LoopSupervisor);
        }
        for child in again {
            if let Err(why) = self.start(child.clone(), me).await {
                self.fatal(format!("{child} does not start again: {why}"));
                return;
            }
        }
    }

    async fn stop(&mut self, child: &Child) {
        self.running.retain(|_, running| running != child);
        self.args.children.stop(child).await;
    }
}

impl Actor for Root {
    type Msg = RootMsg;
    type State = State;
    type Arguments = RootArgs;

    async fn pre_start(&self, me: ActorRef<RootMsg>, args: RootArgs) -> Result<State, ActorProcessingErr> {
        let mut state = State {
            args,
            running: BTreeMap::new(),
            windows: BTreeMap::new(),
        };
        for child in state.args.children.in_order() {
            state.start(child, &me).await?;
        }
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<RootMsg>,
        msg: RootMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let RootMsg::Down { who, why } = msg;
        // A child that we stopped ourselves is not in the table any more.
        if let Some(child) = state.running.remove(&who) {
            tracing::error!(%child, %why, "a singleton went down and is restarted");
            state.restart(child, &me).await;
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<RootMsg>,
        event: SupervisionEvent,
        _: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let (cell, why) = match event {
            SupervisionEvent::ActorFailed(cell, error) => (cell, Down::Failed(error.to_string())),
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                (cell, Down::Killed(reason.unwrap_or_else(|| "ended".to_owned())))
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        let _ = me.cast(RootMsg::Down {
            who: cell.get_id(),
            why,
        });
        Ok(())
    }

    async fn post_stop(&self, me: ActorRef<RootMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.running.clear();
        // Last started, first stopped: loops before what they use, the store last.
        for child in state.args.children.in_order().into_iter().rev() {
            state.args.children.stop(&child).await;
        }
        drop(me);
        Ok(())
    }
}
