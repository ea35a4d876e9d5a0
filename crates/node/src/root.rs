//! The root of the actor tree: starts and restarts the singletons, and gives up if restarts do not help.
//!
//! Restart rule: the model clients, the tool executor, the gate, the feed and the services restart alone. The session store restarts with
//! the loop supervisor after it, because loops that wait for an answer of the old store must fold again. More than three
//! restarts of a child within a minute are a meltdown: the process exits with 70, and its service manager restarts it.

use crate::children::{Child, ChildArgs, Children, Handles};
use crate::error::NodeError;
use crate::service::Service;
use agentd_actor_kit::{Alarm, Down, RestartWindow};
use agentd_session_store::OnFatal;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;

/// Failures of one child that are tolerated within [`WINDOW_MS`].
const FORGIVEN: usize = 3;
/// One minute.
const WINDOW_MS: u64 = 60_000;
/// The delay before another attempt to start a child.
const START_AGAIN: Duration = Duration::from_millis(250);

/// A child, and how it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) child: Child,
    pub(crate) running: bool,
    pub(crate) restarts: u64,
}

/// The status of the tree, for the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// The children, in the order in which they started.
    pub(crate) parts: Vec<Part>,
    /// Restarts of singletons so far, counted once the new incarnation runs.
    pub restarts: u64,
    /// The fatal error that stopped the tree, if any.
    pub fatal: Option<String>,
}

impl Health {
    fn started(&mut self, child: &Child) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.child == *child) {
            part.running = true;
            part.restarts += 1;
        } else {
            let child = child.clone();
            self.parts.push(Part {
                child,
                running: true,
                restarts: 0,
            });
        }
    }

    fn ended(&mut self, child: &Child) {
        for part in self.parts.iter_mut().filter(|part| part.child == *child) {
            part.running = false;
        }
    }

    /// The callback for a store that stopped for good. It ends the process: restarting the actor would not repair the disk.
    fn on_fatal(health: &watch::Sender<Self>) -> OnFatal {
        let health = health.clone();
        OnFatal::new(move |why| health.send_modify(|health| health.fatal = Some(why)))
    }
}

/// Messages of the root.
#[derive(Debug)]
pub(crate) enum RootMsg {
    /// A child went down. The root sends this to itself.
    Down {
        /// The incarnation.
        who: ActorId,
        /// The cause.
        why: Down,
    },
    /// Try again to start a child that did not start (private timer).
    StartAgain(Child),
}

/// The root actor.
#[derive(Debug)]
pub(crate) struct Root;

/// The arguments of the root.
#[derive(Debug)]
pub(crate) struct RootArgs {
    child_args: ChildArgs,
    children: Children,
    health: watch::Sender<Health>,
}

/// A tree that is about to start: its handles exist already, and wait for the actors.
#[derive(Debug)]
pub(crate) struct Tree {
    args: RootArgs,
    pub(crate) handles: Handles,
    /// Closes when the root is gone.
    pub(crate) health: watch::Receiver<Health>,
}

impl Tree {
    pub(crate) fn new(child_args: ChildArgs) -> Self {
        let (health_tx, health) = watch::channel(Health::default());
        let children = Children::new(child_args.providers(), Health::on_fatal(&health_tx));
        Self {
            handles: children.handles(),
            args: RootArgs {
                child_args,
                children,
                health: health_tx,
            },
            health,
        }
    }

    /// The inputs from which the children start.
    pub(crate) const fn child_args(&self) -> &ChildArgs {
        &self.args.child_args
    }

    /// Starts the root, the singletons and these services.
    pub(crate) async fn start(self, services: Vec<Service>) -> Result<ActorRef<RootMsg>, NodeError> {
        let args = RootArgs {
            children: self.args.children.serving(services),
            ..self.args
        };
        let started = Actor::spawn(None, Root, args).await;
        let (root, _) = started.map_err(|e| NodeError::Actor {
            actor: "the root",
            why: e.to_string(),
        })?;
        Ok(root)
    }
}

/// The root's state.
#[derive(Debug)]
pub(crate) struct State {
    args: RootArgs,
    running: BTreeMap<ActorId, Child>,
    windows: BTreeMap<Child, RestartWindow>,
    /// The scheduled attempts to start children that did not start.
    tries: BTreeMap<Child, Alarm>,
}

impl State {
    fn fatal(&self, why: String) {
        tracing::error!(%why, "the daemon cannot continue");
        self.args.health.send_modify(|health| health.fatal = Some(why));
    }

    async fn start(&mut self, child: Child, me: &ActorRef<RootMsg>) -> Result<(), ActorProcessingErr> {
        let id = self
            .args
            .children
            .start(&child, &self.args.child_args, me.get_cell())
            .await?;
        self.args.health.send_modify(|health| health.started(&child));
        self.running.insert(id, child);
        Ok(())
    }

    /// Restarts a failed child, and the children that depend on it.
    async fn restart(&mut self, child: Child, me: &ActorRef<RootMsg>) {
        let window = self
            .windows
            .entry(child.clone())
            .or_insert_with(|| RestartWindow::new(FORGIVEN, WINDOW_MS));
        if !window.allow(self.args.child_args.clock.now()) {
            self.fatal(format!(
                "{child} failed more than {FORGIVEN} times within a minute"
            ));
            return;
        }
        let mut again = vec![child.clone()];
        if child == Child::SessionStore {
            self.stop(&Child::LoopSupervisor).await;
            again.push(Child::LoopSupervisor);
        }
        for part in again {
            if let Err(why) = self.start(part.clone(), me).await {
                return self.start_later(part, &why, me);
            }
        }
        self.args.health.send_modify(|health| health.restarts += 1);
    }

    /// A child did not start. A child that it needs may be down (the gate needs the store), and the message about that
    /// may be next in the mailbox. So the root handles the mailbox first, and then tries again.
    fn start_later(&mut self, child: Child, why: &ActorProcessingErr, me: &ActorRef<RootMsg>) {
        tracing::error!(%child, %why, "could not start {child}; retrying");
        let again = RootMsg::StartAgain(child.clone());
        self.tries.insert(child, Alarm::set(me, START_AGAIN, again));
    }

    /// Tries again, unless the child was started together with another one meanwhile.
    async fn start_again(&mut self, child: Child, me: &ActorRef<RootMsg>) {
        self.tries.remove(&child);
        if !self.running.values().any(|running| *running == child) {
            self.restart(child, me).await;
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
            tries: BTreeMap::new(),
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
        match msg {
            RootMsg::Down { who, why } => {
                // A child that we stopped ourselves is no longer in the table.
                if let Some(child) = state.running.remove(&who) {
                    tracing::error!(%child, %why, "{child} failed; restarting it");
                    state.args.health.send_modify(|health| health.ended(&child));
                    state.restart(child, &me).await;
                }
            }
            RootMsg::StartAgain(child) => state.start_again(child, &me).await,
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
        state.tries.clear();
        let children = &state.args.children;
        // Open requests may still need the loops and the store, so the servers learn of the stop first and are gone last.
        children.announce_stop();
        let is_front = |child: &Child| children.is_front(child);
        let (fronts, others): (Vec<_>, Vec<_>) = children.in_order().into_iter().partition(is_front);
        // Stop in reverse start order: loops before what they use, the store last.
        for child in others.into_iter().rev().chain(fronts) {
            children.stop(&child).await;
        }
        drop(me);
        Ok(())
    }
}
