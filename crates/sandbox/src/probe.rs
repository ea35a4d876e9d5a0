//! Probes which levels work here: runs the real plan, and makes escape attempts from inside.

use crate::attempt::{ATTEMPT_ARG, HELD};
use crate::bounds::Bounds;
use crate::bubble;
use crate::cgroup::kernel_limits;
use crate::confinement::{Confinement, readable};
use crate::controlling::OWN_PROGRAM;
use crate::environment::Environment;
use crate::error::SandboxError;
use crate::resident::WARDEN_ARG;
use crate::running::Exit;
use crate::slot::WardenSpec;
use crate::warden::{CommandSpec, Warden};
use agentd_protected::{Places, ProtectedPaths};
use agentd_protocol::SandboxLevel;
use agentd_protocol::sandbox::{
    Builder, CHOICE_FILE, Choice, Finding, Findings, RECORD_FILE, Record, Refusal,
};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// How to fix a broker that does not work.
const BROKER_FIX: &str = "run agentd where seccomp user notification works: on Linux 5.19 or later, with \
                          kernel.yama.ptrace_scope at most 1, and not under a tool that has such a filter itself \
                          (some container runtimes)";
/// The deadline for the probe.
const WITHIN: Duration = Duration::from_secs(20);
/// The deadline for the exit of the probe's own warden.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// The input of the probe.
#[derive(Debug, Clone)]
pub struct ProbeSpec {
    /// The daemon's own program.
    pub exe: PathBuf,
    /// The environment of commands.
    pub environment: Environment,
    /// What commands may read in addition to the defaults.
    pub read: Vec<PathBuf>,
    /// The data directory.
    pub data_dir: PathBuf,
}

/// The findings at the start of this data directory's daemon.
#[must_use]
pub fn recorded(data_dir: &Path) -> Option<Findings> {
    read(data_dir).map(|record| record.findings)
}

fn read(data_dir: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(data_dir.join(RECORD_FILE)).ok()?).ok()
}

/// Records the level at which a daemon runs commands, or why it runs none, for later queries.
///
/// # Errors
/// When the data directory cannot be used.
pub fn note_choice(data_dir: &Path, choice: &Choice) -> io::Result<()> {
    fs::write(data_dir.join(CHOICE_FILE), serde_json::to_vec(choice)?)
}

/// Which levels work here. Probes once per boot of the machine and version of the program; then reads the data directory.
///
/// # Errors
/// When the data directory cannot be used.
pub async fn probe(spec: &ProbeSpec) -> Result<Findings, SandboxError> {
    let circumstances = circumstances(spec);
    if let Some(record) = read(&spec.data_dir).filter(|record| record.circumstances == circumstances) {
        return Ok(record.findings);
    }
    let dir = spec
        .data_dir
        .join("tmp")
        .join(format!("probe-{}", std::process::id()));
    let failed = |source: io::Error| SandboxError::Io {
        action: "prepare",
        path: dir.display().to_string(),
        source,
    };
    fs::create_dir_all(&dir).map_err(failed)?;
    let ((builder, isolated), confined) = tokio::join!(
        isolated(spec, &dir),
        level(spec, SandboxLevel::Confined, Builder::Warden, &dir)
    );
    // We created it, and it holds nothing of value.
    let _ = fs::remove_dir_all(&dir);
    let abi = |found: &Tried| found.abi.as_ref().ok().copied().unwrap_or(0);
    let lasts = isolated.lasts && confined.lasts;
    let findings = Findings {
        landlock_abi: abi(&confined).max(abi(&isolated)),
        broker: match confined.no_broker.or(isolated.no_broker) {
            None => Finding::Works,
            Some(message) => Finding::Missing(Refusal {
                message,
                fix: BROKER_FIX.to_owned(),
            }),
        },
        builder,
        isolated: finding(isolated.abi),
        confined: finding(confined.abi),
        root: rustix::process::geteuid().is_root(),
        kernel: kernel_limits(),
    };
    if !lasts {
        return Ok(findings);
    }
    let record = Record {
        circumstances,
        findings: findings.clone(),
    };
    let bytes = serde_json::to_vec_pretty(&record).map_err(|error| failed(error.into()))?;
    fs::write(spec.data_dir.join(RECORD_FILE), bytes).map_err(failed)?;
    Ok(findings)
}

fn finding(found: Result<u32, Refusal>) -> Finding {
    match found {
        Ok(_) => Finding::Works,
        Err(why) => Finding::Missing(why),
    }
}

