//! `[agents]`: where agentd finds an agent's instructions, custom agents, skills and commands.

use serde::{Deserialize, Serialize};

/// `[agents]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsConfig {
    /// Names of instruction files, in the reading order within a directory.
    pub instruction_files: Vec<String>,
    /// Bytes of instructions in a prompt, all files together.
    pub instruction_bytes: u64,
    /// The operator's directory: instructions for all projects, `agents`, `skills`, `commands`. Empty: `agentd` in the
    /// user's configuration directory.
    pub directory: String,
    /// Whether agentd also reads `.agentd` of a working directory.
    pub workdir: bool,
    /// Concurrent sub-agents of one session; the others wait.
    pub max_children: u32,
    /// How deep sub-agents nest below a session; 0: no sub-agents.
    pub max_depth: u32,
    /// Files that one input may attach with `@`.
    pub mentions: u32,
    /// Bytes of the files that one input attaches, together.
    pub mention_bytes: u64,
    /// Which new sessions get a map of the source tree in their prompt.
    pub map: MapInPrompt,
    /// The maximum length of that map, in tokens.
    pub map_tokens: u32,
}

/// Which sessions get a map of the source tree in their prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapInPrompt {
    /// None.
    Never,
    /// Sessions of the preset react.
    React,
    /// All.
    Always,
}

impl AgentsConfig {
    /// The first invalid value: its key, the problem, and the remedy.
    pub(crate) fn problem(&self) -> Option<(&'static str, String, &'static str)> {
        let plain = |name: &&String| {
            !name.is_empty() && !name.contains(['/', '\0']) && !matches!(name.as_str(), "." | "..")
        };
        if let Some(bad) = self.instruction_files.iter().find(|name| !plain(name)) {
            let what = format!("{bad:?} is not a file name");
            return Some((
                "agents.instruction_files",
                what,
                "give names such as AGENTS.md, without a directory",
            ));
        }
        if self.instruction_files.len() > MAX_NAMES {
            let what = format!("too many names: {}", self.instruction_files.len());
            return Some(("agents.instruction_files", what, "give at most 16"));
        }
        if !(1..=MAX_CHILDREN).contains(&self.max_children) {
            let what = format!("cannot run {} sub-agents concurrently", self.max_children);
            return Some(("agents.max_children", what, "give 1 to 64"));
        }
        if self.max_depth > MAX_DEPTH {
            let what = format!("sub-agents cannot nest {} deep", self.max_depth);
            return Some(("agents.max_depth", what, "give at most 8, or 0 for no sub-agents"));
        }
        let directory = &self.directory;
        let known = directory.is_empty() || directory.starts_with('/') || directory.starts_with("~/");
        (!known || directory.contains('\0')).then(|| {
            let what = format!("{directory:?} is not an absolute path");
            (
                "agents.directory",
                what,
                "give a path that begins with / or ~/, or leave it empty",
            )
        })
    }
}

/// The maximum number of concurrent sub-agents of one session.
const MAX_CHILDREN: u32 = 64;
/// The maximum depth of sub-agents.
const MAX_DEPTH: u32 = 8;
/// The maximum number of instruction file names.
const MAX_NAMES: usize = 16;
