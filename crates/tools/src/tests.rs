//! The tools on real files, through the public interface.

mod files;
mod prepare;
mod search;

use crate::{Beneath, FilesSeen, OnStart, ProgressSink, Registry, ToolContext, ToolLimits, WardenSlot, run};
use agentd_protocol::{ToolOutcome, ToolStatus};
use agentd_sandbox::{Environment, WardenSpec};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// A working directory and a session that remembers what it saw.
struct World {
    dir: tempfile::TempDir,
    limits: ToolLimits,
    seen: FilesSeen,
}

impl World {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            limits: ToolLimits::default(),
            seen: FilesSeen::default(),
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonical()
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn get(&self, path: &str) -> String {
        String::from_utf8(fs::read(self.root().join(path)).unwrap()).unwrap()
    }

    fn context(&self) -> ToolContext {
        let spec = WardenSpec {
            exe: PathBuf::from("/nonexistent"),
            workdir: self.root(),
            environment: Environment::default(),
        };
        ToolContext {
            workdir: Arc::new(Beneath::open(&self.root()).unwrap()),
            seen: Arc::new(self.seen.clone()),
            warden: WardenSlot::new(spec),
            limits: Arc::new(self.limits.clone()),
            spill_dir: self.root().join("spill"),
            progress: ProgressSink::nobody(),
            on_start: OnStart::default(),
        }
    }

    /// Prepares and runs a call and remembers what it saw, as a session does.
    async fn call(&mut self, name: &str, input: Value) -> ToolOutcome {
        let outcome = match Registry::builtin(&self.limits).prepare(name, &input) {
            Ok(prepared) => run(&prepared, self.context()).await.outcome,
            Err(refusal) => refusal,
        };
        self.seen.apply(outcome.details.as_ref());
        outcome
    }

    async fn ok(&mut self, name: &str, input: Value) -> String {
        let outcome = self.call(name, input).await;
        assert_eq!(outcome.status, ToolStatus::Ok, "{}", outcome.llm_text);
        outcome.llm_text
    }

    async fn refused(&mut self, name: &str, input: Value) -> (String, String) {
        let outcome = self.call(name, input).await;
        assert_eq!(outcome.status, ToolStatus::Error, "{}", outcome.llm_text);
        (code(&outcome), outcome.llm_text)
    }
}

fn code(outcome: &ToolOutcome) -> String {
    outcome
        .details
        .as_ref()
        .and_then(|details| details.get("code")?.as_str())
        .unwrap_or_default()
        .to_owned()
}

trait Canonical {
    fn canonical(&self) -> PathBuf;
}

impl Canonical for std::path::Path {
    fn canonical(&self) -> PathBuf {
        Beneath::open(self).unwrap().path().to_owned()
    }
}
