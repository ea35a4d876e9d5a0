//! Ls: the entries of a directory.

use crate::context::ToolContext;
use crate::prepared::Prepared;
use crate::read::{explain, locate};
use crate::shape::page;
use agentd_protocol::{ToolOutcome, ToolStatus, Truncated};
use agentd_sandbox::{Entry, EntryKind, SandboxError};
use serde_json::json;
use std::borrow::Cow;

/// The most entries that are looked at.
const MAX_ENTRIES: usize = 10_000;

pub(crate) fn run(prepared: &Prepared, ctx: &ToolContext) -> ToolOutcome {
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
