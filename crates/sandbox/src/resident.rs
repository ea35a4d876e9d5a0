//! The warden's side: one thread, and a (confined) one that starts commands; no runtime; parent or subreaper of all.

mod oversight;

use crate::attempt;
use crate::bounds::{Bounds, Exceeded};
use crate::confinement::Confinement;
use crate::controlling;
use crate::descent::Descent;
use crate::entry;
use crate::error::SandboxError;
use crate::family::Family;
use crate::fork_server::{self, Part};
use crate::frame::{self, Report, Request};
use crate::lapse::Lapse;
use crate::launch;
use crate::passing::receive;
use crate::privileges;
use crate::processes::{self, below, next_dead, signal, table};
use crate::recheck::Recheck;
use crate::spawner::{self, Job, Spawner};
use crate::watch::Watch;
use nix::sys::signalfd::SignalFd;
use oversight::file_too_large;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Signal, getpid, set_child_subreaper, setsid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The first argument that makes the program a warden.
pub const WARDEN_ARG: &str = "__warden";

/// How long a command has to exit after TERM.
const GRACE: Duration = Duration::from_millis(500);
const _: () = assert!(
    GRACE.as_millis() <= 500,
    "a cancelled command is gone within a second"
);
/// The minimum and maximum interval between checks for processes that were killed and are not gone yet.
const AGAIN: Duration = Duration::from_millis(10);
const AGAIN_AT_MOST: Duration = Duration::from_secs(2);
/// After this time the warden exits without waiting for killed processes that hang in the kernel.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Why no command starts after the deadline.
const OVER: &str = "this node lost its lease, and other nodes may take over its sessions";

/// The exit code of a warden that failed to start (`EX_SOFTWARE`).
pub(crate) const FAILED: u8 = 70;

/// The commands' `oom_score_adj`: the kernel kills them before any process that did not set its own.
const FIRST_TO_GO: &str = "800";

/// Runs the warden: call this when the program's first argument is [`WARDEN_ARG`], before starting any runtime or thread.
/// Standard input is the socket to the daemon. Returns when the socket is closed and no descendant is left.
#[must_use]
pub fn warden_main() -> ExitCode {
    if let Some(code) = attempt::asked().or_else(controlling::asked).or_else(entry::asked) {
        return code;
    }
    let warden = match fork_server::asked() {
        None | Some(Ok(Part::Warden)) => Resident::start(),
        Some(Ok(Part::Over)) => return ExitCode::SUCCESS,
        Some(Err(_)) => return FAILED.into(),
    };
    match warden {
        Ok(resident) => {
            resident.serve();
            ExitCode::SUCCESS
        }
        Err(_) => FAILED.into(),
    }
}

/// A command that got its signal to end.
struct Ending {
    family: Family,
    due: Instant,
    recheck: Recheck,
}

struct Resident {
    own: i32,
    descent: Descent,
    socket: File,
    signals: SignalFd,
    /// The environment of every command.
    environment: Vec<(String, String)>,
    running: BTreeMap<u64, Family>,
    /// Running commands by the pid of their leader.
    leaders: BTreeMap<i32, u64>,
    ending: Vec<Ending>,
    /// The thread that starts commands: created with the sandbox, or without one for the first command.
    spawner: Option<Spawner>,
    watch: Watch,
    /// Commands that were killed for their resource usage.
    exceeded: BTreeMap<u64, Exceeded>,
    /// When everything ends, if the node has a lease.
    lapse: Option<Lapse>,
}

