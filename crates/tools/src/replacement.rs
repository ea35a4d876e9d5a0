//! The other form of ApplyPatch: replaces one text of a file, an expected number of times, perhaps by similarity.

use crate::change_set::{self, FileChange};
use crate::context::{Finished, ToolContext};
use crate::diff::change;
use crate::edit::{load, not_found_hint, require_seen, times};
use crate::matching::{Mismatch, replace};
use crate::pre_image::changed;
use crate::prepared::Prepared;
use crate::read::locate;
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::similarity::{Likeness, Unlike, similar};
use agentd_protocol::ToolOutcome;
use agentd_sandbox::Beneath;
use serde_json::Value;
use std::path::Path;

/// The default for the least similarity of a match.
const MIN_SIMILARITY: f64 = 0.92;

pub(crate) fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Finished {
    apply(prepared, ctx, abandoned).unwrap_or_else(Into::into)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn apply(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<Finished, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let before = load(&ctx.workdir, &path, ctx.limits.max_file_bytes)?;
    let replaced = replaced(prepared, &path, &before.content)?;
    if replaced.alike.is_some() {
        // An exact text proves that the model knows the file; a similar one does not.
        require_seen(&ctx.seen, &path, &before.content)?;
    }
    abandoned.stop(&prepared.name)?;
    let alike = replaced.alike.map(|alike| {
        let percent = alike.ratio * 100.0;
        format!(", by similarity: line {} is {percent:.0} % alike", alike.line)
    });
    let did = format!("{} replaced{}", times(replaced.count), alike.unwrap_or_default());
    let change = FileChange {
        path: path.clone(),
        before: Some(before),
        after: Some(replaced.content),
        mode: None,
    };
    change_set::apply(&ctx.workdir, &prepared.permit(ctx), std::slice::from_ref(&change))?;
    let said = |undo_id: &str| format!("Changed {} ({did}). Undo id: {undo_id}", path.display());
    Ok(changed(&ctx.call.to_string(), said, vec![change]))
}

struct Replaced {
    content: Vec<u8>,
    count: usize,
    /// The least similar of the replaced texts, unless all matched exactly.
    alike: Option<Likeness>,
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn replaced(prepared: &Prepared, path: &Path, content: &[u8]) -> Result<Replaced, ToolOutcome> {
    let (old, new) = (prepared.text("old"), prepared.text("new"));
    let expected =
        usize::try_from(prepared.number("expected_replacements").unwrap_or(1)).unwrap_or(usize::MAX);
    let name = path.display();
    match replace(content, old, new, true) {
        Ok((content, count)) if count == expected => Ok(Replaced {
            content,
            count,
            alike: None,
        }),
        Ok((_, count)) => Err(wrong_count(path, "`old` is", count, expected)),
        Err(Mismatch::NotFound { near }) if !prepared.flag("fuzzy") => {
            let hint = not_found_hint(near, "old");
            Err(refuse(
                Code::NotFound,
                format!("ApplyPatch: `old` is not in {name}. {hint}"),
            ))
        }
        Err(_) => by_similarity(prepared, path, content, expected),
    }
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn by_similarity(
    prepared: &Prepared,
    path: &Path,
    content: &[u8],
    expected: usize,
) -> Result<Replaced, ToolOutcome> {
    let min = prepared
        .input
        .get("min_similarity")
        .and_then(Value::as_f64)
        .unwrap_or(MIN_SIMILARITY);
    let failed = |why: String| {
        refuse(
            Code::FuzzyFailed,
            format!("ApplyPatch: {why} Read the file and copy the text."),
        )
    };
    let name = path.display();
    let found = similar(content, prepared.text("old"), min).map_err(|unlike| match unlike {
        Unlike::NotText => failed(format!(
            "{name} is not valid UTF-8, so its lines cannot be compared."
        )),
        Unlike::TooLong { max } => failed(format!(
            "`old` is longer than {max} bytes, too long to compare by similarity."
        )),
        Unlike::Best(None) => failed(format!("nothing in {name} is similar to `old`.")),
        Unlike::Best(Some(best)) => failed(format!(
            "nothing in {name} is similar enough to `old`: line {} is {:.0} % alike; {:.0} % is required.",
            best.line,
            best.ratio * 100.0,
            min * 100.0
        )),
    })?;
    if found.len() != expected {
        return Err(wrong_count(
            path,
            "texts similar to `old` are",
            found.len(),
            expected,
        ));
    }
    let mut changed = Vec::with_capacity(content.len());
    let mut from = 0;
    for like in &found {
        changed.extend_from_slice(content.get(from..like.start).unwrap_or_default());
        changed.extend_from_slice(prepared.text("new").as_bytes());
        from = like.end;
    }
    changed.extend_from_slice(content.get(from..).unwrap_or_default());
    let least = found
        .iter()
        .copied()
        .reduce(|least, other| if other.ratio < least.ratio { other } else { least });
    Ok(Replaced {
        content: changed,
        count: found.len(),
        alike: least,
    })
}

fn wrong_count(path: &Path, what: &str, count: usize, expected: usize) -> ToolOutcome {
    let text = format!(
        "ApplyPatch: {what} {count} times in {}, expected were {expected}. Add lines around it until it is unique, or set `expected_replacements`.",
        path.display()
    );
    refuse(Code::NotUnique, text)
}

/// Shows a person what the replacement would do, without doing it.
pub(crate) fn preview(prepared: &Prepared, workdir: &Beneath, max: u64) -> String {
    let attempt = workdir
        .relative(prepared.path())
        .map_err(|error| error.to_string())
        .and_then(|path| {
            let old = load(workdir, &path, max)
                .map_err(|refusal| refusal.llm_text)?
                .content;
            let new = replaced(prepared, &path, &old)
                .map_err(|refusal| refusal.llm_text)?
                .content;
            Ok(change(&path.to_string_lossy(), Some(&old), Some(&new)).text)
        });
    attempt.unwrap_or_else(|why| {
        let (old, new) = (prepared.text("old").as_bytes(), prepared.text("new").as_bytes());
        let wanted = change(prepared.path(), Some(old), Some(new));
        format!("In the current state, this patch fails: {why}\n{}", wanted.text)
    })
}
