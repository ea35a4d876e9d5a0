//! The actor that admits tool calls.

use crate::conceal;
use crate::permits::Permits;
use crate::run::LOOK_WITHIN;
use crate::wardens::Wardens;
use agentd_actor_kit::{CallDetail, Contents, Done, Held, Lent, ToolMsg, ToolPermit};
use agentd_file_work::{FileWork, Turns, file_system};
use agentd_protected::ProtectedPaths;
use agentd_sandbox::{Bounds, Environment, Network, Sandboxing};
use agentd_tools::{Beneath, Prepared, Search, TagFinders, ToolLimits};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The interval between checks for idle wardens.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// How long the executor waits for processes to end when it stops.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// The most details to compute at the same time for sessions on one file system.
const DETAILS: usize = 16;

/// The arguments of the tool executor.
#[derive(Debug, Clone)]
pub struct ExecutorArgs {
    /// The daemon's own program, which is also the process warden.
    pub exe: PathBuf,
    /// The environment of commands.
    pub environment: Environment,
    /// The sandbox of commands.
    pub sandboxing: Sandboxing,
    /// Resource limits for the commands of one session.
    pub bounds: Bounds,
    /// The network available to commands, if any.
    pub network: Option<Network>,
    /// Where output that is too long for a result is spilled temporarily.
    pub spill_dir: PathBuf,
    /// Where maps of source trees are stored.
    pub map_dir: PathBuf,
    /// The indexes of working directories, if there are any.
    pub search: Option<Arc<dyn Search>>,
    /// What parses source files, if there is anything.
    pub parsers: Option<Arc<dyn TagFinders>>,
    /// Which paths of a working directory are protected.
    pub protected: ProtectedPaths,
    /// Limits, including how many calls run at the same time.
    pub tools: ToolLimits,
}

/// Admits the tool calls of all sessions and keeps their process wardens.
#[derive(Debug)]
pub struct ToolExecutor;

/// The state of a tool executor.
#[derive(Debug)]
pub struct ExecutorState {
    permits: Permits<Waiter>,
    wardens: Wardens,
    limits: Arc<ToolLimits>,
    spill_dir: PathBuf,
    map_dir: PathBuf,
    search: Option<Arc<dyn Search>>,
    parsers: Option<Arc<dyn TagFinders>>,
    environment: Arc<Environment>,
    protected: Arc<ProtectedPaths>,
    details: Arc<Turns>,
    sweeping: bool,
}

/// A call that waits for a permit.
#[derive(Debug)]
struct Waiter {
    held: Held,
    workdir: PathBuf,
    done: Done<ToolPermit>,
}

impl ToolExecutor {
    /// Starts the executor, linked to `supervisor`.
    ///
    /// # Errors
    /// The supervisor is shutting down.
    pub async fn start(args: ExecutorArgs, supervisor: ActorCell) -> Result<ActorRef<ToolMsg>, SpawnErr> {
        Actor::spawn_linked(None, Self, args, supervisor)
            .await
            .map(|(actor, _)| actor)
    }
}

impl Actor for ToolExecutor {
    type Msg = ToolMsg;
    type State = ExecutorState;
    type Arguments = ExecutorArgs;