/// The conditions that the findings depend on.
fn circumstances(spec: &ProbeSpec) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let program = fs::metadata(&spec.exe).map(|found| {
        use std::os::unix::fs::MetadataExt as _;
        (found.ino(), found.mtime(), found.size())
    });
    let bwrap = bubble::find(&spec.environment);
    let user = rustix::process::geteuid().as_raw();
    let kernel = kernel_limits();
    // The settings that an operator changes to allow user namespaces.
    let switches = [
        "user/max_user_namespaces",
        "kernel/apparmor_restrict_unprivileged_userns",
    ]
    .map(|name| fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default());
    let profiles = fs::metadata("/etc/apparmor.d")
        .and_then(|found| found.modified())
        .ok();
    format!(
        "{} {program:?} {bwrap:?} {user} {kernel:?} {:?} {switches:?} {profiles:?}",
        boot.trim(),
        spec.read
    )
}

/// What creates the namespaces, and the finding. Tries bubblewrap only where the warden cannot create them.
async fn isolated(spec: &ProbeSpec, dir: &Path) -> (Builder, Tried) {
    let own = level(spec, SandboxLevel::Isolated, Builder::Warden, dir).await;
    if own.abi.is_err() && bubble::find(&spec.environment).is_some() {
        let other = level(spec, SandboxLevel::Isolated, Builder::Bubblewrap, dir).await;
        if other.abi.is_ok() {
            let lasts = own.lasts && other.lasts;
            return (Builder::Bubblewrap, Tried { lasts, ..other });
        }
    }
    (Builder::Warden, own)
}

/// The finding about a level.
struct Tried {
    /// The version of Landlock in use, or what is missing.
    abi: Result<u32, Refusal>,
    /// It works, but only without the broker, for this reason.
    no_broker: Option<String>,
    /// Whether this is permanent: a machine that was too busy to answer proves nothing, so the next start probes again.
    lasts: bool,
}

/// Tries a level with the broker, and without it if that does not work.
async fn level(spec: &ProbeSpec, level: SandboxLevel, builder: Builder, dir: &Path) -> Tried {
    let (abi, lasts) = one_way(spec, (level, builder), dir, true).await;
    let why = match abi {
        Err(why) if lasts => why,
        abi => {
            return Tried {
                abi,
                no_broker: None,
                lasts,
            };
        }
    };
    match one_way(spec, (level, builder), dir, false).await {
        (Ok(abi), lasts) => Tried {
            abi: Ok(abi),
            no_broker: Some(why.message),
            lasts,
        },
        (Err(_), _) => Tried {
            abi: Err(why),
            no_broker: None,
            lasts,
        },
    }
}

async fn one_way(
    spec: &ProbeSpec,
    kind: (SandboxLevel, Builder),
    dir: &Path,
    broker: bool,
) -> (Result<u32, Refusal>, bool) {
    let mut found = timeout(WITHIN, try_level(spec, kind, dir, broker)).await;
    if found.is_err() {
        found = timeout(WITHIN, try_level(spec, kind, dir, broker)).await;
    }
    let (message, lasting) = match found {
        Ok(Ok(abi)) => return (Ok(abi), true),
        Ok(Err(message)) => (message, true),
        Err(_) => (
            format!("the probe timed out twice after {} s", WITHIN.as_secs()),
            false,
        ),
    };
    let fix = fix(kind.0);
    (Err(Refusal { fix, message }), lasting)
}

/// Ubuntu lets only programs with a profile use the privileges of a user namespace.
fn restricted_by_apparmor() -> bool {
    let switch = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    switch.is_ok_and(|value| value.trim() == "1")
}

fn fix(level: SandboxLevel) -> String {
    let fix = match level {
        SandboxLevel::Isolated if restricted_by_apparmor() => {
            "give agentd an AppArmor profile that allows user namespaces (docs/security/namespaces.md has it), or install \
             bubblewrap where the system has a profile for it; then restart agentd"
        }
        SandboxLevel::Isolated => {
            "allow user namespaces (sysctl user.max_user_namespaces; in a container a seccomp profile that permits \
             unshare and mount), or use the level confined"
        }
        SandboxLevel::Confined | SandboxLevel::None => {
            "boot a kernel of 6.2 or later with Landlock (lsm=landlock,...), or, if this machine is \
             itself the sandbox, set sandbox.level = \"none\" and sandbox.require = \"none\""
        }
    };
    fix.to_owned()
}

