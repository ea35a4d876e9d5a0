//! The session store's actor: a thin match in front of [`Admission`](crate::admission::Admission).

use crate::admission::{Admission, StoreLimits};
use agentd_actor_core::{FeedMsg, Handle, StoreMsg};
use agentd_store::Backend;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::fmt;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The callback for a store that has stopped for good.
#[derive(Clone)]
pub struct OnFatal(Arc<dyn Fn(String) + Send + Sync>);

impl OnFatal {
    /// `tell` receives the reason. It must not block.
    #[must_use]
    pub fn new(tell: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for OnFatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnFatal")
    }
}

/// The arguments of the session store. A restarted actor gets the same backend: the writer thread outlives the actor.
#[derive(Debug, Clone)]
pub struct StoreArgs {
    /// The log.
    pub backend: Arc<dyn Backend>,
    /// The feed to which commits are announced.
    pub feed: Handle<FeedMsg>,
    /// The limits of concurrent work.
    pub limits: StoreLimits,
    /// Called after an I/O error: the process must end.
    pub on_fatal: OnFatal,
}

/// The actor in front of the log.
#[derive(Debug)]
pub struct SessionStore;

/// The actor's state.
#[derive(Debug)]
pub struct State {
    admission: Admission,
    on_fatal: OnFatal,
    _watcher: Watcher,
}

/// Waits until the backend stops for good; ends with the actor.
#[derive(Debug)]
struct Watcher(JoinHandle<()>);

impl Watcher {
    fn start(backend: &Arc<dyn Backend>, me: ActorRef<StoreMsg>) -> Self {
        let mut fatal = backend.fatal();
        Self(tokio::spawn(async move {
            let why = fatal
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|why| why.clone());
            if let Some(why) = why {
                let _ = me.cast(StoreMsg::Fatal(why));
            }
        }))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Actor for SessionStore {
    type Msg = StoreMsg;
    type State = State;
    type Arguments = StoreArgs;

    async fn pre_start(&self, me: ActorRef<StoreMsg>, args: StoreArgs) -> Result<State, ActorProcessingErr> {
        let watcher = Watcher::start(&args.backend, me);
        let admission = Admission::new(args.backend, args.feed, args.limits);
        Ok(State {
            admission,
            on_fatal: args.on_fatal,
            _watcher: watcher,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<StoreMsg>,
        msg: StoreMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let admission = &state.admission;
        match msg {
            StoreMsg::Append { append, done } => admission.append(append, done),
            StoreMsg::Read(read) => admission.read(read),
            StoreMsg::Claim {
                session,
                without_files,
                done,
            } => admission.claim(session, without_files, done),
            StoreMsg::PutBlob { session, bytes, done } => admission.put_blob(session, bytes, done),
            StoreMsg::Delete { session, done } => admission.delete(session, done),
            StoreMsg::Load { done } => done.answer(admission.load()),
            StoreMsg::Fatal(why) => (state.on_fatal.0)(why),
        }
        Ok(())
    }
}
