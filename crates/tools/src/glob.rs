//! Glob: finds files by name.

use crate::catalog::object;
use crate::context::{ToolContext, ToolLimits};
use crate::detail::sought;
use crate::prepared::Prepared;
use crate::read::{explain, locate};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::shape::page;
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Spelling, Tool};
use crate::walk::{Patience, files, matcher, names_hidden, with_brackets};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus, Truncated};
use agentd_sandbox::{Beneath, EntryKind, SandboxError};
use globset::GlobSet;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The most paths to collect.
const MAX_PATHS: usize = 1_000;

/// Finds files by name.
pub(crate) struct Glob;

impl Tool for Glob {
    fn name(&self) -> &'static str {
        "Glob"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["glob_file_search", "find_files", "file_search", "glob_search"],
            title: "Find files by name".into(),
            description: "Finds files by a glob pattern, sorted by path. A pattern without `/` matches names at any depth. Ignored (.gitignore) and hidden files are \
                          left out unless the pattern names them."
                .to_owned(),
            schema: object(
                &json!({
                    "pattern": { "type": "string", "minLength": 1, "description": "Such as `src/**/*.rs`" },
                    "path": { "type": "string", "minLength": 1, "description": "Default: the working directory" }
                }),
                &["pattern"],
            ),
            example: json!({ "pattern": "src/**/*.rs" }),
            effect: EffectClass::Read,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::below("path", Some("pattern"), input))
    }

    fn runs(&self) -> Runs {
        Runs::Files(|call, ctx, abandoned| run(call, ctx, abandoned).into())
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[
            ("pattern", &["glob", "glob_pattern", "query"]),
            ("path", &["directory", "dir", "target_directory"]),
        ]
    }

    fn preview(&self, call: &Prepared, _workdir: &Beneath, _max: u64) -> Option<String> {
        Some(sought(call, "pattern"))
    }
}

fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> ToolOutcome {
    let base = match directory(prepared, ctx) {
        Ok(base) => base,
        Err(refusal) => return refusal,
    };
    let pattern = prepared.text("pattern");
    let inside = pattern
        .strip_prefix(&format!("{}/", ctx.workdir.path().display()))
        .unwrap_or(pattern);
    if inside.starts_with('/') || inside.split('/').any(|part| part == "..") {
        let text = "Glob: the pattern must stay inside the working directory: no `..`, no absolute path outside. Give the directory in `path`.";
        return refuse(Code::Denied, text);
    }
    let matcher = match matcher(inside) {
        Ok(matcher) => matcher,
        Err(error) => {
            return refuse(
                Code::InvalidArgs,
                format!("Glob: {error}. Example: `src/**/*.rs`."),
            );
        }
    };
    let brackets = with_brackets(inside);
    let hidden = names_hidden(inside) || names_hidden(prepared.path());
    let (mut paths, mut literal) = (Vec::new(), Vec::new());
    let patience = Patience::new(abandoned);
    let complete = files(&ctx.workdir, &base, hidden, &|| patience.is_over(), |path| {
        let from_base = path.strip_prefix(&base).unwrap_or(&path);
        let matches = |set: &GlobSet| set.is_match(from_base) || set.is_match(&path);
        let name = || path.to_string_lossy().into_owned();
        if matches(&matcher) {
            paths.push(name());
        }
        if brackets.as_ref().is_some_and(matches) {
            literal.push(name());
        }
        paths.len().max(literal.len()) < MAX_PATHS
    });
    // Where a name has the brackets, they mean the name.
    let found = if literal.is_empty() { paths } else { literal };
    show(ctx, (inside, hidden), &found, complete)
}

fn show(ctx: &ToolContext, (pattern, hidden): (&str, bool), paths: &[String], complete: bool) -> ToolOutcome {
    let max_lines = usize::try_from(ctx.limits.max_lines).unwrap_or(usize::MAX);
    let max_bytes = usize::try_from(ctx.limits.max_bytes).unwrap_or(usize::MAX);
    let page = page(
        paths.iter().map(|path| Cow::Borrowed(path.as_str())),
        max_lines,
        max_bytes,
    );
    let complete = complete && page.complete;
    let mut text = if paths.is_empty() {
        let hint = if hidden {
            ""
        } else {
            " Hidden and ignored files were left out; a pattern that names them, such as `.config/**`, finds them."
        };
        format!("No file matches {pattern}.{hint}\n")
    } else {
        page.text
    };
    if !complete {
        text.push_str(&format!(
            "[The first {} paths; there are more. Use a narrower pattern or `path`.]\n",
            page.lines
        ));
    }
    let count = u64::try_from(paths.len()).unwrap_or(u64::MAX);
    ToolOutcome {
        details: Some(json!({ "files": count, "complete": complete })),
        truncated: (!complete).then(|| Truncated {
            bytes: u64::try_from(text.len()).unwrap_or(u64::MAX),
            lines: count,
            spill: None,
        }),
        ..ToolOutcome::text(ToolStatus::Ok, text)
    }
}

/// The directory that a search starts from: exactly the one that was judged.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn directory(prepared: &Prepared, ctx: &ToolContext) -> Result<PathBuf, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let failed = |error: &SandboxError| explain(&ctx.workdir, &path, error);
    let entry = ctx.workdir.entry(&path).map_err(|error| failed(&error))?;
    if entry.kind != EntryKind::Directory {
        return Err(refuse(
            Code::NotFile,
            format!("Glob: {} is not a directory.", path.display()),
        ));
    }
    Ok(if path == Path::new(".") {
        PathBuf::new()
    } else {
        path
    })
}
