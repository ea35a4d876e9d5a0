//! The registry of built-in tools: one line each, in the order in which models see them.

use crate::apply_patch::ApplyPatch;
use crate::bash::Bash;
use crate::edit::Edit;
use crate::glob::Glob;
use crate::grep::Grep;
use crate::job_input::BashWrite;
use crate::job_tool::JobTool;
use crate::job_tools::{BashKill, BashPoll, BashStart};
use crate::loop_tools::{AskUser, TodoWrite};
use crate::ls::Ls;
use crate::multi_edit::MultiEdit;
use crate::plan::{ExitPlanMode, Plan};
use crate::read::Read;
use crate::repo_map::RepoMap;
use crate::search::SemanticSearch;
use crate::skill::Skill;
use crate::task::Task;
use crate::tool::{Runs, Tool};
use crate::undo::UndoPatch;
use crate::web_fetch::WebFetch;
use crate::write::Write;
use agentd_protocol::Preset;
use serde_json::{Value, json};

/// All built-in tools.
static TOOLS: [&dyn Tool; 24] = [
    &Read,
    &Write,
    &Edit,
    &MultiEdit,
    &ApplyPatch,
    &UndoPatch,
    &Ls,
    &Glob,
    &Grep,
    &Bash,
    &JobTool,
    &BashStart,
    &BashPoll,
    &BashWrite,
    &BashKill,
    &TodoWrite,
    &AskUser,
    &ExitPlanMode,
    &Plan,
    &Skill,
    &Task,
    &RepoMap,
    &SemanticSearch,
    &WebFetch,
];

pub(crate) fn all() -> impl Iterator<Item = &'static dyn Tool> {
    TOOLS.iter().copied()
}

/// The built-in tool with a canonical name.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static dyn Tool> {
    all().find(|tool| tool.name() == name)
}

/// The tool that changes files, and the tool for background commands, of models that are trained on patches; and of all
/// others. The rest do the same in other ways: a session has them only if it or the configuration names them.
const PATCHING: &[&str] = &[
    "Edit",
    "MultiEdit",
    "UndoPatch",
    "BashStart",
    "BashPoll",
    "BashWrite",
    "BashKill",
];
const EDITING: &[&str] = &[
    "ApplyPatch",
    "MultiEdit",
    "UndoPatch",
    "BashStart",
    "BashPoll",
    "BashWrite",
    "BashKill",
];

/// The preset `react` changes files with patches and undoes them, whatever the model.
const REACT: &[&str] = &[
    "Edit",
    "MultiEdit",
    "BashStart",
    "BashPoll",
    "BashWrite",
    "BashKill",
];

/// Whether sessions have this tool unless they name their tools. `template` is the model's prompt template; without one
/// (scripts) they have all.
#[must_use]
pub fn is_usual(tool: &str, template: &str, preset: Preset) -> bool {
    let others = match (template, preset) {
        ("", _) => &[][..],
        (_, Preset::React) => REACT,
        ("openai", _) => PATCHING,
        _ => EDITING,
    };
    !others.contains(&tool)
}

/// Whether calls of the tool become sub-agents.
#[must_use]
pub fn delegates(name: &str) -> bool {
    builtin(name).is_some_and(|tool| matches!(tool.runs(), Runs::SubAgent))
}

pub(crate) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
