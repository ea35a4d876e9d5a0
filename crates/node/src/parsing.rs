//! The helper that parses source files: its place, and its sandbox.

use crate::error::NodeError;
use crate::paths::Paths;
use agentd_tool_executor::ExecutorArgs;
use agentd_tools::{Beneath, TAGS_PROGRAM, TagProgramSpec, TagPrograms};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Adds what parses source files to the arguments of the executor. Without the program, maps and searches do with less.
pub(crate) fn with_helper(executor: ExecutorArgs, paths: &Paths) -> Result<ExecutorArgs, NodeError> {
    let Some(program) = program() else {
        tracing::warn!(
            "cannot find the directory of agentd, and {TAGS_PROGRAM} in it; RepoMap shows no new files"
        );
        return Ok(executor);
    };
    if !program.is_file() {
        // No warning: the demo, for one, does well without it. `agentctl doctor` warns.
        tracing::info!(
            program = %program.display(),
            "{TAGS_PROGRAM} is not installed; RepoMap shows no new files, and SemanticSearch knows no definitions"
        );
    }
    let workdir = paths.data_dir.join("parsing");
    std::fs::create_dir_all(&workdir).map_err(|error| NodeError::path(&workdir, error))?;
    let args = TagProgramSpec {
        program,
        exe: executor.exe.clone(),
        workdir: Beneath::open_anywhere(&workdir).map_or(workdir, |opened| opened.path().to_owned()),
        sandboxing: executor.sandboxing.clone(),
    };
    let helpers = TagPrograms::new(args, Handle::current());
    Ok(ExecutorArgs {
        parsers: Some(Arc::new(helpers)),
        ..executor
    })
}

/// The helper's program: in the directory of the running one.
fn program() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    Some(exe.parent()?.join(TAGS_PROGRAM))
}
