//! Read: reads a text file page by page.

use crate::catalog::object;
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::image;
use crate::large::{self, Lines};
use crate::prepared::Prepared;
use crate::refusal::{Code, from_sandbox, refuse};
use crate::run::on_files;
use crate::seen::sha256;
use crate::shape::{LINE_CHARS, cut_line, is_lfs_pointer, page};
use crate::spec::ToolSpec;
use crate::tool::{About, FILE_WORDS, Runs, Spelling, Tool};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus, Truncated, image_media_type, nearest};
use agentd_sandbox::{Beneath, OpenFile, SandboxError};
use memchr::{memchr, memchr_iter};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The prefix that marks the name of a stored output in place of a path.
const BLOB: &str = "blob:";

/// Reads a page of a file.
pub(crate) struct Read;

impl Tool for Read {
    fn name(&self) -> &'static str {
        "Read"
    }

    fn spec(&self, limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["read_file", "readfile", "view", "view_file", "open_file", "cat"],
            title: "Read a file".into(),
            description: format!(
                "Reads a text file, an image or a stored output (`blob:...`). Each line comes as its number, a tab and the text; number and tab are not \
                 part of the file. Returns at most {} lines or {} bytes; continue with `offset`. Read a file before you edit or overwrite it.",
                limits.max_lines, limits.max_bytes
            ),
            schema: object(
                &json!({
                    "file_path": { "type": "string", "minLength": 1, "description": "Relative to the working directory" },
                    "offset": { "type": "integer", "minimum": 1, "description": "First line, from 1" },
                    "limit": { "type": "integer", "minimum": 1, "description": "Number of lines" }
                }),
                &["file_path"],
            ),
            example: json!({ "file_path": "src/main.rs", "offset": 1, "limit": 200 }),
            effect: EffectClass::Read,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        About::reads("file_path", input)
    }

    fn runs(&self) -> Runs {
        Runs::Worker(|call, ctx| Box::pin(start(call, ctx)))
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[("file_path", FILE_WORDS)]
    }
}

async fn start(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    match blob(prepared) {
        Some(name) => read_blob(prepared, ctx, name).await.into(),
        None => {
            on_files(prepared.clone(), ctx.clone(), |call, ctx, _| {
                run(call, ctx).into()
            })
            .await
        }
    }
}

fn run(prepared: &Prepared, ctx: &ToolContext) -> ToolOutcome {
    read(prepared, ctx).unwrap_or_else(|refusal| refusal)
}

/// The name, or a prefix of the name, of the stored output that a call wants to read.
fn blob(prepared: &Prepared) -> Option<&str> {
    let name = prepared.path().strip_prefix(BLOB)?;
    let hex = name.bytes().all(|byte| byte.is_ascii_hexdigit());
    (hex && name.len() >= 8).then_some(name)
}

/// Reads an output that was too long for its result. Only outputs of the same session can be read.
async fn read_blob(prepared: &Prepared, ctx: &ToolContext, name: &str) -> ToolOutcome {
    let Some(full) = ctx.seen.kept_output(name) else {
        let text = format!(
            "Read: this session has no stored output {BLOB}{name}. A truncated result names its stored output."
        );
        return refuse(Code::NotFound, text);
    };
    let content = match ctx.blobs.fetch(full).await {
        Ok(Some(content)) => content,
        Ok(None) => {
            return refuse(Code::NotFound, format!("Read: {BLOB}{name} no longer exists."));
        }
        Err(why) => {
            return refuse(
                Code::Tool,
                format!("Read: cannot read {BLOB}{name}: {why}. Try again."),
            );
        }
    };
    let path = PathBuf::from(format!("{BLOB}{name}"));
    if let Some(kind) = binary_kind(&content) {
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        return refuse_binary(&path, kind, bytes);
    }
    let mut outcome = show(prepared, ctx, &path, &content, None);
    if outcome.status == ToolStatus::Ok {
        outcome.details = Some(json!({ "blob": full, "bytes": content.len() }));
    }
    outcome
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn read(prepared: &Prepared, ctx: &ToolContext) -> Result<ToolOutcome, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let mut opened = open(&ctx.workdir, &path)?;
    let max = ctx.limits.max_file_bytes;
    let failed = |error| refuse(Code::Tool, format!("Cannot read {}: {error}.", path.display()));
    let mut content = Vec::new();
    let taken = opened
        .file
        .by_ref()
        .take(max.max(ctx.limits.max_image_bytes).saturating_add(1))
        .read_to_end(&mut content);
    taken.map_err(failed)?;
    if image_media_type(&content).is_some() {
        return image::show(&path, &content, &ctx.limits);
    }
    let too_big = u64::try_from(content.len()).unwrap_or(u64::MAX) > max;
    if let Some(kind) = binary_kind(&content) {
        return Err(refuse_binary(&path, kind, opened.bytes));
    }
    if !too_big {
        return Ok(show(prepared, ctx, &path, &content, None));
    }
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let part = large::part(&mut opened.file, first_of(prepared), max).map_err(failed)?;
    Ok(show(
        prepared,
        ctx,
        &path,
        &part.content,
        Some((opened.bytes, part.before, part.lines)),
    ))
}

