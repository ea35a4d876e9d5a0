//! Starts each server under its own warden.

use crate::cleaning::words;
use crate::error::McpError;
use crate::launch::{Child, Launch, Process};
use crate::spec::{Command, Walls};
use agentd_sandbox::{CommandSpec, Environment, Exit, Heard, Running, Sandboxing, WardenSlot, WardenSpec};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes kept of the end of a server's error output.
const KEPT_ERRORS: usize = 2 << 10;
/// The most reads of it after the end.
const LAST_READS: u32 = 64;

/// Starts each server under its own warden, so that none of its processes outlives it.
#[derive(Debug, Clone)]
pub struct WardenLaunch {
    exe: PathBuf,
    environment: Environment,
    sandboxing: Sandboxing,
    started: Arc<AtomicU64>,
}

impl WardenLaunch {
    /// `exe` is the daemon's own program; `environment` is the environment of every server; `sandboxing` is the sandbox
    /// of the node's commands.
    #[must_use]
    pub fn new(exe: PathBuf, environment: Environment, sandboxing: Sandboxing) -> Self {
        Self {
            exe,
            environment,
            sandboxing,
            started: Arc::default(),
        }
    }

    /// A slot for a warden. Without sandbox support no server starts, except one that is configured to run without.
    fn slot(&self, server: &str, command: &Command, spec: WardenSpec) -> WardenSlot {
        let mut sandboxing = match command.walls {
            Walls::Node => self.sandboxing.clone(),
            Walls::None => Sandboxing::None,
        };
        if let Sandboxing::Walls { read, .. } = &mut sandboxing {
            read.extend(command.read.iter().cloned());
        }
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        sandboxing.slot(spec, &format!("mcp-{server}-{number}"))
    }
}

#[async_trait]
impl Launch for WardenLaunch {
    async fn launch(&self, server: &str, command: &Command, workdir: &Path) -> Result<Child, McpError> {
        let failed = |source| McpError::Start {
            server: server.to_owned(),
            source,
        };
        let spec = WardenSpec {
            exe: self.exe.clone(),
            workdir: workdir.to_owned(),
            environment: self.environment.clone(),
            bounds: agentd_sandbox::Bounds::default(),
            network: None,
        };
        let slot = self.slot(server, command, spec);
        let warden = slot.get().await.map_err(failed)?;
        let env = command.env.clone().into_iter().collect();
        let command = CommandSpec {
            argv: command.argv.clone(),
            cwd: workdir.to_owned(),
            env,
        };
        let piped = warden.run_piped(command).await.map_err(failed)?;
        let process = WardenProcess {
            server: server.to_owned(),
            slot,
            running: piped.running,
            errors: Vec::new(),
            ended: None,
        };
        Ok(Child {
            stdin: Box::new(piped.stdin),
            stdout: Box::new(piped.stdout),
            process: Box::new(process),
        })
    }
}

struct WardenProcess {
    server: String,
    /// The only handle of its warden.
    slot: WardenSlot,
    running: Running,
    errors: Vec<u8>,
    ended: Option<String>,
}

impl WardenProcess {
    fn keep(&mut self, fresh: &[u8]) {
        tracing::debug!(
            server = self.server,
            "standard error: {}",
            agentd_text::redact(&words(&String::from_utf8_lossy(fresh)))
        );
        self.errors.extend_from_slice(fresh);
        let surplus = self.errors.len().saturating_sub(KEPT_ERRORS);
        self.errors.drain(..surplus);
    }

    /// Reads its final error output. Bounded, because processes that it left behind may keep writing.
    fn last_words(&mut self, buffer: &mut [u8]) {
        for _ in 0..LAST_READS {
            let count = self.running.unheard(buffer);
            if count == 0 {
                return;
            }
            self.keep(buffer.get(..count).unwrap_or_default());
        }
    }

    /// Describes its end, with the last line of its error output.
    fn in_words(&self, exit: Exit) -> String {
        let how = match (exit.code, exit.signal) {
            (Some(code), _) => format!("it ended with exit code {code}"),
            (None, Some(signal)) => format!("it was killed by signal {signal}"),
            (None, None) => "it ended".to_owned(),
        };
        let errors = String::from_utf8_lossy(&self.errors);
        let telling = |line: &&str| line.to_ascii_lowercase().contains("error");
        let mut lines = errors.lines().rev().filter(|line| !line.trim().is_empty());
        let line = lines.clone().find(telling).or_else(|| lines.next());
        match line {
            Some(line) => format!("{how} ({})", agentd_text::redact(&words(line))),
            None => how,
        }
    }
}

#[async_trait]
impl Process for WardenProcess {
    async fn ended(&mut self) -> String {
        let mut buffer = [0; 2048];
        loop {
            if let Some(words) = &self.ended {
                return words.clone();
            }
            match self.running.hear(&mut buffer).await {
                Ok(Heard::Output(count)) => self.keep(buffer.get(..count).unwrap_or_default()),
                Ok(Heard::Exited(exit)) => {
                    self.last_words(&mut buffer);
                    self.ended = Some(self.in_words(exit));
                }
                Err(error) => self.ended = Some(error.to_string()),
            }
        }
    }

    async fn end(&mut self, within: Duration) {
        if !self.slot.close(within).await {
            tracing::warn!(
                server = self.server,
                "processes of the tool server are still running"
            );
        }
    }
}
