//! Ls: lists a directory.

use crate::catalog::object;
use crate::context::{ToolContext, ToolLimits};
use crate::prepared::Prepared;
use crate::read::{explain, locate};
use crate::shape::page;
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Spelling, Tool};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus, Truncated};
use agentd_sandbox::{Entry, EntryKind, SandboxError};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The most entries to read.
const MAX_ENTRIES: usize = 10_000;

/// Lists a directory.
pub(crate) struct Ls;

impl Tool for Ls {
    fn name(&self) -> &'static str {
        "Ls"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["list_dir", "list", "list_directory", "list_files", "dir"],
            title: "List a directory".into(),
            description:
                "Lists a directory: `/` marks directories, `@` links; files come with their size in bytes."
                    .to_owned(),
            schema: object(
                &json!({ "path": { "type": "string", "minLength": 1, "description": "Default: the working directory" } }),
                &[],
            ),
            example: json!({ "path": "src" }),
            effect: EffectClass::Read,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::below("path", None, input))
    }

    fn runs(&self) -> Runs {
        Runs::Files(|call, ctx, _| run(call, ctx).into())
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[(
            "path",
            &[
                "directory",
                "dir",
                "target_directory",
                "dir_path",
                "relative_workspace_path",
            ],
        )]
    }
}

fn run(prepared: &Prepared, ctx: &ToolContext) -> ToolOutcome {
    let path = match locate(prepared, ctx) {
        Ok(path) => path,
        Err(refusal) => return refusal,
    };
    let (entries, more) = match ctx.workdir.list(&path, MAX_ENTRIES) {
        Ok(listed) => listed,
        Err(
            error @ SandboxError::WrongKind {
                found: "a regular file",
                ..
            },
        ) => {
            let mut outcome = explain(&ctx.workdir, &path, &error);
            outcome.llm_text.push_str(" Use Read to read it.");
            return outcome;
        }
        Err(error) => return explain(&ctx.workdir, &path, &error),
    };
    if entries.is_empty() {
        return ToolOutcome::text(ToolStatus::Ok, format!("[{} is empty]", path.display()));
    }
    let max_lines = usize::try_from(ctx.limits.max_lines).unwrap_or(usize::MAX);
    let max_bytes = usize::try_from(ctx.limits.max_bytes).unwrap_or(usize::MAX);
    let lines: Vec<String> = entries.iter().map(line).collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    let page = page(
        lines.iter().map(|line| Cow::Borrowed(line.as_str())),
        max_lines,
        max_bytes,
    );
    let mut text = page.text;
    let complete = page.complete && !more;
    if !complete {
        let all = if more {
            format!("more than {MAX_ENTRIES}")
        } else {
            entries.len().to_string()
        };
        text.push_str(&format!(
            "[{} of {all} entries. Use Glob with a pattern to narrow it down.]\n",
            page.lines
        ));
    }
    let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    ToolOutcome {
        details: Some(json!({ "entries": count, "complete": complete })),
        truncated: (!complete).then(|| Truncated {
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            lines: count,
            spill: None,
        }),
        ..ToolOutcome::text(ToolStatus::Ok, text)
    }
}

fn line(entry: &Entry) -> String {
    match entry.kind {
        EntryKind::Directory => format!("{}/", entry.name),
        EntryKind::Symlink => format!("{}@", entry.name),
        EntryKind::Special => format!("{} (special)", entry.name),
        EntryKind::File => format!("{} ({} bytes)", entry.name, entry.bytes),
    }
}
