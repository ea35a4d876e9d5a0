//! The warden's thread that starts commands. With a sandbox, only this thread is behind Landlock and seccomp, and what it
//! starts inherits both; the warden's first thread stays outside, so that no command can signal it, and sees the process
//! table. This thread and what it starts have a lower CPU priority than that thread and the daemon.

use crate::broker::{self, Broker};
use crate::confinement::Confinement;
use crate::git_refusals::{GitRefusals, GitRefused};
use crate::{forwarder, landlocked, launch, namespaces, privileges, processes, syscalls};
use agentd_protocol::SandboxLevel;
use agentd_seccomp_notify::Listener;
use nix::unistd::gettid;
use rustix::fd::OwnedFd;
use rustix::process::{getpriority_process, setpriority_process};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How much nicer commands are than the daemon: however many run, it responds, and the warden can kill them.
const NICER: i32 = 5;
/// The highest nice value.
const NICEST: i32 = 19;

/// The prefix of errors that mean that the kernel does not pass calls on.
pub(crate) const NO_BROKER: &str = "seccomp user notification is not available";

/// A command to start.
pub(crate) struct Job {
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) descriptors: Vec<OwnedFd>,
    /// Whether the descriptors are a terminal.
    pub(crate) terminal: bool,
}

impl Job {
    /// Starts it from the calling thread.
    pub(crate) fn start(self) -> io::Result<u32> {
        if self.terminal {
            return launch::at_terminal(&self.argv, &self.cwd, self.env, self.descriptors);
        }
        launch::command(&self.argv, &self.cwd, self.env, self.descriptors)
    }
}

type Asked = (Job, SyncSender<io::Result<u32>>);

/// The thread. It runs as long as the process.
pub(crate) struct Spawner {
    jobs: SyncSender<Asked>,
    refused: GitRefused,
}

impl Spawner {
    /// Starts the thread without a sandbox.
    pub(crate) fn open() -> io::Result<Self> {
        let (jobs, queue) = sync_channel(1);
        thread().spawn(move || serve(&queue))?;
        let refused = GitRefused::default();
        Ok(Self { jobs, refused })
    }

    /// What git was refused since this was last asked.
    pub(crate) fn refused(&self) -> GitRefusals {
        self.refused.take()
    }

    /// Confines the process and starts the thread. Also returns the version of Landlock in use.
    /// No command may signal the thread `spared`.
    pub(crate) fn start(
        walls: Confinement,
        workdir: PathBuf,
        network: bool,
        spared: Option<i32>,
    ) -> Result<(Self, u32), String> {
        privileges::drop_all()?;
        if network {
            forwarder::start().map_err(|error| format!("cannot set up the network: {error}"))?;
        }
        let (jobs, queue) = sync_channel(1);
        let (ready, confined) = sync_channel(1);
        let protected = walls.broker.then(|| walls.protected.clone());
        let refused = GitRefused::default();
        let noted = refused.clone();
        let begin = move || match protected {
            Some(protected) => {
                let done = Broker::prepare(&walls, &workdir, network, protected);
                let done = done.and_then(|broker| {
                    brokered(broker.noting(noted), walls, workdir, network, (spared, queue))
                });
                match done {
                    Ok((abi, mut broker, listener)) => {
                        if ready.send(Ok(abi)).is_ok() {
                            broker.serve(listener);
                        }
                    }
                    // The requester waits for this.
                    Err(message) => drop(ready.send(Err(message))),
                }
            }
            None => {
                let done = confine(&walls, &workdir, network, spared.into_iter().collect());
                let good = done.is_ok();
                if ready.send(done).is_ok() && good {
                    serve(&queue);
                }
            }
        };
        thread()
            .spawn(begin)
            .map_err(|error| format!("cannot start the thread that starts commands: {error}"))?;
        let abi = confined
            .recv()
            .map_err(|_| "the thread that starts commands has ended".to_owned())??;
        Ok((Self { jobs, refused }, abi))
    }

