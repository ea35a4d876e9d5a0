//! The suite of patches: `input` has the files before, `patch.txt` the patch, `expected` the files afterwards.

use crate::error::ConformanceError;
use crate::report::{Report, Verdict};
use crate::suites::directories;
use agentd_file_work::FileWork;
use agentd_protocol::ToolStatus;
use agentd_sandbox::{Environment, WardenSpec};
use agentd_tools::{
    Beneath, BlobSource, FilesSeen, Finished, Jobs, OnStart, ProgressSink, Registry, ToolContext, ToolLimits,
    WardenSlot, run as run_tool,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the suite and of its directory.
pub(crate) const NAME: &str = "apply-patch";

/// All files below a directory with their content.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// Applies every patch below a directory with the real tool, in a session that has read all files.
pub(crate) fn run(dir: &Path) -> Result<Report, ConformanceError> {
    let failed = |source| ConformanceError::Read {
        path: dir.to_owned(),
        source,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let mut report = Report::of(NAME);
    for name in directories(dir)? {
        let scenario = Scenario::read(&dir.join(&name))?;
        let verdict = match scenario {
            Some(scenario) => runtime.block_on(scenario.check()).map_err(failed)?,
            None => Verdict::Failed("there is no patch.txt".to_owned()),
        };
        report.add(&name, verdict);
    }
    if report.passed == 0 && report.failures.is_empty() {
        report.add(NAME, Verdict::Skipped("there are no scenarios".to_owned()));
    }
    Ok(report)
}

struct Scenario {
    patch: String,
    input: Tree,
    expected: Tree,
}

impl Scenario {
    fn read(dir: &Path) -> Result<Option<Self>, ConformanceError> {
        let path = dir.join("patch.txt");
        if !path.exists() {
            return Ok(None);
        }
        let failed = |source| ConformanceError::Read {
            path: path.clone(),
            source,
        };
        let bytes = std::fs::read(&path).map_err(failed)?;
        Ok(Some(Self {
            patch: String::from_utf8_lossy(&bytes).into_owned(),
            input: tree(&dir.join("input")).map_err(failed)?,
            expected: tree(&dir.join("expected")).map_err(failed)?,
        }))
    }

    async fn check(&self) -> std::io::Result<Verdict> {
        let place = tempfile::tempdir()?;
        for (path, content) in &self.input {
            let path = place.path().join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)?;
        }
        let mut session = Session::new(place.path()).map_err(std::io::Error::other)?;
        for path in self.input.keys() {
            session.call("Read", &json!({ "file_path": path })).await;
        }
        let (status, said) = session.call("ApplyPatch", &json!({ "patch": self.patch })).await;
        let found = tree(place.path())?;
        // If nothing is to change, the patch must be refused, and a refusal is an error result.
        let refusal = self.expected == self.input;
        Ok(match (status == ToolStatus::Ok, refusal) {
            (true, true) => Verdict::Failed(format!("it must be refused, but: {said}")),
            (false, false) => Verdict::Failed(format!("it must be applied, but: {said}")),
            _ if found == self.expected => Verdict::Passed,
            _ => Verdict::Failed(difference(&self.expected, &found)),
        })
    }
}

struct Session {
    registry: Registry,
    context: ToolContext,
}

impl Session {
    fn new(dir: &Path) -> Result<Self, agentd_sandbox::SandboxError> {
        let limits = ToolLimits::default();
        let workdir = Beneath::open(dir)?;
        // No command is run, so no warden ever starts.
        let warden = WardenSlot::new(WardenSpec {
            exe: PathBuf::new(),
            workdir: workdir.path().to_owned(),
            environment: Environment::default(),
            bounds: agentd_sandbox::Bounds::default(),
            network: None,
        });
        Ok(Self {
            registry: Registry::builtin(&limits),
            context: ToolContext {
                call: agentd_protocol::ToolCallId::NIL,
                guarding: agentd_tools::Guarding::default(),
                workdir: Arc::new(workdir),
                seen: Arc::new(FilesSeen::default()),
                warden,
                limits: Arc::new(limits),
                spill_dir: PathBuf::new(),
                map_dir: PathBuf::new(),
                jobs: Jobs::unheard(),
                blobs: BlobSource::empty(),
                addresses: agentd_tools::AddressGate::nobody(),
                files: agentd_tools::FileGate::closed(),
                file_work: FileWork::of_session("test"),
                search: None,
                parsers: None,
                remote: None,
                progress: ProgressSink::nobody(),
                on_start: OnStart::default(),
            },
        })
    }

    async fn call(&mut self, tool: &str, input: &Value) -> (ToolStatus, String) {
        let finished: Finished = match self.registry.prepare(tool, input) {
            Ok(prepared) => run_tool(&prepared, self.context.clone()).await,
            Err(refusal) => refusal.into(),
        };
        let outcome = finished.outcome;
        Arc::make_mut(&mut self.context.seen).apply(outcome.details.as_ref());
        (outcome.status, outcome.llm_text)
    }
}

/// The files below a directory; none if the directory does not exist.
fn tree(root: &Path) -> std::io::Result<Tree> {
    let mut found = Tree::new();
    let mut open = if root.is_dir() {
        vec![root.to_owned()]
    } else {
        Vec::new()
    };
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
                found.insert(name, std::fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

fn difference(expected: &Tree, found: &Tree) -> String {
    let paths: std::collections::BTreeSet<&PathBuf> = expected.keys().chain(found.keys()).collect();
    let show = |content: Option<&Vec<u8>>| {
        content.map_or_else(
            || "no file".to_owned(),
            |bytes| format!("{:?}", String::from_utf8_lossy(bytes)),
        )
    };
    let differ = |path: &&PathBuf| expected.get(*path) != found.get(*path);
    let line = |path: &PathBuf| {
        let (wanted, there) = (show(expected.get(path)), show(found.get(path)));
        format!("{}: expected {wanted}, found {there}", path.display())
    };
    paths
        .into_iter()
        .filter(differ)
        .map(line)
        .collect::<Vec<_>>()
        .join("; ")
}