/// Runs what must work and what must fail. Returns the version of Landlock in use.
async fn try_level(
    spec: &ProbeSpec,
    (level, builder): (SandboxLevel, Builder),
    dir: &Path,
    broker: bool,
) -> Result<u32, String> {
    let text = |error: io::Error| error.to_string();
    let name = match (level, builder) {
        (SandboxLevel::Isolated, Builder::Warden) => "isolated",
        (SandboxLevel::Isolated, Builder::Bubblewrap) => "bubblewrap",
        (SandboxLevel::Confined | SandboxLevel::None, _) => "confined",
    };
    let (workdir, outside) = (dir.join(name), dir.join(format!("{name}-outside")));
    fs::create_dir_all(&workdir).map_err(text)?;
    fs::create_dir_all(&outside).map_err(text)?;
    let mut read = readable(&spec.environment, &spec.read);
    // A path in the settings may contain the place of the attempts.
    read.retain(|path| !dir.starts_with(path));
    // The daemon's data, which has the place of the attempts, is usually below a hidden directory. A tree of a workspace may be
    // written there, and so may this.
    let places = Places::default().with_workspaces(dir.parent().unwrap_or(dir).to_owned());
    let walls = Confinement {
        builder,
        broker,
        protected: ProtectedPaths::default().with_places(places.followed()),
        ..Confinement::new(level, dir.join(format!("{name}-temp")), read)
    };
    let warden = WardenSpec {
        exe: spec.exe.clone(),
        workdir: workdir.clone(),
        environment: spec.environment.clone(),
        bounds: Bounds::default(),
        network: None,
    };
    let (warden, abi) = Warden::spawn_confined(&warden, &walls)
        .await
        .map_err(|error| error.to_string())?;
    let mut tried = attempts(&warden, &workdir, &outside, level).await;
    if broker && tried.is_ok() {
        let guarded = workdir.join(".git").display().to_string();
        let wrote = attempt(&warden, &workdir, "write", guarded).await;
        tried = wrote.and_then(|exit| expect("a command can write to a protected path", exit, HELD));
    }
    warden.close(CLOSE_WITHIN).await;
    tried.map(|()| abi)
}

async fn attempts(
    warden: &Warden,
    workdir: &Path,
    outside: &Path,
    level: SandboxLevel,
) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let (canary, target) = (outside.join("canary"), outside.join("written"));
    fs::write(&canary, "canary").map_err(text)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(text)?;
    let address = listener.local_addr().map_err(text)?;
    let attempt = |kind: &'static str, target: String| attempt(warden, workdir, kind, target);
    let inside = workdir.join("written").display().to_string();
    let (nothing, write, wrote, read, connect) = tokio::join!(
        exit(warden, vec!["true".to_owned()], workdir),
        attempt("write", inside),
        attempt("write", target.display().to_string()),
        attempt("read", canary.display().to_string()),
        attempt("connect", address.to_string()),
    );
    expect("the command `true` fails", nothing?, 0)?;
    expect("a command cannot write to the working directory", write?, 0)?;
    expect("a command can read files outside of its directory", read?, HELD)?;
    expect("a command can connect to the network", connect?, HELD)?;
    // In its own file system it may write files that nothing else sees.
    if level == SandboxLevel::Confined {
        expect("a command can write outside of its directory", wrote?, HELD)?;
    }
    if target.exists() {
        return Err("a command can write outside of its directory".to_owned());
    }
    Ok(())
}

/// An escape attempt, made by this program, wherever its file is.
async fn attempt(warden: &Warden, workdir: &Path, kind: &str, target: String) -> Result<Exit, String> {
    let words = [OWN_PROGRAM, WARDEN_ARG, ATTEMPT_ARG, kind].map(str::to_owned);
    let argv = words.into_iter().chain([target]).collect();
    exit(warden, argv, workdir).await
}

fn expect(otherwise: &str, exit: Exit, code: u8) -> Result<(), String> {
    if exit.code == Some(i32::from(code)) {
        return Ok(());
    }
    Err(format!(
        "{otherwise} (exit code {:?}, signal {:?})",
        exit.code, exit.signal
    ))
}

async fn exit(warden: &Warden, argv: Vec<String>, cwd: &Path) -> Result<Exit, String> {
    let command = CommandSpec {
        argv,
        cwd: cwd.to_owned(),
        env: Vec::new(),
    };
    let mut running = warden.run(command).await.map_err(|error| error.to_string())?;
    running.exit().await.map_err(|error| error.to_string())
}
