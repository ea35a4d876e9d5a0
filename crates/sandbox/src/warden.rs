//! The daemon's side of a warden.

use crate::bounds::Exceeded;
use crate::confinement::Confinement;
use crate::deadline;
use crate::environment::Environment;
use crate::error::SandboxError;
use crate::frame::{self, Report, Request};
use crate::keeper;
use crate::messages::{Outgoing, read_reports, write_requests};
use crate::piped::output_pipe;
use crate::running::{Exit, Running};
use crate::slot::WardenSpec;
use crate::surroundings::with_git;
use agentd_protocol::SandboxLevel;
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

/// The capacity of a warden's message queue; every running command reserves one place for its kill.
const QUEUE: usize = 128;
/// The deadline for the start of a command.
const START_WITHIN: Duration = Duration::from_secs(10);

/// A command to run under a warden. Its stdout and stderr are one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its variables in addition to the session's environment.
    pub env: Vec<(String, String)>,
}

/// The kind of a command's descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdio {
    /// Pipes; with only two, stdin is empty.
    Pipes,
    /// A terminal of its own.
    Terminal,
}

/// Why a command was not started: the error number and a message.
type Refused = (Option<i32>, String);

/// The waiters for news of one command.
#[derive(Debug)]
struct Waiting {
    started: Option<oneshot::Sender<Result<u32, Refused>>>,
    exited: oneshot::Sender<Exit>,
}

/// The commands of one warden, shared with the task that reads its reports.
#[derive(Debug)]
pub(crate) struct Commands {
    /// `None` after the warden is gone.
    waiting: Mutex<Option<HashMap<u64, Waiting>>>,
    last_end: Mutex<Instant>,
    /// A bound that an earlier command's leftovers exceeded: the next command's result reports it.
    untold: Mutex<Option<Exceeded>>,
    /// The waiter for the sandbox.
    walls: Mutex<Option<oneshot::Sender<Result<u32, String>>>>,
}

/// A resident warden process. Dropping it kills everything that runs under it (I5).
#[derive(Debug)]
pub struct Warden {
    commands: Arc<Commands>,
    outgoing: mpsc::Sender<Outgoing>,
    next: AtomicU64,
    closing: watch::Sender<bool>,
    gone: watch::Receiver<bool>,
    denied_history: Arc<[PathBuf]>,
}