fn first_of(prepared: &Prepared) -> usize {
    usize::try_from(prepared.number("offset").unwrap_or(1)).unwrap_or(usize::MAX)
}

/// Shows a page of a content. `part_of`: the bytes of the file of which the content is a part, the number of lines before
/// the part, and of all lines.
fn show(
    prepared: &Prepared,
    ctx: &ToolContext,
    path: &Path,
    content: &[u8],
    part_of: Option<(u64, usize, Lines)>,
) -> ToolOutcome {
    let text = String::from_utf8_lossy(content);
    let lossy = matches!(text, Cow::Owned(_));
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (before, total) = match part_of {
        Some((_, before, total)) => (before, total),
        None => (0, Lines::Exactly(count_lines(text))),
    };
    let first = first_of(prepared);
    let name = path.display();
    if total == Lines::Exactly(0) {
        let outcome = ToolOutcome::text(ToolStatus::Ok, format!("[{name} is empty]"));
        return ToolOutcome {
            details: Some(details(path, content, None, 0)),
            ..outcome
        };
    }
    if let Some(why) = too_far(first, total, content) {
        return refuse(
            Code::InvalidArgs,
            format!("Read: `offset` {first} is {why}: {name} has {total} lines."),
        );
    }
    let wanted = usize::try_from(prepared.number("limit").unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let max_lines = usize::try_from(ctx.limits.max_lines)
        .unwrap_or(usize::MAX)
        .min(wanted);
    let max_bytes = usize::try_from(ctx.limits.max_bytes).unwrap_or(usize::MAX);
    let numbered = from_line(text, first - before)
        .lines()
        .enumerate()
        .map(|(at, line)| Cow::Owned(format!("{}\t{}", first + at, cut_line(line, LINE_CHARS))));
    let page = page(numbered, max_lines, max_bytes);
    let last = first - 1 + page.lines;
    let bytes = part_of.map(|(bytes, ..)| bytes);
    let mut notes = notes(path, bytes, (first, last), total);
    if lossy {
        notes.push_str("[The file is not valid UTF-8; invalid bytes are shown as \u{fffd}.]\n");
    }
    if is_lfs_pointer(content) {
        notes.push_str("[This is a pointer of Git LFS; the file's own content is not here.]\n");
    }
    let mut outcome = ToolOutcome::text(ToolStatus::Ok, format!("{}{notes}", page.text));
    outcome.display = Some(format!("{name}: lines {first} to {last} of {total}"));
    outcome.details = Some(details(path, content, bytes, total.known()));
    outcome.truncated = (!page.complete && page.lines < wanted || part_of.is_some()).then(|| Truncated {
        bytes: bytes.unwrap_or_else(|| u64::try_from(content.len()).unwrap_or(u64::MAX)),
        lines: u64::try_from(total.known()).unwrap_or(u64::MAX),
        spill: None,
    });
    outcome
}

/// Why a page cannot begin with this line.
fn too_far(first: usize, total: Lines, content: &[u8]) -> Option<&'static str> {
    match total.end_before(first) {
        true => Some("past the end"),
        false => content
            .is_empty()
            .then_some("too far behind for Read; use Bash with `tail` or `sed -n`"),
    }
}

/// Tells the model whether the file is too large to be edited, and whether there is more.
fn notes(path: &Path, too_many: Option<u64>, (first, last): (usize, usize), total: Lines) -> String {
    let mut notes = String::new();
    if let Some(bytes) = too_many {
        notes.push_str(&format!(
            "[{} has {bytes} bytes, too many for Edit. Search it with Grep; change it with Bash and `sed`.]\n",
            path.display()
        ));
    }
    if !total.end_before(last + 1) {
        notes.push_str(&format!(
            "[Lines {first} to {last} of {total}. Continue with offset={}.]\n",
            last + 1
        ));
    }
    notes
}