    /// Starts a command, inside the sandbox if there is one.
    pub(crate) fn launch(&self, job: Job) -> io::Result<u32> {
        let gone = || io::Error::other("the thread that starts commands has ended");
        let (answer, started) = sync_channel(1);
        self.jobs.send((job, answer)).map_err(|_| gone())?;
        started.recv().map_err(|_| gone())?
    }
}

/// Starts the thread that starts commands below the broker's thread, so that the broker may inspect its processes. Also
/// returns the broker's listener.
fn brokered(
    broker: Broker,
    walls: Confinement,
    workdir: PathBuf,
    network: bool,
    (spared, queue): (Option<i32>, Receiver<Asked>),
) -> Result<(u32, Broker, Listener), String> {
    let (ready, confined) = sync_channel(1);
    let broker_thread = gettid().as_raw();
    let others = spared.into_iter().chain([broker_thread]).collect();
    let begin = move || {
        let listened = |abi| {
            let listener = broker::listen(walls.level);
            listener
                .map(|listener| (abi, listener))
                .map_err(|error| no_listener(&error))
        };
        let done = confine(&walls, &workdir, network, others).and_then(listened);
        let good = done.is_ok();
        if ready.send(done).is_ok() && good {
            serve(&queue);
        }
    };
    thread()
        .spawn(begin)
        .map_err(|error| format!("cannot start the thread that starts commands: {error}"))?;
    let gone = |_| "the thread that starts commands has ended".to_owned();
    let (abi, listener) = confined.recv().map_err(gone)??;
    broker.begin()?;
    Ok((abi, broker, listener))
}

fn no_listener(error: &io::Error) -> String {
    format!("{NO_BROKER}: {error}")
}

/// Confines the calling thread. `others` are threads of this process that no command may signal.
fn confine(walls: &Confinement, workdir: &Path, network: bool, others: Vec<i32>) -> Result<u32, String> {
    // If that cannot be determined, it counts as shared.
    let own_network = match (namespaces::network(), walls.network_outside) {
        (Some(inside), Some(outside)) => inside != outside,
        _ => false,
    };
    let abi = landlocked::restrict(walls, workdir, network)?;
    // This thread has the same sandbox as its commands, so only the check of its number protects it from them. Its parent
    // is the fork server, whose parent is the daemon.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    let above = parent
        .and_then(processes::read)
        .map(|fork_server| fork_server.parent);
    let own = [gettid().as_raw(), nix::unistd::getpid().as_raw()];
    let spared: Vec<i32> = own
        .into_iter()
        .chain(others)
        .chain(parent)
        .chain(above.filter(|pid| *pid > 1))
        .collect();
    let isolated = walls.level == SandboxLevel::Isolated;
    let allowed = syscalls::Sockets {
        unix: isolated && walls.broker,
        network,
        interfaces: isolated && own_network,
    };
    syscalls::restrict(walls.level, allowed, &spared)?;
    Ok(abi)
}

fn thread() -> std::thread::Builder {
    std::thread::Builder::new().name("spawner".to_owned())
}

/// Lowers the priority of the calling thread and of everything that it starts from now on. On failure, all are equal.
fn stand_behind() {
    // In Linux each thread has its own priority.
    if let Ok(own) = getpriority_process(None) {
        let _ = setpriority_process(None, own.saturating_add(NICER).min(NICEST));
    }
}

/// The same for the whole session among the sessions, which is what counts where the kernel groups processes by session.
pub(crate) fn session_stands_behind() {
    // The file is missing on other kernels.
    let _ = std::fs::write("/proc/self/autogroup", NICER.to_string());
}

fn serve(queue: &Receiver<Asked>) {
    stand_behind();
    while let Ok((job, answer)) = queue.recv() {
        // The requester waits for this.
        let _ = answer.send(job.start());
    }
}