    async fn pre_start(
        &self,
        _: ActorRef<ToolMsg>,
        args: ExecutorArgs,
    ) -> Result<ExecutorState, ActorProcessingErr> {
        Ok(ExecutorState {
            permits: Permits::new(args.tools.max_running),
            environment: Arc::new(args.environment.clone()),
            wardens: Wardens::new(
                args.exe,
                args.environment,
                args.sandboxing,
                (args.bounds, args.network),
            ),
            protected: Arc::new(args.protected),
            limits: Arc::new(args.tools),
            spill_dir: args.spill_dir,
            map_dir: args.map_dir,
            search: args.search,
            parsers: args.parsers,
            details: Arc::new(Turns::new(DETAILS)),
            sweeping: false,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ToolMsg>,
        message: ToolMsg,
        state: &mut ExecutorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ToolMsg::Acquire {
                session,
                class,
                workdir,
                done,
            } => {
                // When too many wait, dropping the waiter reports that to the caller.
                let held = Held {
                    session,
                    class,
                    file_system: file_system(&workdir),
                };
                let call = held.clone();
                drop(state.permits.line_up(&call, Waiter { held, workdir, done }));
            }
            ToolMsg::Release { held } => {
                state.permits.release(&held);
                state.wardens.give_back(held.session);
            }
            ToolMsg::Detail {
                prepared,
                workdir,
                done,
            } => state.detail(*prepared, workdir, done),
            ToolMsg::Contents {
                prepared,
                workdir,
                done,
            } => state.contents(*prepared, workdir, done),
            ToolMsg::SessionEnded { session } => state.wardens.end(session),
            ToolMsg::Load { done } => done.answer(state.permits.load()),
            ToolMsg::Sweep => state.sweeping = false,
        }
        state.admit(&myself);
        state.sweep(&myself);
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<ToolMsg>,
        state: &mut ExecutorState,
    ) -> Result<(), ActorProcessingErr> {
        state.wardens.end_all(STOP_WITHIN).await;
        Ok(())
    }
}

impl ExecutorState {
    fn admit(&mut self, myself: &ActorRef<ToolMsg>) {
        while let Some(waiter) = self.permits.admit() {
            let warden = self.wardens.lend(waiter.held.session, &waiter.workdir);
            let lent = Lent {
                warden,
                limits: Arc::clone(&self.limits),
                spill_dir: self.spill_dir.clone(),
                map_dir: self.map_dir.clone(),
                search: self.search.clone(),
                parsers: self.parsers.clone(),
                environment: Arc::clone(&self.environment),
                protected: Arc::clone(&self.protected),
            };
            // If the caller stopped waiting, dropping the permit returns it.
            waiter
                .done
                .answer(ToolPermit::new(myself.clone(), waiter.held, lent));
        }
    }

    /// Keeps one timer while there are wardens to check. The timer ends with the actor, as do the wardens.
    fn sweep(&mut self, myself: &ActorRef<ToolMsg>) {
        if !self.sweeping && self.wardens.sweep() {
            self.sweeping = true;
            drop(myself.send_after(SWEEP_EVERY, || ToolMsg::Sweep));
        }
    }

    fn contents(&self, prepared: Prepared, workdir: PathBuf, done: Done<Contents>) {
        let (details, environment) = (Arc::clone(&self.details), Arc::clone(&self.environment));
        tokio::spawn(async move {
            let Ok(_turn) = details.on(&workdir).await else {
                return;
            };
            let (files, dir) = (FileWork::of_directory(&workdir), workdir.clone());
            let read = files.run(&dir, LOOK_WITHIN, move || {
                let beneath = Beneath::open(&workdir).map_err(|error| error.to_string())?;
                prepared.within(beneath.path()).contents(&beneath, &environment)
            });
            done.answer(read.await.unwrap_or_else(|error| Err(error.to_string())));
        });
    }

    fn detail(&self, prepared: Prepared, workdir: PathBuf, done: Done<CallDetail>) {
        let (details, environment) = (Arc::clone(&self.details), Arc::clone(&self.environment));
        let watch = self.limits.max_watched.try_into().unwrap_or(usize::MAX);
        tokio::spawn(async move {
            let Ok(_turn) = details.on(&workdir).await else {
                return;
            };
            let (files, dir) = (FileWork::of_directory(&workdir), workdir.clone());
            let made = files.run(&dir, LOOK_WITHIN, move || {
                let beneath = Beneath::open(&workdir).map_err(|error| error.to_string())?;
                let prepared = prepared.within(beneath.path());
                let binding = prepared.binding(&beneath, &environment, watch);
                Ok::<_, String>(match prepared.detail(&beneath) {
                    Ok(detail) => (detail, binding),
                    Err(why) => (prepared.title, Err(why)),
                })
            });
            match made.await {
                Ok(Ok((detail, binding))) => done.answer(CallDetail {
                    text: conceal::text(detail),
                    binding,
                }),
                Ok(Err(error)) => done.answer(CallDetail {
                    text: format!("In the current state, this call fails: {error}"),
                    binding: Err(error),
                }),
                // Dropping `done` tells the caller that there is no detail.
                Err(error) => tracing::error!(%error, "could not prepare the details of a call"),
            }
        });
    }
}