impl Warden {
    /// Starts a warden in the session's working directory.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub async fn spawn(spec: &WardenSpec) -> Result<Self, SandboxError> {
        let (walls, _) = oneshot::channel();
        Self::process(spec, None, walls).await
    }

    /// Starts a warden whose commands are confined. Also returns the version of Landlock in use.
    ///
    /// # Errors
    /// When the process cannot be started or the sandbox cannot be built; nothing has run then.
    pub async fn spawn_confined(spec: &WardenSpec, walls: &Confinement) -> Result<(Self, u32), SandboxError> {
        let (stand, standing) = oneshot::channel();
        let walls = with_git(spec, walls.clone()).await?;
        let warden = Self::process(spec, Some(&walls), stand).await?;
        let request = Request::Confine {
            walls: Box::new(walls),
            workdir: spec.workdir.clone(),
            network: spec.network.is_some(),
        };
        let message = Outgoing::plain(frame::encode(&request)?);
        let gone = |_| SandboxError::WardenGone;
        warden
            .outgoing
            .send(message)
            .await
            .map_err(|_| SandboxError::WardenGone)?;
        let abi = timeout(START_WITHIN, standing)
            .await
            .map_err(|_| SandboxError::WardenSlow { within_ms: 10_000 })?
            .map_err(gone)?
            .map_err(SandboxError::no_walls)?;
        Ok((warden, abi))
    }

    async fn process(
        spec: &WardenSpec,
        walls: Option<&Confinement>,
        standing: oneshot::Sender<Result<u32, String>>,
    ) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::WardenStart {
            exe: spec.exe.clone(),
            source,
        };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let stream = Arc::new(UnixStream::from_std(ours).map_err(failed)?);
        let commands = Arc::new(Commands {
            waiting: Mutex::new(Some(HashMap::new())),
            last_end: Mutex::new(Instant::now()),
            untold: Mutex::new(None),
            walls: Mutex::new(Some(standing)),
        });
        let (closing, closed) = watch::channel(false);
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let (ended_tx, ended) = oneshot::channel();
        let (environment, gone) = keeper::start(spec, walls, theirs.into(), closed.clone(), ended).await?;
        tokio::spawn(write_requests(Arc::clone(&stream), queue, closed));
        tokio::spawn(read_reports(stream, Arc::clone(&commands), ended_tx));
        // The queue is empty, so there is room.
        let bind = bind(spec, walls, &environment);
        let bind = outgoing.try_send(Outgoing {
            bytes: frame::encode(&bind)?,
            descriptors: deadline()?,
        });
        bind.map_err(|_| SandboxError::WardenGone)?;
        Ok(Self {
            commands,
            outgoing,
            next: AtomicU64::new(1),
            closing,
            gone,
            denied_history: walls
                .map_or_else(Arc::default, |walls| walls.history.repositories.as_slice().into()),
        })
    }

    /// Starts a command. Dropping the [`Running`] kills it.
    ///
    /// # Errors
    /// When it cannot be started, or the warden is gone or hangs.
    pub async fn run(&self, command: CommandSpec) -> Result<Running, SandboxError> {
        let (output, stdout, stderr) = output_pipe()?;
        self.start(command, output, vec![stdout, stderr], Stdio::Pipes)
            .await
    }

    /// Starts a command with its descriptors (stdout, stderr, stdin); `output` is the end that the daemon reads.
    pub(crate) async fn start(
        &self,
        command: CommandSpec,
        output: pipe::Receiver,
        descriptors: Vec<OwnedFd>,
        stdio: Stdio,
    ) -> Result<Running, SandboxError> {
        let slow = |_| SandboxError::WardenSlow { within_ms: 10_000 };
        let program = command.argv.first().cloned().unwrap_or_default();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let env = with_pwd(command.env, &command.cwd);
        let bytes = frame::encode(&Request::Run {
            id,
            argv: command.argv,
            cwd: command.cwd,
            env,
            terminal: stdio == Stdio::Terminal,
        })?;
        let gone = |_| SandboxError::WardenGone;
        let kill = timeout(START_WITHIN, self.outgoing.clone().reserve_owned())
            .await
            .map_err(slow)?
            .map_err(gone)?;
        let (started_tx, started) = oneshot::channel();
        let (exited_tx, exited) = oneshot::channel();
        self.commands.expect(
            id,
            Waiting {
                started: Some(started_tx),
                exited: exited_tx,
            },
        )?;
        // From here on, dropping the future kills the command: the request goes out before the kill, or not at all.
        let mut running = Running::new(id, output, exited, kill, Arc::clone(&self.denied_history));
        let message = Outgoing { bytes, descriptors };
        timeout(START_WITHIN, self.outgoing.send(message))
            .await
            .map_err(slow)?
            .map_err(|_| SandboxError::WardenGone)?;
        match timeout(START_WITHIN, started)
            .await
            .map_err(slow)?
            .map_err(|_| SandboxError::WardenGone)?
        {
            Ok(pid) => {
                running.started(pid);
                Ok(running)
            }
            Err((errno, message)) => {
                running.forget();
                Err(SandboxError::CommandStart {
                    program,
                    errno,
                    message,
                })
            }
        }
    }

    /// Whether the warden can run commands.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !*self.closing.borrow() && self.commands.lock().is_some()
    }

    /// When the warden became idle; `None` while a command runs.
    #[must_use]
    pub fn idle_for(&self) -> Option<Duration> {
        let running = self
            .commands
            .lock()
            .as_ref()
            .is_some_and(|waiting| !waiting.is_empty());
        let last = *self
            .commands
            .last_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (!running).then(|| last.elapsed())
    }

    /// Ends the warden and everything under it, and waits at most `within` for that. Returns whether it is done.
    pub async fn close(&self, within: Duration) -> bool {
        self.closing.send_replace(true);
        let mut gone = self.gone.clone();
        matches!(timeout(within, gone.wait_for(|gone| *gone)).await, Ok(Ok(_)))
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

impl Commands {
    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn untold(&self) -> MutexGuard<'_, Option<Exceeded>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self, id: u64, waiting: Waiting) -> Result<(), SandboxError> {
        self.lock()
            .as_mut()
            .ok_or(SandboxError::WardenGone)?
            .insert(id, waiting);
        Ok(())
    }

    /// The warden is gone: fails all waiters.
    pub(crate) fn gone(&self) {
        *self.lock() = None;
        drop(self.walls.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn stand(&self, walls: Result<u32, String>) {
        let waiting = self.walls.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            let _ = waiting.send(walls);
        }
    }

    pub(crate) fn learn(&self, report: Report) {
        let mut guard = self.lock();
        let Some(waiting) = guard.as_mut() else { return };
        match report {
            Report::Confined { landlock_abi } => self.stand(Ok(landlock_abi)),
            Report::NotConfined { message } => self.stand(Err(message)),
            Report::Started { id, pid } => {
                if let Some(started) = waiting.get_mut(&id).and_then(|waiting| waiting.started.take()) {
                    let _ = started.send(Ok(pid));
                }
            }
            Report::Refused { id, errno, message } => {
                if let Some(started) = waiting.remove(&id).and_then(|waiting| waiting.started) {
                    let _ = started.send(Err((errno, message)));
                }
            }
            Report::Ended => {}
            Report::Exceeded { exceeded } => *self.untold() = Some(exceeded),
            Report::Exited {
                id,
                code,
                signal,
                exceeded,
                refused,
            } => {
                if let Some(waiting) = waiting.remove(&id) {
                    let earlier = || {
                        self.untold().take().map(|found| Exceeded {
                            earlier: true,
                            ..found
                        })
                    };
                    let exceeded = exceeded.or_else(earlier);
                    let _ = waiting.exited.send(Exit {
                        code,
                        signal,
                        exceeded,
                        refused,
                    });
                }
                *self.last_end.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            }
        }
    }
}

/// What travels with the first message: the timer at whose end the warden kills its commands, if this node has a lease.
fn deadline() -> Result<Vec<OwnedFd>, SandboxError> {
    let timer = deadline::for_a_warden().map(|timer| timer.try_clone_to_owned());
    let timer = timer
        .transpose()
        .map_err(|error| SandboxError::Message(error.to_string()))?;
    Ok(timer.into_iter().collect())
}

/// The first message to a warden.
fn bind(spec: &WardenSpec, walls: Option<&Confinement>, environment: &Environment) -> Request {
    let temp = walls.map(|walls| walls.temp_inside().to_owned());
    let own = walls.filter(|walls| walls.level == SandboxLevel::Isolated);
    Request::Bind {
        bounds: spec.bounds,
        places: std::iter::once(spec.workdir.clone()).chain(temp).collect(),
        shared: own.map(|_| PathBuf::from("/dev/shm")),
        environment: environment
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    }
}

fn with_pwd(mut env: Vec<(String, String)>, cwd: &std::path::Path) -> Vec<(String, String)> {
    if let Some(cwd) = cwd.to_str() {
        env.push(("PWD".to_owned(), cwd.to_owned()));
    }
    env
}
