//! RepoMap: lists the definitions of a source tree, the most used first, within a token budget.

use crate::catalog::object;
use crate::context::{FileGate, ToolContext, ToolLimits};
use crate::prepared::Prepared;
use crate::read::{explain, locate};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::source_tree::{MAX_PLACES, MAX_SHOWN, Parsers, Tree};
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Tool};
use crate::walk::Patience;
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus};
use agentd_repo_map::{Focus, RankedDefinition, Rendered, SourceMap};
use agentd_sandbox::EntryKind;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The largest token budget that a model may ask for.
pub(crate) const MOST_TOKENS: u64 = 32_768;

/// The name of the tool that maps a source tree.
pub const REPO_MAP: &str = "RepoMap";

/// Lists the definitions of a source tree.
pub(crate) struct RepoMap;

impl Tool for RepoMap {
    fn name(&self) -> &'static str {
        REPO_MAP
    }

    fn spec(&self, limits: &ToolLimits) -> ToolSpec {
        let names = |what: &str| json!({ "type": "array", "maxItems": 100, "items": { "type": "string", "minLength": 1, "maxLength": 500 }, "description": what });
        ToolSpec {
            name: self.name().into(),
            aliases: &["repo_map", "code_map"],
            title: "Map the source tree".into(),
            description: "Shows what the source files of a directory define (types, functions, constants, with their lines), the most used first, as far as it fits. \
                          Use it once to find your way in unknown code; then Grep and Read. `focus` and `names` select what matters."
                .to_owned(),
            schema: object(
                &json!({
                    "path": { "type": "string", "minLength": 1, "description": "Default: the working directory" },
                    "focus": names("Files that you work on"),
                    "names": names("Functions and types that you look for"),
                    "tokens": {
                        "type": "integer", "minimum": 100, "maximum": MOST_TOKENS,
                        "description": format!("Length of the map; default {}", limits.repo_map_tokens)
                    }
                }),
                &[],
            ),
            example: json!({ "path": "src", "names": ["open_session"] }),
            effect: EffectClass::Read,
            idempotent: true,
            server: None,
        }
    }

    fn offered(&self, limits: &ToolLimits) -> bool {
        limits.repo_map_tokens > 0
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::below("path", None, input))
    }

    fn runs(&self) -> Runs {
        Runs::Files(|call, ctx, abandoned| run(call, ctx, abandoned).into())
    }

    fn filtered(&self) -> bool {
        true
    }
}

fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> ToolOutcome {
    map(prepared, ctx, abandoned).unwrap_or_else(|refusal| refusal)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn map(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<ToolOutcome, ToolOutcome> {
    let base = directory(prepared, ctx)?;
    let patience = Patience::new(abandoned);
    let tree = Tree {
        workdir: &ctx.workdir,
        base: &base,
        map_dir: &ctx.map_dir,
    };
    let parsers = Parsers {
        finders: ctx.parsers.as_deref(),
        warden: Some(&ctx.warden),
    };
    let (map, complete) = tree.map(&patience, parsers);
    let mut places = map.places(&focus(prepared), MAX_PLACES);
    let left_out = leave_out(&mut places, &ctx.files);
    let budget = prepared
        .number("tokens")
        .unwrap_or_else(|| u64::from(ctx.limits.repo_map_tokens))
        .min(MOST_TOKENS);
    let shown = tree.show(&places, usize::try_from(budget).unwrap_or(usize::MAX));
    Ok(outcome(&map, (&places, left_out), &shown, complete, &base))
}

/// Removes places in files that may not be read or exceed the file limit. Returns the number of files denied.
fn leave_out(places: &mut Vec<RankedDefinition>, gate: &FileGate) -> usize {
    let mut judged: BTreeMap<String, bool> = BTreeMap::new();
    places.retain(|place| match judged.get(&place.path) {
        Some(allowed) => *allowed,
        None if judged.len() >= MAX_SHOWN => false,
        None => {
            let allowed = gate.lets_read(Path::new(&place.path));
            judged.insert(place.path.clone(), allowed);
            allowed
        }
    });
    judged.values().filter(|allowed| !**allowed).count()
}

/// The directory to map: exactly the one that was judged.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn directory(prepared: &Prepared, ctx: &ToolContext) -> Result<PathBuf, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let entry = ctx
        .workdir
        .entry(&path)
        .map_err(|error| explain(&ctx.workdir, &path, &error))?;
    if entry.kind != EntryKind::Directory {
        let text = format!(
            "RepoMap: {} is not a directory. Read shows a file.",
            path.display()
        );
        return Err(refuse(Code::NotFile, text));
    }
    Ok(if path == Path::new(".") {
        PathBuf::new()
    } else {
        path
    })
}

fn focus(prepared: &Prepared) -> Focus {
    let list = |name: &str| {
        let items = prepared.input.get(name).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|item| item.trim_start_matches("./").to_owned())
            .collect()
    };
    Focus {
        files: list("focus"),
        names: list("names"),
    }
}

fn outcome(
    map: &SourceMap,
    (places, left_out): (&[RankedDefinition], usize),
    shown: &Rendered,
    complete: bool,
    base: &Path,
) -> ToolOutcome {
    let files = map.files();
    let mut text = shown.text.clone();
    if text.is_empty() {
        let place = if base.as_os_str().is_empty() {
            Path::new(".")
        } else {
            base
        };
        let _ = writeln!(
            text,
            "No definitions found below {}. Ls and Glob show its files.",
            place.display()
        );
    } else {
        let _ = writeln!(
            text,
            "[{} definitions of {} files; {files} source files in total. For more, use `path`, `focus`, `names` or a larger `tokens`.]",
            shown.definitions, shown.files
        );
    }
    if left_out > 0 {
        let _ = writeln!(
            text,
            "[Files omitted because the rules do not allow reading them here: {left_out}.]"
        );
    }
    if !complete {
        text.push_str(
            "[Some files were not examined: there are too many, or it took too long. Map a subdirectory.]\n",
        );
    }
    if let Some(why) = map.unavailable() {
        let _ = writeln!(
            text,
            "[New and changed files are not in the map: {why}. Grep finds definitions, too.]"
        );
    }
    ToolOutcome {
        details: Some(json!({
            "files": files,
            "parsed": map.cache().parsed(),
            "failed": map.failed(),
            "definitions": shown.definitions,
            "of": places.len(),
            "complete": complete,
            "left_out": left_out,
        })),
        ..ToolOutcome::text(ToolStatus::Ok, text)
    }
}
