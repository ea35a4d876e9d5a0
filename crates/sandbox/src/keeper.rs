//! The task that manages a warden process: starts it, waits for its exit, and cleans up after it.

use crate::beneath::Beneath;
use crate::bubble;
use crate::cgroup::Cgroup;
use crate::confinement::Confinement;
use crate::entry::ENTER_ARG;
use crate::environment::Environment;
use crate::error::SandboxError;
use crate::fork_server::Birth;
use crate::forker;
use crate::mark;
use crate::mark::kill_marked;
use crate::mounts::View;
use crate::network::{Opened, variables};
use crate::processes::beside;
use crate::resident::WARDEN_ARG;
use crate::slot::WardenSpec;
use crate::strays;
use crate::workdir::keep_apart;
use agentd_file_work::FileWork;
use agentd_protocol::SandboxLevel;
use agentd_protocol::sandbox::Builder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process, pidfd_send_signal};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

/// The deadline for the exit of a warden after its signal to end.
const END_WITHIN: Duration = Duration::from_secs(15);
/// The deadline for inspecting the working directory.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// Starts the process; the receiver turns true when it and all its descendants are gone. `ended` is the warden's last
/// report: whether it left nothing behind. Also returns the environment of its commands.
pub(crate) async fn start(
    spec: &WardenSpec,
    walls: Option<&Confinement>,
    socket: OwnedFd,
    closed: watch::Receiver<bool>,
    ended: oneshot::Receiver<bool>,
) -> Result<(Environment, watch::Receiver<bool>), SandboxError> {
    look(spec, walls).await?;
    let marker = mark::of_a_warden();
    let mut environment = environment(spec, walls, &marker);
    let network = network(spec, walls)?;
    if network.is_some() {
        for (name, value) in variables() {
            environment = environment.with(name, value);
        }
    }
    let cgroup = Cgroup::make(spec.bounds);
    let process = match process(spec, walls, &marker, socket, network.as_ref(), cgroup.as_ref()).await {
        Ok(process) => process,
        Err(error) => {
            if let Some(cgroup) = cgroup {
                let _ = beside(move || cgroup.end()).await;
            }
            return Err(error);
        }
    };
    let (gone_tx, gone) = watch::channel(false);
    tokio::spawn(async move {
        keep(process, closed, ended, format!("{}={marker}", mark::NAME)).await;
        drop(network);
        if let Some(cgroup) = cgroup {
            // It is empty by now, unless the warden itself was killed.
            let _ = beside(move || cgroup.end()).await;
        }
        gone_tx.send_replace(true);
    });
    Ok((environment, gone))
}

async fn process(
    spec: &WardenSpec,
    walls: Option<&Confinement>,
    marker: &str,
    socket: OwnedFd,
    network: Option<&Opened>,
    cgroup: Option<&Cgroup>,
) -> Result<Process, SandboxError> {
    let failed = |source| SandboxError::WardenStart {
        exe: spec.exe.clone(),
        source,
    };
    match walls {
        Some(walls) if needs_bubblewrap(walls) => {
            let view = view(spec, walls, network).await?;
            let mut command = isolated(spec, walls, &view, cgroup)?;
            // It enters the working directory on its own: a start that blocks there would block all others.
            command.env(mark::NAME, marker).current_dir("/").stdin(socket);
            let child = forker::spawn(command).await;
            child.map(Process::Spawned).map_err(failed)
        }
        Some(_) | None => {
            let view = match walls.filter(|walls| walls.level == SandboxLevel::Isolated) {
                Some(walls) => Some(view(spec, walls, network).await?),
                None => None,
            };
            let birth = Birth {
                workdir: spec.workdir.clone(),
                door: cgroup.map(Cgroup::door),
                view,
            };
            let forked = forker::fork(spec.exe.clone(), birth, socket).await;
            forked.map(Process::Forked).map_err(failed)
        }
    }
}

/// An isolated session's view of the file system. Reads the disk, so it must not run in the runtime.
async fn view(
    spec: &WardenSpec,
    walls: &Confinement,
    network: Option<&Opened>,
) -> Result<View, SandboxError> {
    let network = network.map(|network| network.dir().to_owned());
    let (workdir, walls) = (spec.workdir.clone(), walls.clone());
    let plan = move || View::plan(&workdir, &walls, network.as_deref());
    let planned = in_workdir(spec, plan).await;
    planned?.map_err(|error| SandboxError::no_walls(error.to_string()))
}

/// Runs code that inspects the working directory on a thread that may block.
pub(crate) async fn in_workdir<T: Send + 'static>(
    spec: &WardenSpec,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SandboxError> {
    let files = FileWork::of_directory(&spec.workdir);
    let done = files.run(&spec.workdir, LOOK_WITHIN, work).await;
    done.map_err(|failed| SandboxError::Workdir {
        path: spec.workdir.clone(),
        source: failed.into(),
    })
}

