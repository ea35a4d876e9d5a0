//! The feed's actor: sends commits and deltas to viewers without delaying commits.

use crate::state::{FeedLimits, FeedState};
use agentd_actor_core::FeedMsg;
use agentd_fault_points as fault;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long after a commit its announcement may arrive. After that, watchers must read it from the log.
const SETTLE: Duration = Duration::from_millis(500);

/// The arguments of the feed. A restarted feed has no viewers: their queues end, and they attach again.
#[derive(Debug, Clone)]
pub struct FeedArgs {
    /// The fleet-wide cursor of the last commit, from the backend.
    pub committed: watch::Receiver<u64>,
    /// The limits of what it keeps.
    pub limits: FeedLimits,
}

/// The actor that viewers attach to.
#[derive(Debug)]
pub struct Feed;

/// The actor's state.
#[derive(Debug)]
pub struct State {
    feed: FeedState,
    _settler: Settler,
}

/// Reports commits once their time for the announcement is over; ends with the actor.
#[derive(Debug)]
struct Settler(JoinHandle<()>);

impl Settler {
    fn start(mut committed: watch::Receiver<u64>, me: ActorRef<FeedMsg>) -> Self {
        Self(tokio::spawn(async move {
            while committed.changed().await.is_ok() {
                let upto = *committed.borrow_and_update();
                tokio::time::sleep(SETTLE).await;
                if me.cast(FeedMsg::Settle { upto }).is_err() {
                    return;
                }
            }
        }))
    }
}

impl Drop for Settler {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Actor for Feed {
    type Msg = FeedMsg;
    type State = State;
    type Arguments = FeedArgs;

    async fn pre_start(&self, me: ActorRef<FeedMsg>, args: FeedArgs) -> Result<State, ActorProcessingErr> {
        let mut committed = args.committed;
        let cursor = *committed.borrow_and_update();
        let feed = FeedState::new(cursor, args.limits);
        Ok(State {
            feed,
            _settler: Settler::start(committed, me),
        })
    }

    async fn handle(
        &self,
        _: ActorRef<FeedMsg>,
        msg: FeedMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let feed = &mut state.feed;
        match msg {
            FeedMsg::Committed(commits) => {
                fault::point(fault::FEED_PUBLISH)?;
                commits.into_iter().for_each(|commit| feed.committed(commit));
            }
            FeedMsg::Others { commits, done } => {
                fault::point(fault::FEED_PUBLISH)?;
                commits.into_iter().for_each(|commit| feed.committed(commit));
                done.answer(feed.is_awaited());
            }
            FeedMsg::Delta { session, delta } => feed.delta(session, delta),
            FeedMsg::Cold { session } => feed.cold(session),
            FeedMsg::Unsure { session } => feed.unsure(session),
            FeedMsg::Loaded { session, head } => feed.loaded(session, head),
            FeedMsg::Attach {
                session,
                viewer,
                done,
            } => done.answer(feed.attach(session, viewer)),
            FeedMsg::Detach { session, viewer } => feed.detach(session, viewer),
            FeedMsg::Watch {
                viewer,
                patient,
                done,
            } => done.answer(feed.fleet.watch(viewer, patient)),
            FeedMsg::Unwatch { viewer } => feed.fleet.unwatch(viewer),
            FeedMsg::Deciders { sessions, done } => {
                let counts = sessions.into_iter().map(|session| feed.deciders(session));
                done.answer(counts.sum());
            }
            FeedMsg::Settle { upto } => feed.settle(upto),
        }
        Ok(())
    }
}
