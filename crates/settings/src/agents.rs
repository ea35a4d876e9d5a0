//! `[agents]`: where an agent's instructions, custom agents, skills and commands are looked for.

use serde::{Deserialize, Serialize};

/// `[agents]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentsConfig {
    /// Names of instruction files, in the order in which those of one directory are read.
    pub instruction_files: Vec<String>,
    /// Bytes of instructions that a prompt takes, all files together.
    pub instruction_bytes: u64,
    /// The operator's directory: instructions for all projects, `agents`, `skills`, `commands`. Empty: `agentd` in the
    /// user's configuration directory.
    pub directory: String,
    /// Whether `.agentd` of a working directory is looked at, too.
    pub workdir: bool,
    /// Files that one input may attach with `@`.
    pub mentions: u32,
    /// Bytes that the files of one input may have together.
    pub mention_bytes: u64,
}

impl Default for AgentsConfig {
    fn default() -> Self {
        Self {
            instruction_files: ["AGENTS.md", "CLAWDCODE.md", "ETCODE.md", "CLUDE.md", "CLAUDE.md"]
                .map(str::to_owned)
                .to_vec(),
            instruction_bytes: 32_768,
            directory: String::new(),
            workdir: true,
            mentions: 20,
            mention_bytes: 262_144,
        }
    }
}

impl AgentsConfig {
    /// The first thing that makes no sense: its key, what, and the remedy.
    pub(crate) fn problem(&self) -> Option<(&'static str, String, &'static str)> {
        let plain = |name: &&String| {
            !name.is_empty() && !name.contains(['/', '\0']) && !matches!(name.as_str(), "." | "..")
        };
        if let Some(bad) = self.instruction_files.iter().find(|name| !plain(name)) {
            let what = format!("{bad:?} is no file name");
            return Some((
                "agents.instruction_files",
                what,
                "give names such as AGENTS.md, without a directory",
            ));
        }
        if self.instruction_files.len() > MAX_NAMES {
            let what = format!("{} names are too many", self.instruction_files.len());
            return Some(("agents.instruction_files", what, "give at most 16"));
        }
        let directory = &self.directory;
        let known = directory.is_empty() || directory.starts_with('/') || directory.starts_with("~/");
        (!known || directory.contains('\0')).then(|| {
            let what = format!("{directory:?} is no absolute path");
            (
                "agents.directory",
                what,
                "give a path that begins with / or ~/, or leave it empty",
            )
        })
    }
}

/// The most names of instruction files.
const MAX_NAMES: usize = 16;
