//! RepoMap: what a source tree defines, the most used first, in so many tokens. What was found out is kept in a file for
//! the next map, so that only changed files are read again.

use crate::catalog::object;
use crate::context::{ToolContext, ToolLimits};
use crate::prepared::Prepared;
use crate::read::{explain, locate};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::spec::ToolSpec;
use crate::walk::{Patience, files};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus};
use agentd_repo_map::{Cache, Focus, Language, MAX_FILE_BYTES, Place, Rendered, SourceMap, Stamp, render};
use agentd_sandbox::{Beneath, EntryKind, OpenFile};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most tokens that a model may ask for.
pub(crate) const MOST_TOKENS: u64 = 32_768;
/// The most source files of a map.
const MAX_FILES: usize = 5_000;
/// The most bytes of them all: what is known of a byte of source costs about three.
const MAX_BYTES: u64 = 64_000_000;
/// The most definitions that are considered for showing; more than fit into the largest budget.
const MAX_PLACES: usize = 8_000;
/// The most files that are read for the lines to show.
const MAX_SHOWN: usize = 1_000;
/// Directories whose maps are kept.
const MAX_KEPT: usize = 64;

pub(crate) fn repo_map(limits: &ToolLimits) -> ToolSpec {
    let names = |what: &str| json!({ "type": "array", "maxItems": 100, "items": { "type": "string", "minLength": 1, "maxLength": 500 }, "description": what });
    ToolSpec {
        name: "RepoMap".into(),
        aliases: &["repo_map", "code_map"],
        title: "Map the source tree".into(),
        description: "Shows what the source files of a directory define (types, functions, constants with their lines), the most used \
            first, as far as it fits. Use it once to find your way in code that you do not know; then Grep and Read. \
            With `focus` and `names` it shows what matters for those files and names."
            .to_owned(),
        schema: object(
            &json!({
                "path": { "type": "string", "minLength": 1, "description": "The directory; the working directory if it is left out" },
                "focus": names("Files that you work on, relative to the working directory"),
                "names": names("Names (functions, types) that you look for"),
                "tokens": {
                    "type": "integer", "minimum": 100, "maximum": MOST_TOKENS,
                    "description": format!("How long the map may be, in tokens; {} if it is left out", limits.repo_map_tokens)
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

pub(crate) fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> ToolOutcome {
    map(prepared, ctx, abandoned).unwrap_or_else(|refusal| refusal)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn map(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<ToolOutcome, ToolOutcome> {
    let base = directory(prepared, ctx)?;
    let kept = kept_at(&ctx.map_dir, &ctx.workdir.path().join(&base));
    let patience = Patience::new(abandoned);
    let mut map = SourceMap::new(read_kept(&kept));
    let (mut most, mut room) = (MAX_FILES, MAX_BYTES);
    let complete = files(&ctx.workdir, &base, false, &patience, |path| {
        let Some(name) = path.to_str().filter(|name| Language::of(name).is_some()) else {
            return true;
        };
        most = most.saturating_sub(1);
        room = room.saturating_sub(add(&mut map, &ctx.workdir, &path, name, &patience));
        most > 0 && room > 0
    });
    if map.cache().is_new() && complete {
        // The map is good without being kept; the next one only takes longer.
        let _ = keep(&ctx.map_dir, &kept, map.cache());
    }
    let places = map.places(&focus(prepared), MAX_PLACES);
    let budget = prepared
        .number("tokens")
        .unwrap_or_else(|| u64::from(ctx.limits.repo_map_tokens))
        .min(MOST_TOKENS);
    let shown = show(
        &ctx.workdir,
        &places,
        usize::try_from(budget).unwrap_or(usize::MAX),
    );
    Ok(outcome(&map, &places, &shown, complete, &base))
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

/// Its size.
fn add(map: &mut SourceMap, workdir: &Beneath, path: &Path, name: &str, patience: &Patience) -> u64 {
    let Some(opened) = workdir
        .open_file(path)
        .ok()
        .filter(|opened| opened.real.as_path() == path && fits(opened))
    else {
        return 0;
    };
    let bytes = opened.bytes;
    let stamp = Stamp(opened.version.stamp());
    map.add(name, stamp, || content(opened), &|| patience.is_over());
    bytes
}

fn fits(opened: &OpenFile) -> bool {
    usize::try_from(opened.bytes).is_ok_and(|bytes| bytes <= MAX_FILE_BYTES)
}

fn content(opened: OpenFile) -> Option<Vec<u8>> {
    let most = u64::try_from(MAX_FILE_BYTES).ok()?.saturating_add(1);
    let mut content = Vec::new();
    opened.file.take(most).read_to_end(&mut content).ok()?;
    // A file with a zero byte is no text.
    (memchr::memchr(0, &content).is_none()).then_some(content)
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

/// Reads the lines of the places, and writes as many down as fit.
fn show(workdir: &Beneath, places: &[Place], budget: usize) -> Rendered {
    let mut files: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for place in places {
        if files.len() < MAX_SHOWN {
            files
                .entry(&place.path)
                .or_insert_with(|| text(workdir, &place.path));
        }
    }
    let lines: BTreeMap<&str, Vec<&str>> = files
        .iter()
        .filter_map(|(path, text)| Some((*path, text.as_deref()?.lines().collect())))
        .collect();
    let line = |place: &Place| {
        let at = usize::try_from(place.line).ok()?.checked_sub(1)?;
        lines.get(place.path.as_str())?.get(at).copied()
    };
    let shown: Vec<(&str, u32, &str)> = places
        .iter()
        .filter_map(|place| Some((place.path.as_str(), place.line, line(place)?)))
        .collect();
    render(&shown, budget)
}

fn text(workdir: &Beneath, path: &str) -> Option<String> {
    let opened = workdir.open_file(Path::new(path)).ok().filter(fits)?;
    Some(String::from_utf8_lossy(&content(opened)?).into_owned())
}

fn outcome(map: &SourceMap, places: &[Place], shown: &Rendered, complete: bool, base: &Path) -> ToolOutcome {
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
            "No definition was found below {}. Ls and Glob show what is there.",
            place.display()
        );
    } else {
        let _ = writeln!(
            text,
            "[{} definitions of {} files; {files} source files in all. More: `path`, `focus`, `names` or a larger `tokens`.]",
            shown.definitions, shown.files
        );
    }
    if !complete {
        text.push_str("[Not every file was looked at: there are too many, or it took too long. Map a directory below.]\n");
    }
    ToolOutcome {
        details: Some(json!({
            "files": files,
            "parsed": map.cache().parsed(),
            "failed": map.failed(),
            "definitions": shown.definitions,
            "of": places.len(),
            "complete": complete,
        })),
        ..ToolOutcome::text(ToolStatus::Ok, text)
    }
}

/// Where the map of a directory is kept.
fn kept_at(map_dir: &Path, directory: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let mut name = String::new();
    for byte in Sha256::digest(directory.as_os_str().as_bytes()).iter().take(16) {
        let _ = write!(name, "{byte:02x}");
    }
    map_dir.join(name).with_extension("map")
}

/// What is kept, or nothing: a broken one is made anew.
fn read_kept(path: &Path) -> Cache {
    std::fs::read(path)
        .ok()
        .and_then(|bytes| Cache::read(&bytes).ok())
        .unwrap_or_default()
}

/// Replaces what was kept in one step, and forgets the directories that nobody mapped for longest.
fn keep(map_dir: &Path, path: &Path, cache: &Cache) -> std::io::Result<()> {
    let Some(bytes) = cache.bytes().ok().flatten() else {
        return Ok(());
    };
    std::fs::create_dir_all(map_dir)?;
    let mut file = tempfile::NamedTempFile::new_in(map_dir)?;
    file.write_all(&bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    let mut kept: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(map_dir)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    kept.sort();
    let many = kept.len().saturating_sub(MAX_KEPT);
    for (_, path) in kept.into_iter().take(many) {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}