/// Creates the temporary directory, and checks the directories to confine.
async fn look(spec: &WardenSpec, walls: Option<&Confinement>) -> Result<(), SandboxError> {
    let walls = walls.map(|walls| (walls.temp.clone(), needs_bubblewrap(walls)));
    let (workdir, environment) = (spec.workdir.clone(), spec.environment.clone());
    let looked = in_workdir(spec, move || {
        // A missing directory and a missing program give the same error number; this tells them apart.
        if !std::fs::metadata(&workdir).is_ok_and(|found| found.is_dir()) {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(SandboxError::Workdir {
                path: workdir,
                source,
            });
        }
        let Some((temp, bubblewrap)) = walls else {
            return Ok(());
        };
        make_private(&temp).map_err(|source| SandboxError::Io {
            action: "make",
            path: temp.display().to_string(),
            source,
        })?;
        keep_apart(&workdir, &temp, "the daemon's directory")?;
        if bubblewrap && let Some(program) = bubble::find(&environment) {
            keep_apart(&workdir, &program, "the program")?;
        }
        Beneath::open(&workdir).map(drop)
    });
    looked.await?
}

/// The environment of the commands.
fn environment(spec: &WardenSpec, walls: Option<&Confinement>, marker: &str) -> Environment {
    let environment = spec.environment.clone().with(mark::NAME, marker);
    match walls {
        Some(walls) => {
            let environment = environment.with("TMPDIR", walls.temp_inside().to_string_lossy());
            match spec.network {
                Some(_) => environment,
                None => environment.without_network(),
            }
        }
        None => environment,
    }
}

fn needs_bubblewrap(walls: &Confinement) -> bool {
    walls.level == SandboxLevel::Isolated && walls.builder == Builder::Bubblewrap
}

/// Opens the requested network. Without namespaces a list of hosts would restrict nothing (I7).
fn network(spec: &WardenSpec, walls: Option<&Confinement>) -> Result<Option<Opened>, SandboxError> {
    match (&spec.network, walls) {
        (None, _) => Ok(None),
        (Some(network), Some(walls)) if walls.level == SandboxLevel::Isolated => {
            network.open(&walls.temp).map(Some)
        }
        (Some(_), _) => Err(SandboxError::no_walls("a list of hosts needs the level isolated")),
    }
}

pub(crate) fn make_private(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    if std::fs::symlink_metadata(dir)?.is_dir() {
        return Ok(());
    }
    Err(std::io::Error::other("it is a symbolic link"))
}

/// A warden inside bubblewrap, whose own environment is only the mark: commands can read it.
#[expect(clippy::disallowed_methods, reason = "this is where wardens are started")]
fn isolated(
    spec: &WardenSpec,
    walls: &Confinement,
    view: &View,
    cgroup: Option<&Cgroup>,
) -> Result<Command, SandboxError> {
    let start = |source| SandboxError::WardenStart {
        exe: spec.exe.clone(),
        source,
    };
    let bwrap = bubble::find(&spec.environment)
        .ok_or_else(|| SandboxError::no_walls("bubblewrap (`bwrap`) is not on the PATH of commands"))?;
    // The program as it runs here, whatever its path holds by now: an upgrade may have replaced it.
    let exe = open(&spec.exe, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| start(errno.into()))?;
    let plan = bubble::arguments(view, &walls.temp.with_extension("hidden")).map_err(start)?;
    let mut command = match cgroup {
        Some(cgroup) => {
            let mut command = Command::new(&spec.exe);
            command.arg(WARDEN_ARG).args(entering(cgroup)).arg(bwrap);
            command
        }
        None => Command::new(bwrap),
    };
    command
        .env_clear()
        .args(["--args", "1", "--", bubble::PROGRAM, WARDEN_ARG])
        .stdout(plan)
        .stderr(exe);
    Ok(command)
}

/// The arguments with which the program enters a cgroup first.
fn entering(cgroup: &Cgroup) -> [OsString; 2] {
    [ENTER_ARG.into(), cgroup.door().into()]
}

/// The process of a warden.
enum Process {
    /// Our child: bubblewrap around the warden.
    Spawned(Child),
    /// A child of the fork server: the descriptor of the process.
    Forked(OwnedFd),
}

impl Process {
    /// Sends a signal; ignores a process that is already gone.
    fn signal(&self, signal: Signal) {
        let _ = match self {
            Self::Spawned(child) => {
                let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
                pid.map_or(Ok(()), |pid| kill_process(pid, signal))
            }
            Self::Forked(process) => pidfd_send_signal(process, signal),
        };
    }

    /// Waits for the exit of the process itself, which is imminent once it has closed its socket.
    async fn over(self) {
        match self {
            Self::Spawned(mut child) => drop(timeout(END_WITHIN, child.wait()).await),
            Self::Forked(process) => {
                let limit = Timespec {
                    tv_sec: END_WITHIN.as_secs().cast_signed(),
                    tv_nsec: 0,
                };
                let waiting = move || poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit));
                let _ = beside(waiting).await;
            }
        }
    }
}

async fn keep(
    process: Process,
    mut closed: watch::Receiver<bool>,
    mut ended: oneshot::Receiver<bool>,
    marker: String,
) {
    let told = async { drop(closed.wait_for(|closed| *closed).await) };
    let last = tokio::select! {
        last = &mut ended => Some(last),
        () = told => {
            // A tool may have stopped its warden (SIGSTOP); it must run to be able to end.
            process.signal(Signal::CONT);
            timeout(END_WITHIN, ended).await.ok()
        }
    };
    if matches!(last, Some(Ok(true))) {
        process.over().await;
        return;
    }
    process.signal(Signal::KILL);
    process.over().await;
    // It did not exit on its own, so it did not clean up.
    strays::look();
    let _ = beside(move || kill_marked(|variable| variable == marker.as_bytes())).await;
}
