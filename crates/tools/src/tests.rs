//! Tests of the tools on real files, through the public interface.

mod adding;
mod binding;
mod changes;
mod exhaustion;
mod files;
mod mapping;
mod patching;
mod prepare;
mod prompting;
mod protecting;
mod remote;
mod search;
mod undoing;
mod viewing;
mod web;

use crate::{
    Beneath, BlobSource, FilesSeen, Jobs, OnStart, ProgressSink, Registry, ToolContext, ToolLimits,
    WardenSlot, run,
};
use agentd_file_work::FileWork;
use agentd_protocol::{ToolCallId, ToolOutcome, ToolStatus};
use agentd_sandbox::{Environment, WardenSpec};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// A working directory, and a session that remembers what it has seen.
struct World {
    dir: tempfile::TempDir,
    limits: ToolLimits,
    guarding: crate::Guarding,
    seen: FilesSeen,
    blobs: BTreeMap<String, Vec<u8>>,
    files: crate::FileGate,
    index: Option<Arc<dyn crate::search::Search>>,
    parsers: Option<Arc<dyn crate::TagFinders>>,
    /// The undo id of the last change.
    undo_id: Value,
    /// The calls so far.
    calls: u64,
}

impl World {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            limits: ToolLimits::default(),
            guarding: crate::Guarding::default(),
            seen: FilesSeen::default(),
            blobs: BTreeMap::new(),
            files: crate::FileGate::open(),
            index: None,
            parsers: Some(Arc::new(agentd_grammars::InProcess)),
            undo_id: Value::from("none"),
            calls: 0,
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
            bounds: agentd_sandbox::Bounds::default(),
            network: None,
        };
        ToolContext {
            call: ToolCallId::from_parts(self.calls, [0; 10]),
            guarding: self.guarding.clone(),
            workdir: Arc::new(Beneath::open(&self.root()).unwrap()),
            seen: Arc::new(self.seen.clone()),
            jobs: Jobs::unheard(),
            warden: WardenSlot::new(spec),
            limits: Arc::new(self.limits.clone()),
            spill_dir: self.root().join("spill"),
            map_dir: self.root().join(".maps"),
            blobs: self.source(),
            addresses: crate::AddressGate::nobody(),
            files: self.files.clone(),
            file_work: FileWork::of_session("test"),
            search: self.index.clone(),
            parsers: self.parsers.clone(),
            remote: None,
            progress: ProgressSink::nobody(),
            on_start: OnStart::default(),
        }
    }

    /// The earlier contents of changed files.
    fn source(&self) -> BlobSource {
        let blobs = self.blobs.clone();
        BlobSource::new(move |name| std::future::ready(Ok(blobs.get(&name).cloned())))
    }

    /// Prepares and runs a call and remembers what it has seen, as a session does.
    async fn call(&mut self, name: &str, input: Value) -> ToolOutcome {
        self.calls += 1;
        let known = match Registry::builtin(&self.limits).prepare(name, &input) {
            Ok(prepared) => prepared.within(&self.root()).knowing(&self.seen),
            Err(refusal) => Err(refusal),
        };
        let finished = match known {
            Ok(prepared) => run(&prepared, self.context()).await,
            Err(refusal) => refusal.into(),
        };
        for before in finished.pre_images {
            self.blobs.insert(before.sha256, before.bytes);
        }
        let outcome = finished.outcome;
        self.seen.apply(outcome.details.as_ref());
        let undo_id = outcome
            .details
            .as_ref()
            .and_then(|details| details.get("undo_id"));
        self.undo_id = undo_id.cloned().unwrap_or_else(|| self.undo_id.take());
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
