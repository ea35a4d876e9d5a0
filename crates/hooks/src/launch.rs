//! Runs a hook: under its own warden, inside the node's sandbox.

use agentd_fault_points as fault;
use agentd_sandbox::{
    CaptureLimits, CollectSpec, CommandSpec, Environment, Piped, Sandboxing, WardenSlot, WardenSpec,
};
use agentd_settings::HookConfig;
use async_trait::async_trait;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// The maximum size of an answer.
const MOST_OUTPUT: u64 = 256 << 10;
/// How many bytes of the error output are kept.
const MOST_ERRORS: usize = 4 << 10;
/// How long a warden may take to start.
const START_WITHIN: Duration = Duration::from_secs(10);
/// How long to read the remaining output after the command ends; other processes may hold the pipe open for ever.
const DRAIN_WITHIN: Duration = Duration::from_millis(200);
/// How long its processes may take to exit.
pub(crate) const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The command ended by itself; the code is absent after a signal.
    Exited {
        /// The exit code.
        code: Option<i32>,
        /// Its standard output.
        stdout: String,
        /// The beginning of its error output.
        stderr: String,
    },
    /// The hook ran out of time.
    TimedOut,
    /// The hook could not be run.
    Failed(String),
}

/// Runs hooks; tests replace it.
#[async_trait]
pub trait Launch: Debug + Send + Sync {
    /// Runs a hook to its end in a working directory. Dropping the future kills the hook.
    async fn launch(&self, hook: &HookConfig, workdir: &Path, input: Vec<u8>) -> Ended;
}

/// Runs each hook under its own warden, so that nothing it started outlives it, and no tool can reach it.
#[derive(Debug)]
pub struct WardenLaunch {
    exe: PathBuf,
    environment: Environment,
    sandboxing: Sandboxing,
    spill_dir: PathBuf,
    started: AtomicU64,
}

impl WardenLaunch {
    /// `exe` is the daemon's own program; `environment` is that of the commands; `sandboxing` is their sandbox.
    #[must_use]
    pub const fn new(
        exe: PathBuf,
        environment: Environment,
        sandboxing: Sandboxing,
        spill_dir: PathBuf,
    ) -> Self {
        Self {
            exe,
            environment,
            sandboxing,
            spill_dir,
            started: AtomicU64::new(0),
        }
    }

    fn slot(&self, hook: &HookConfig, workdir: &Path) -> WardenSlot {
        let mut sandboxing = self.sandboxing.clone();
        if let (Sandboxing::Walls { read, .. }, Some(program)) = (&mut sandboxing, hook.command.first()) {
            read.push(PathBuf::from(program));
        }
        let spec = WardenSpec {
            exe: self.exe.clone(),
            workdir: workdir.to_owned(),
            environment: self.environment.clone(),
            bounds: agentd_sandbox::Bounds::default(),
            network: None,
        };
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        sandboxing.slot(spec, &format!("hook-{number}"))
    }

    async fn run(&self, slot: &WardenSlot, hook: &HookConfig, workdir: &Path, input: Vec<u8>) -> Ended {
        let command = CommandSpec {
            argv: hook.command.clone(),
            cwd: workdir.to_owned(),
            env: Vec::new(),
        };
        let start = async { slot.get().await?.run_piped(command).await };
        let piped = match timeout(START_WITHIN, start).await {
            Ok(Ok(piped)) => piped,
            Ok(Err(error)) => return Ended::Failed(error.to_string()),
            Err(_) => return Ended::Failed("it did not start in time".to_owned()),
        };
        let spec = CollectSpec {
            time: hook.timeout,
            limits: CaptureLimits {
                head: MOST_ERRORS,
                tail: 0,
            },
            spill_dir: self.spill_dir.clone(),
            spill_bytes: 0,
        };
        hear(piped, &spec, input).await
    }
}

#[async_trait]
impl Launch for WardenLaunch {
    async fn launch(&self, hook: &HookConfig, workdir: &Path, input: Vec<u8>) -> Ended {
        if let Err(injected) = fault::point(fault::HOOK_RUN) {
            return Ended::Failed(injected.to_string());
        }
        let slot = self.slot(hook, workdir);
        let ended = self.run(&slot, hook, workdir, input).await;
        if slot.close(CLOSE_WITHIN).await {
            ended
        } else {
            Ended::Failed("its processes did not exit".to_owned())
        }
    }
}

async fn hear(piped: Piped, spec: &CollectSpec, input: Vec<u8>) -> Ended {
    let Piped {
        mut stdin,
        stdout,
        running,
    } = piped;
    let mut output = Vec::new();
    let collected = {
        let talk = async {
            let write = async move {
                // A hook need not read its input.
                let _ = stdin.write_all(&input).await;
            };
            let mut limited = stdout.take(MOST_OUTPUT + 1);
            let read = limited.read_to_end(&mut output);
            let _ = tokio::join!(write, read);
        };
        let collect = running.collect(spec, |_| {});
        tokio::pin!(talk, collect);
        let mut talked = false;
        let collected = loop {
            tokio::select! {
                biased;
                collected = &mut collect => break collected,
                () = &mut talk, if !talked => talked = true,
            }
        };
        if !talked {
            let _ = timeout(DRAIN_WITHIN, talk).await;
        }
        collected
    };
    match collected {
        Err(error) => Ended::Failed(error.to_string()),
        Ok(collected) if collected.timed_out => Ended::TimedOut,
        Ok(_) if u64::try_from(output.len()).is_ok_and(|len| len > MOST_OUTPUT) => {
            Ended::Failed("its answer is too long".to_owned())
        }
        Ok(collected) => Ended::Exited {
            code: collected.exit.code,
            stdout: String::from_utf8_lossy(&output).into_owned(),
            stderr: String::from_utf8_lossy(collected.output.head()).into_owned(),
        },
    }
}
