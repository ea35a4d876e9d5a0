//! Write: writes a whole file, new or known.

use crate::catalog::object;
use crate::change_set::{self, Before, FileChange};
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::diff::change;
use crate::edit::{load, require_seen};
use crate::matching::{BOM, ends_lines_with_crlf};
use crate::pre_image::changed;
use crate::prepared::Prepared;
use crate::read::{explain, locate};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::seen::sha256;
use crate::spec::ToolSpec;
use crate::tool::{About, FILE_WORDS, Runs, Spelling, Tool};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus};
use agentd_sandbox::{Beneath, SandboxError};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::Path;

/// Writes a whole file.
pub(crate) struct Write;

impl Tool for Write {
    fn name(&self) -> &'static str {
        "Write"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["write_file", "create_file", "writefile", "save_file"],
            title: "Write a file".into(),
            description: "Creates a file with its directories, or replaces the whole content of a file. Read an existing file first. To change a part of a file, edit it."
                .to_owned(),
            schema: object(
                &json!({
                    "file_path": { "type": "string", "minLength": 1 },
                    "content": { "type": "string" }
                }),
                &["file_path", "content"],
            ),
            example: json!({ "file_path": "notes.md", "content": "# Notes\n" }),
            effect: EffectClass::Write,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        About::writes("file_path", input)
    }

    fn runs(&self) -> Runs {
        Runs::Files(run)
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[
            ("file_path", FILE_WORDS),
            ("content", &["contents", "text", "file_content"]),
        ]
    }

    fn preview(&self, call: &Prepared, workdir: &Beneath, max: u64) -> Option<String> {
        Some(preview(call, workdir, max))
    }
}

fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Finished {
    write(prepared, ctx, abandoned).unwrap_or_else(Into::into)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn write(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<Finished, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let content = prepared.text("content").as_bytes();
    let max = ctx.limits.max_file_bytes;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > max {
        let text = format!(
            "Write: the content has {} bytes; the limit is {max}. Write it in parts with Bash.",
            content.len()
        );
        return Err(refuse(Code::TooLarge, text));
    }
    let before = existing(ctx, &path)?;
    let content = &*match &before {
        Some(before) => like(&before.content, content),
        None => Cow::Borrowed(content),
    };
    let name = path.display();
    if before.as_ref().is_some_and(|before| before.content == content) {
        let outcome = ToolOutcome::text(ToolStatus::Ok, format!("{name} already has this content."));
        let details = json!({ "path": path.to_string_lossy(), "sha256": sha256(content) });
        return Ok(ToolOutcome {
            details: Some(details),
            ..outcome
        }
        .into());
    }
    if let Some(before) = &before {
        require_seen(&ctx.seen, &path, &before.content)?;
    }
    abandoned.stop(&prepared.name)?;
    let lines = content.iter().filter(|byte| **byte == b'\n').count();
    let verb = if before.is_some() { "Replaced" } else { "Created" };
    let said = format!("{verb} {name} ({lines} lines). Undo id: ");
    let change = FileChange {
        path: path.clone(),
        before,
        after: Some(content.to_vec()),
        mode: None,
    };
    change_set::apply(&ctx.workdir, &prepared.permit(ctx), std::slice::from_ref(&change))?;
    Ok(changed(
        &ctx.call.to_string(),
        |undo_id| said + undo_id,
        vec![change],
    ))
}

/// The new content with the line ends and the byte order mark of the old one: models write neither.
fn like<'a>(old: &[u8], new: &'a [u8]) -> Cow<'a, [u8]> {
    let mut content = Cow::Borrowed(new);
    if ends_lines_with_crlf(old) && !new.contains(&b'\r') {
        let lines = new.split(|byte| *byte == b'\n').collect::<Vec<_>>();
        content = Cow::Owned(lines.join(&b"\r\n"[..]));
    }
    if old.starts_with(BOM) && !new.starts_with(BOM) {
        content = Cow::Owned([BOM, &content].concat());
    }
    content
}

/// The existing text file, if there is one.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn existing(ctx: &ToolContext, path: &Path) -> Result<Option<Before>, ToolOutcome> {
    match ctx.workdir.check_writable(path) {
        Ok(()) => load(&ctx.workdir, path, ctx.limits.max_file_bytes).map(Some),
        Err(SandboxError::NotFound { .. }) => Ok(None),
        Err(error) => Err(explain(&ctx.workdir, path, &error)),
    }
}

/// Shows a person what the write would do, without doing it.
fn preview(prepared: &Prepared, workdir: &Beneath, max: u64) -> String {
    let content = prepared.text("content").as_bytes();
    let path = match workdir.relative(prepared.path()) {
        Ok(path) => path,
        Err(error) => return format!("In the current state, this write fails: {error}"),
    };
    let old = workdir.read(&path, max).map(|(old, _)| old);
    match &old {
        Ok(old) => change(&path.to_string_lossy(), Some(old), Some(&like(old, content))).text,
        Err(SandboxError::NotFound { .. }) => change(&path.to_string_lossy(), None, Some(content)).text,
        // Show the new content, even though the old one cannot be compared.
        Err(error) => {
            let new = change(&path.to_string_lossy(), None, Some(content)).text;
            format!("agentd cannot show the current content: {error}\n{new}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_line_ends_and_its_byte_order_mark() {
        for (old, new, expected) in [
            ("a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"),
            ("a\r\n", "x\ny", "x\r\ny"),
            ("a\r\n", "x\r\ny\n", "x\r\ny\n"),
            ("a\r\nb\n", "x\ny\n", "x\ny\n"),
            ("a", "x\ny\n", "x\ny\n"),
            ("\u{feff}a\n", "x\n", "\u{feff}x\n"),
            ("\u{feff}a\r\n", "\u{feff}x\n", "\u{feff}x\r\n"),
            ("", "x\n", "x\n"),
        ] {
            assert_eq!(
                &*like(old.as_bytes(), new.as_bytes()),
                expected.as_bytes(),
                "{old:?}"
            );
        }
    }
}
