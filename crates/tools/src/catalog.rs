//! The built-in tools as the model is told of them.

use crate::catalog_edit::{apply_patch, edit, multi_edit, undo_patch, write};
use crate::context::ToolLimits;
use crate::job_specs::{bash_kill, bash_poll, bash_start, bash_write};
use crate::plan::{exit_plan_mode, plan, skill};
use crate::repo_map::repo_map;
use crate::search::semantic_search;
use crate::spec::ToolSpec;
use crate::talk::{ask_user, todo_write};
use crate::task::task;
use crate::web_fetch::web_fetch;
use crate::yielding;
use agentd_protocol::EffectClass;
use serde_json::{Value, json};

/// All built-in tools, in the order in which models are told of them.
pub(crate) fn builtin(limits: &ToolLimits) -> Vec<ToolSpec> {
    let mut specs = vec![
        read(limits),
        write(),
        edit(),
        multi_edit(),
        apply_patch(),
        undo_patch(),
        ls(),
        glob(),
        grep(),
        bash(limits),
        bash_start(limits),
        bash_poll(),
        bash_write(),
        bash_kill(),
        todo_write(),
        ask_user(),
        exit_plan_mode(),
        plan(),
        skill(),
        task(),
    ];
    if limits.repo_map_tokens > 0 {
        specs.push(repo_map(limits));
    }
    if limits.search {
        specs.push(semantic_search());
    }
    if limits.web.enabled {
        specs.push(web_fetch(limits));
    }
    specs
}

pub(crate) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn read(limits: &ToolLimits) -> ToolSpec {
    ToolSpec {
        name: "Read".into(),
        aliases: &["read_file", "readfile", "view", "view_file", "open_file", "cat"],
        title: "Read a file".into(),
        description: format!(
            "Reads a text file of the working directory. Lines come numbered as `number|text`; the numbers are not part of the file. \
             At most {} lines or {} bytes are given at once; continue with `offset`. Read a file before you edit or overwrite it.",
            limits.max_lines, limits.max_bytes
        ),
        schema: object(
            &json!({
                "file_path": { "type": "string", "minLength": 1, "description": "The file, relative to the working directory" },
                "offset": { "type": "integer", "minimum": 1, "description": "The first line, from 1" },
                "limit": { "type": "integer", "minimum": 1, "description": "How many lines" }
            }),
            &["file_path"],
        ),
        example: json!({ "file_path": "src/main.rs", "offset": 1, "limit": 200 }),
        effect: EffectClass::Read,
        idempotent: true,
        server: None,
    }
}

fn ls() -> ToolSpec {
    ToolSpec {
        name: "Ls".into(),
        aliases: &["list_dir", "list", "list_directory", "list_files", "dir"],
        title: "List a directory".into(),
        description: "Lists a directory: directories end with `/`, links with `@`, files come with their size in bytes.".to_owned(),
        schema: object(
            &json!({ "path": { "type": "string", "minLength": 1, "description": "The directory; default: the working directory" } }),
            &[],
        ),
        example: json!({ "path": "src" }),
        effect: EffectClass::Read,
        idempotent: true,
        server: None,
    }
}

fn glob() -> ToolSpec {
    ToolSpec {
        name: "Glob".into(),
        aliases: &["glob_file_search", "find_files", "file_search", "glob_search"],
        title: "Find files by name".into(),
        description: "Finds files whose path matches a glob pattern, sorted by path. A pattern without `/` matches names at any depth; `**` matches any \
                      directories. Files ignored by .gitignore are left out, hidden ones too unless the pattern names them."
            .to_owned(),
        schema: object(
            &json!({
                "pattern": { "type": "string", "minLength": 1, "description": "For example `**/*.rs` or `*.toml`" },
                "path": { "type": "string", "minLength": 1, "description": "The directory to search; default: the working directory" }
            }),
            &["pattern"],
        ),
        example: json!({ "pattern": "src/**/*.rs" }),
        effect: EffectClass::Read,
        idempotent: true,
        server: None,
    }
}

fn grep() -> ToolSpec {
    ToolSpec {
        name: "Grep".into(),
        aliases: &["grep_search", "search", "ripgrep", "rg", "search_files", "grep_files"],
        title: "Search in files".into(),
        description: "Searches file contents with a regular expression (Rust syntax, line by line). Files ignored by .gitignore, hidden and binary files are \
                      left out, unless `path` or `glob` names them."
            .to_owned(),
        schema: object(
            &json!({
                "pattern": { "type": "string", "minLength": 1, "description": "The regular expression" },
                "path": { "type": "string", "minLength": 1, "description": "A file or directory; default: the working directory" },
                "glob": { "type": "string", "minLength": 1, "description": "Only files whose path matches, for example `*.rs`" },
                "case_insensitive": { "type": "boolean", "description": "Ignore case" },
                "context": { "type": "integer", "minimum": 0, "maximum": 20, "description": "Lines to show around each hit" },
                "output_mode": {
                    "enum": ["content", "files_with_matches", "count"],
                    "description": "Lines (default), only the files' paths, or hits per file"
                }
            }),
            &["pattern"],
        ),
        example: json!({ "pattern": "fn main\\(", "glob": "*.rs", "context": 2 }),
        effect: EffectClass::Read,
        idempotent: true,
        server: None,
    }
}

fn bash(limits: &ToolLimits) -> ToolSpec {
    ToolSpec {
        name: "Bash".into(),
        aliases: &[
            "exec",
            "run_cmd",
            "shell",
            "run_command",
            "execute_command",
            "run_terminal_cmd",
            "terminal",
            "sh",
        ],
        title: "Run a command".into(),
        description: format!(
            "Runs a command with bash in the working directory, without a terminal or input. Its output and error output come together, with the exit code; \
             of a long output the beginning and the end. It is stopped after `timeout_ms` (default {}, at most {}). Each call is a new shell: `cd` and variables do not stay. {}",
            limits.bash_timeout_ms,
            limits.bash_timeout_max_ms,
            yielding::described(limits)
        ),
        schema: object(
            &json!({
                "command": { "type": "string", "minLength": 1, "description": "The command line" },
                "timeout_ms": { "type": "integer", "minimum": 1, "maximum": limits.bash_timeout_max_ms, "description": "Milliseconds it may take" },
                "yield_ms": { "type": "integer", "minimum": 0, "maximum": limits.bash_timeout_max_ms, "description": "Milliseconds to wait before it goes on in the background" },
                "description": { "type": "string", "description": "In a few words, what it does" }
            }),
            &["command"],
        ),
        example: json!({ "command": "cargo test", "timeout_ms": 300_000.min(limits.bash_timeout_max_ms) }),
        effect: EffectClass::Exec,
        idempotent: false,
        server: None,
    }
}