/// Counts lines as [`str::lines`] does.
fn count_lines(text: &str) -> usize {
    let ends = memchr_iter(b'\n', text.as_bytes()).count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The text from line `first` on, counted from 1; empty if there is no such line.
fn from_line(text: &str, first: usize) -> &str {
    let Some(before) = first.checked_sub(2) else {
        return text;
    };
    let end = memchr_iter(b'\n', text.as_bytes()).nth(before);
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

/// A file that was not read to its end does not count as known, so it cannot be edited.
fn details(path: &Path, content: &[u8], cut_of: Option<u64>, lines: usize) -> serde_json::Value {
    let path = path.to_string_lossy();
    match cut_of {
        None => json!({ "path": path, "sha256": sha256(content), "bytes": content.len(), "lines": lines }),
        Some(bytes) => json!({ "path": path, "bytes": bytes }),
    }
}

/// The path of a call, relative to the working directory.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn locate(prepared: &Prepared, ctx: &ToolContext) -> Result<PathBuf, ToolOutcome> {
    ctx.workdir
        .relative(prepared.path())
        .map_err(|error| from_sandbox(&error))
}

/// Opens exactly the file that was judged. If links led elsewhere, the error tells the model where.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn open(workdir: &Beneath, path: &Path) -> Result<OpenFile, ToolOutcome> {
    let opened = workdir
        .open_file(path)
        .map_err(|error| explain(workdir, path, &error))?;
    if opened.real == path {
        return Ok(opened);
    }
    let text = format!(
        "{} is, or leads through, a symbolic link. The file is {}: use that path.",
        path.display(),
        opened.real.display()
    );
    Err(refuse(Code::Denied, text))
}

/// Explains an error with a path, and what to do instead.
pub(crate) fn explain(workdir: &Beneath, path: &Path, error: &SandboxError) -> ToolOutcome {
    let mut outcome = from_sandbox(error);
    match error {
        SandboxError::NotFound { .. } => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            let near = workdir.list(parent, 1000).ok().and_then(|(entries, _)| {
                let name = path.file_name()?.to_str()?;
                let found = nearest(name, entries.iter().map(|entry| entry.name.as_str()))?;
                if found == name {
                    return Some("The name is a symbolic link, and its target does not exist.".to_owned());
                }
                let parent = Some(parent).filter(|parent| *parent != Path::new("."));
                let near = parent.map_or_else(|| found.into(), |parent| parent.join(found));
                Some(format!("Did you mean {}?", near.display()))
            });
            let hint = near.unwrap_or_else(|| "Use Glob or Ls to find the right path.".to_owned());
            let hint = format!(" {hint}");
            outcome.llm_text.push_str(&hint);
        }
        SandboxError::WrongKind {
            found: "a directory", ..
        } => outcome.llm_text.push_str(" Use Ls to list it."),
        _ => {}
    }
    outcome
}

pub(crate) fn refuse_binary(path: &Path, kind: &str, bytes: u64) -> ToolOutcome {
    let hint = match kind {
        "a PDF document" => "Use Bash with a program that extracts its text, such as `pdftotext FILE -`.",
        _ => "It is not text; use Bash with a program that can read the format.",
    };
    refuse(
        Code::Binary,
        format!("{} is {kind} of {bytes} bytes. {hint}", path.display()),
    )
}

/// The kind of a content that is not text.
pub(crate) fn binary_kind(content: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 10] = [
        (b"\x89PNG\r\n", "an image"),
        (b"\xff\xd8\xff", "an image"),
        (b"GIF8", "an image"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"\x7fELF", "an ELF program"),
        (b"\xca\xfe\xba\xbe", "compiled code"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
    ];
    if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return Some("an image");
    }
    let known = KINDS
        .iter()
        .find(|(magic, _)| content.starts_with(magic))
        .map(|(_, kind)| *kind);
    known.or_else(|| {
        let beginning = content.get(..8192).unwrap_or(content);
        memchr(0, beginning).map(|_| "a binary file")
    })
}

#[cfg(test)]
mod tests {
    use super::{count_lines, from_line};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_are_those_of_the_standard_library(text in "[a\r\n\u{e4}]{0,40}", first in 1_usize..12) {
            prop_assert_eq!(count_lines(&text), text.lines().count());
            let ours: Vec<&str> = from_line(&text, first).lines().collect();
            let theirs: Vec<&str> = text.lines().skip(first - 1).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