impl Resident {
    fn start() -> Result<Self, std::io::Error> {
        launch::close_inherited();
        // A session of its own: no terminal to read from, and no signals of the daemon's terminal.
        let _ = setsid();
        spawner::session_stands_behind();
        set_child_subreaper(Some(getpid()))?;
        let signals = launch::take_signals()?;
        let socket = File::from(rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)?);
        let own = getpid().as_raw_nonzero().get();
        Ok(Self {
            own,
            descent: Descent { own },
            socket,
            signals,
            environment: Vec::new(),
            running: BTreeMap::new(),
            leaders: BTreeMap::new(),
            ending: Vec::new(),
            spawner: None,
            watch: Watch::new(Bounds::default(), Vec::new(), None),
            exceeded: BTreeMap::new(),
            lapse: None,
        })
    }

    fn serve(mut self) {
        while self.turn().is_ok() {}
        self.end();
        // Ignores a failure: the daemon is gone.
        let _ = self.say(&Report::Ended);
    }

    /// Waits for events and handles them. An error means that the daemon is gone.
    fn turn(&mut self) -> Result<(), SandboxError> {
        let ending = self.ending.iter().map(|ending| ending.due).min();
        let due = ending.into_iter().chain(self.watch.due()).min();
        let readable = self.wait_until(due, true);
        self.reap()?;
        self.escalate();
        self.look_out()?;
        if readable {
            let (request, descriptors) = receive(&self.socket)?;
            self.obey(request, descriptors)?;
        }
        Ok(())
    }

    /// Waits for an event or the deadline; returns whether the daemon sent something.
    fn wait_until(&self, due: Option<Instant>, listen: bool) -> bool {
        let timeout = due.map(|due| {
            let left = due.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(60),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if listen {
            fds.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return false;
        }
        let readable = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        self.forget_signals();
        readable
    }

    fn forget_signals(&self) {
        while matches!(self.signals.read_signal(), Ok(Some(_))) {}
    }

    /// Reaps everything that exited: commands, which it reports, and orphans.
    fn reap(&mut self) -> Result<(), SandboxError> {
        while let Some((pid, status)) = next_dead() {
            let lapsed = self.lapse.as_ref().is_some_and(|lapse| lapse.killed(pid));
            if let Some(id) = self.leaders.remove(&pid) {
                self.running.remove(&id);
                let (code, signal) = (status.exit_status(), status.terminating_signal());
                let exceeded = self.exceeded.remove(&id);
                let exceeded = exceeded.or(lapsed.then_some(Exceeded::LEASE));
                let exceeded = exceeded.or_else(|| file_too_large(code, signal, self.watch.bounds()));
                let refused = self.spawner.as_ref().map(Spawner::refused);
                self.say(&Report::Exited {
                    id,
                    code,
                    signal,
                    exceeded,
                    refused: refused.unwrap_or_default(),
                })?;
            }
        }
        Ok(())
    }

    fn obey(&mut self, request: Request, descriptors: Vec<OwnedFd>) -> Result<(), SandboxError> {
        match request {
            Request::Bind {
                bounds,
                places,
                shared,
                environment,
            } => {
                self.environment = environment;
                self.obey_deadline(descriptors)?;
                self.watch = Watch::new(bounds, places, shared);
                // The first to be killed when the machine runs out of memory. If this cannot be set, all are equal.
                let _ = std::fs::write("/proc/self/oom_score_adj", FIRST_TO_GO);
                privileges::bind(bounds).map_err(|errno| SandboxError::no_walls(format!("limits: {errno}")))
            }
            Request::Confine {
                walls,
                workdir,
                network,
            } => self.confine(*walls, workdir, network),
            Request::Run {
                id,
                argv,
                cwd,
                env,
                terminal,
            } => {
                self.forget_signals();
                let job = Job {
                    argv,
                    cwd,
                    env: self.environment.iter().cloned().chain(env).collect(),
                    terminal,
                    descriptors,
                };
                let report = match self.launch(job) {
                    Ok(pid) => self.started(id, pid),
                    Err(error) => Report::Refused {
                        id,
                        errno: error.raw_os_error(),
                        message: error.to_string(),
                    },
                };
                self.say(&report)?;
                self.end_what_came_late()?;
                // Processes that exited while the mask was open raised no signal.
                self.reap()
            }
            Request::Kill { id, now } => {
                self.kill(id, now);
                Ok(())
            }
        }
    }

    fn launch(&mut self, job: Job) -> std::io::Result<u32> {
        if self.is_over() {
            return Err(std::io::Error::other(OVER));
        }
        match &self.spawner {
            Some(spawner) => spawner.launch(job),
            None => self.spawner.insert(Spawner::open()?).launch(job),
        }
    }

    /// A warden that cannot build its sandbox exits, so that it never runs a command without one (I7).
    fn confine(&mut self, walls: Confinement, workdir: PathBuf, network: bool) -> Result<(), SandboxError> {
        match Spawner::start(
            walls,
            workdir,
            network,
            self.lapse.as_ref().map(|lapse| lapse.thread),
        ) {
            Ok((spawner, landlock_abi)) => {
                self.spawner = Some(spawner);
                self.say(&Report::Confined { landlock_abi })
            }
            Err(message) => {
                self.say(&Report::NotConfined {
                    message: message.clone(),
                })?;
                Err(SandboxError::no_walls(message))
            }
        }
    }

    fn started(&mut self, id: u64, pid: u32) -> Report {
        let raw = i32::try_from(pid).unwrap_or_default();
        // The child was not reaped yet, so it is in the table even if it exited already.
        match processes::read(raw) {
            Some(process) => {
                self.running.insert(id, Family::of(process));
                self.leaders.insert(raw, id);
                self.watch.wake();
                Report::Started { id, pid }
            }
            None => {
                signal(raw, Signal::KILL);
                Report::Refused {
                    id,
                    errno: None,
                    message: "cannot read /proc".to_owned(),
                }
            }
        }
    }

    fn kill(&mut self, id: u64, now: bool) {
        let Some(mut family) = self.running.get(&id).cloned() else {
            return;
        };
        if !now {
            for pid in family.living(&table(), self.own, &self.others(Some(id))) {
                signal(pid, Signal::TERM);
                // A stopped process handles TERM only after it continues.
                signal(pid, Signal::CONT);
            }
        }
        let due = if now {
            Instant::now()
        } else {
            Instant::now() + GRACE
        };
        self.running.insert(id, family.clone());
        self.ending.push(Ending {
            family,
            due,
            recheck: Recheck::new(AGAIN, AGAIN_AT_MOST),
        });
        self.escalate();
    }

    /// Leaders of the running commands except `id` and those that got their signal to end.
    fn others(&self, id: Option<u64>) -> BTreeSet<i32> {
        self.leaders
            .iter()
            .filter(|(_, other)| Some(**other) != id)
            .map(|(pid, _)| *pid)
            .collect()
    }

    /// Kills commands that ignored their signal to end, until nothing of them is left.
    fn escalate(&mut self) {
        let now = Instant::now();
        if self.ending.iter().all(|ending| ending.due > now) {
            return;
        }
        let (below, mut whole) = (below(self.own), None);
        let mut ending = std::mem::take(&mut self.ending);
        ending.retain_mut(|ending| {
            if ending.due > now {
                return true;
            }
            let mut others = self.others(None);
            others.retain(|leader| !ending.family.is_led_by(*leader));
            let mut living = ending.family.living(&below, self.own, &others);
            if living.is_empty() {
                // Only the whole table proves that nothing is left.
                let whole = whole.get_or_insert_with(table);
                living = ending.family.living(whole, self.own, &others);
            }
            for pid in &living {
                signal(*pid, Signal::KILL);
            }
            let gone = living.is_empty();
            ending.due = now + ending.recheck.pause(living);
            !gone
        });
        self.ending = ending;
    }

    fn say(&mut self, report: &Report) -> Result<(), SandboxError> {
        self.socket
            .write_all(&frame::encode(report)?)
            .map_err(|error| SandboxError::Message(error.to_string()))
    }
}
