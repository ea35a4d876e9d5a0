//! Write: a whole file, new or known.

use crate::context::ToolContext;
use crate::diff::change;
use crate::edit::{load, require_seen};
use crate::prepared::Prepared;
use crate::read::{explain, locate};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::seen::sha256;
use agentd_protocol::{ToolOutcome, ToolStatus};
use agentd_sandbox::{Beneath, SandboxError};
use serde_json::json;
use std::path::Path;

pub(crate) fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> ToolOutcome {
    write(prepared, ctx, abandoned).unwrap_or_else(|refusal| refusal)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn write(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<ToolOutcome, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let content = prepared.text("content").as_bytes();
    let max = ctx.limits.max_file_bytes;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > max {
        let text = format!(
            "Write: the content has {} bytes, at most {max} are taken. Write it in parts with Bash.",
            content.len()
        );
        return Err(refuse(Code::TooLarge, text));
    }
    let failed = |error: &SandboxError| explain(&ctx.workdir, &path, error);
    let lines = content.iter().filter(|byte| **byte == b'\n').count();
    match ctx.workdir.check_writable(&path) {
        Err(SandboxError::NotFound { .. }) => {
            stop_if(abandoned)?;
            ctx.workdir
                .create_new(&path, content)
                .map_err(|error| failed(&error))?;
            Ok(written(
                &format!("Created {} ({lines} lines).", path.display()),
                &path,
                None,
                content,
            ))
        }
        Err(error) => Err(failed(&error)),
        Ok(()) => {
            let (old, version) = load(&ctx.workdir, &path, max)?;
            if old == content {
                return Ok(written(
                    &format!("{} has this content already.", path.display()),
                    &path,
                    Some(&old),
                    content,
                ));
            }
            require_seen(&ctx.seen, &path, &old)?;
            stop_if(abandoned)?;
            ctx.workdir
                .replace(&path, content, &version)
                .map_err(|error| failed(&error))?;
            Ok(written(
                &format!("Replaced {} ({lines} lines).", path.display()),
                &path,
                Some(&old),
                content,
            ))
        }
    }
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn stop_if(abandoned: &Abandoned) -> Result<(), ToolOutcome> {
    if abandoned.yes() {
        Err(refuse(
            Code::Tool,
            "Write was cancelled before it changed anything.",
        ))
    } else {
        Ok(())
    }
}

/// The result of a change: a word for the model, the diff for people, the hashes for the session's memory.
pub(crate) fn written(said: &str, path: &Path, old: Option<&[u8]>, new: &[u8]) -> ToolOutcome {
    let name = path.to_string_lossy();
    let change = change(&name, old, new);
    ToolOutcome {
        display: Some(change.text),
        details: Some(json!({
            "path": name,
            "sha256": sha256(new),
            "sha256_before": old.map(sha256),
            "added": change.added,
            "removed": change.removed,
        })),
        ..ToolOutcome::text(ToolStatus::Ok, said)
    }
}

/// What the write would do, for people, without doing it.
pub(crate) fn preview(prepared: &Prepared, workdir: &Beneath, max: u64) -> String {
    let content = prepared.text("content").as_bytes();
    let path = match workdir.relative(prepared.path()) {
        Ok(path) => path,
        Err(error) => return format!("As things are this write fails: {error}"),
    };
    let old = workdir.read(&path, max).map(|(old, _)| old);
    match &old {
        Ok(old) => change(&path.to_string_lossy(), Some(old), content).text,
        Err(SandboxError::NotFound { .. }) => change(&path.to_string_lossy(), None, content).text,
        Err(error) => format!("As things are this write fails: {error}"),
    }
}
