//! `agentd __tools`: answers questions about the tools, for `agentctl`, which does not contain them. It opens no file and
//! runs no tool.

use crate::{EXIT_USAGE, fail};
use agentd_settings::ToolsConfig;
use agentd_tools::Registry;
use std::io::{ErrorKind, stdin, stdout};
use std::process::ExitCode;

/// Answers until stdin ends.
pub(crate) fn answer() -> ExitCode {
    let tools = Registry::builtin(&ToolsConfig::default());
    match tools.answer_lines(stdin().lock(), stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(EXIT_USAGE, &format!("cannot answer about the tools: {error}")),
    }
}
