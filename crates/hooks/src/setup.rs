//! The operator's setup commands: they run in a session's own workspace before its first turn, in the sandbox, with a
//! network rule of their own.

use crate::launch::CLOSE_WITHIN;
use agentd_protocol::{SetupCommand, WorkspacePrepared};
use agentd_sandbox::{
    Bounds, CaptureLimits, CollectSpec, Collected, CommandSpec, Environment, Network, SandboxError,
    Sandboxing, WardenSlot, WardenSpec,
};
use agentd_text::redact_known;
use async_trait::async_trait;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How many bytes of a command's output the log keeps: the last ones, which say what went wrong.
const KEPT_OUTPUT: usize = 4 << 10;

/// Sets up workspaces; tests replace it.
#[async_trait]
pub trait Setup: Debug + Send + Sync {
    /// Runs the commands one after the other until one fails. Dropping the future kills what runs.
    async fn prepare(&self, workspace: &Path) -> WorkspacePrepared;
}

/// No setup commands: every workspace is ready as it was made.
#[derive(Debug, Clone, Copy)]
pub struct NoSetup;

#[async_trait]
impl Setup for NoSetup {
    async fn prepare(&self, _workspace: &Path) -> WorkspacePrepared {
        WorkspacePrepared {
            commands: Vec::new(),
            error: None,
        }
    }
}

/// How to run the setup commands.
#[derive(Debug)]
pub struct SetupArgs {
    /// The commands, for `bash -c`.
    pub commands: Vec<String>,
    /// The time limit for all of them together.
    pub within: Duration,
    /// The daemon's own program.
    pub exe: PathBuf,
    /// The environment of commands.
    pub environment: Environment,
    /// The sandbox of commands.
    pub sandboxing: Sandboxing,
    /// The limits on their resources.
    pub bounds: Bounds,
    /// Their network, if any.
    pub network: Option<Network>,
    /// A directory for temporary files.
    pub spill_dir: PathBuf,
}

/// Runs the setup commands of one workspace under one warden, so that nothing they started outlives them (I5).
#[derive(Debug)]
pub struct SetupCommands {
    args: SetupArgs,
    started: AtomicU64,
}

impl SetupCommands {
    /// With these commands.
    #[must_use]
    pub const fn new(args: SetupArgs) -> Self {
        Self {
            args,
            started: AtomicU64::new(0),
        }
    }

    fn slot(&self, workspace: &Path) -> WardenSlot {
        let args = &self.args;
        let spec = WardenSpec {
            exe: args.exe.clone(),
            workdir: workspace.to_owned(),
            environment: args.environment.clone(),
            bounds: args.bounds,
            network: args.network.clone(),
        };
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        args.sandboxing.slot(spec, &format!("setup-{number}"))
    }

    async fn run_all(&self, slot: &WardenSlot, workspace: &Path) -> WorkspacePrepared {
        let until = Instant::now() + self.args.within;
        let mut prepared = WorkspacePrepared {
            commands: Vec::new(),
            error: None,
        };
        for command in &self.args.commands {
            let begun = Instant::now();
            let spec = CollectSpec {
                time: until.saturating_duration_since(begun),
                limits: CaptureLimits {
                    head: 0,
                    tail: KEPT_OUTPUT,
                },
                spill_dir: self.args.spill_dir.clone(),
                spill_bytes: 0,
            };
            let collected = match run(slot, command, workspace, &spec).await {
                Ok(collected) => collected,
                Err(error) => {
                    let why = format!("{command:?} could not run: {error}");
                    prepared.error = WorkspacePrepared::not_run(&redact_known(&why)).error;
                    return prepared;
                }
            };
            prepared.error = problem(command, &collected, self.args.within);
            let output = String::from_utf8_lossy(&collected.output.tail()).into_owned();
            prepared.commands.push(SetupCommand {
                command: command.clone(),
                exit_code: collected.exit.code.filter(|_| !collected.timed_out),
                output: redact_known(&output).into_owned(),
                duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
            if prepared.error.is_some() {
                return prepared;
            }
        }
        prepared
    }
}

async fn run(
    slot: &WardenSlot,
    command: &str,
    workspace: &Path,
    spec: &CollectSpec,
) -> Result<Collected, SandboxError> {
    let command = CommandSpec {
        argv: ["bash", "-c", command].map(str::to_owned).to_vec(),
        cwd: workspace.to_owned(),
        env: Vec::new(),
    };
    let running = slot.get().await?.run(command).await?;
    running.collect(spec, |_| {}).await
}

/// Says why a command counts as failed. The log also has its output.
fn problem(command: &str, collected: &Collected, within: Duration) -> Option<String> {
    let what = match collected.exit.code {
        _ if collected.timed_out => {
            format!(
                "took too long: workspace.setup_limit is {}s for all commands",
                within.as_secs()
            )
        }
        Some(0) => return None,
        Some(code) => format!("ended with exit code {code}"),
        None => "was ended by a signal".to_owned(),
    };
    let output = String::from_utf8_lossy(&collected.output.tail()).into_owned();
    let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let last = last.map_or_else(String::new, |line| format!(": {line}"));
    let what = format!("the setup command {command:?} {what}{last}");
    Some(redact_known(&what).into_owned())
}

#[async_trait]
impl Setup for SetupCommands {
    async fn prepare(&self, workspace: &Path) -> WorkspacePrepared {
        let slot = self.slot(workspace);
        let prepared = self.run_all(&slot, workspace).await;
        if slot.close(CLOSE_WITHIN).await {
            prepared
        } else {
            WorkspacePrepared {
                error: WorkspacePrepared::not_run("processes of a setup command did not exit").error,
                ..prepared
            }
        }
    }
}
