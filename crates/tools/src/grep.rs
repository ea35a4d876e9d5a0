//! Grep: searches text in files.

use crate::catalog::object;
use crate::context::{ToolContext, ToolLimits};
use crate::detail::sought;
use crate::grep_sink::{FileSink, Hits, Mode};
use crate::prepared::Prepared;
use crate::read::{explain, locate, open};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Spelling, Tool};
use crate::walk::{Patience, files, matcher, names_hidden, with_brackets};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus, Truncated};
use agentd_sandbox::{Beneath, EntryKind};
use globset::GlobSet;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The most lines of a result.
const MAX_LINES: usize = 250;
/// The longest pattern, in bytes: each `\pL` in it takes some kilobytes before the next limit applies.
const MAX_PATTERN: usize = 4_096;
/// The most memory for a compiled pattern, and for the automaton built from it. Small because searches of several
/// sessions run at the same time.
const MAX_REGEX: usize = 8 << 20;
/// How deep the groups and repetitions of a pattern may nest.
const MAX_NEST: u32 = 100;

/// Searches text in files.
pub(crate) struct Grep;

impl Tool for Grep {
    fn name(&self) -> &'static str {
        "Grep"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["grep_search", "search", "ripgrep", "rg", "search_files", "grep_files"],
            title: "Search in files".into(),
            description: "Searches file contents with a regular expression (Rust syntax, by line). Ignored, hidden and binary files are left out unless `path` or `glob` \
                          names them."
                .to_owned(),
            schema: object(
                &json!({
                    "pattern": { "type": "string", "minLength": 1 },
                    "path": { "type": "string", "minLength": 1, "description": "File or directory; default: the working directory" },
                    "glob": { "type": "string", "minLength": 1, "description": "Only paths that match, such as `*.rs`" },
                    "case_insensitive": { "type": "boolean" },
                    "context": { "type": "integer", "minimum": 0, "maximum": 20, "description": "Lines around each hit" },
                    "output_mode": {
                        "enum": ["content", "files_with_matches", "count"],
                        "description": "Lines (default), paths, or hits per file"
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

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::below("path", Some("pattern"), input))
    }

    fn runs(&self) -> Runs {
        Runs::Files(|call, ctx, abandoned| run(call, ctx, abandoned).into())
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[
            ("pattern", &["query", "regex", "search"]),
            ("path", &["directory", "dir", "target_directory"]),
            ("glob", &["include", "include_pattern", "file_pattern"]),
        ]
    }

    fn filtered(&self) -> bool {
        true
    }

    fn preview(&self, call: &Prepared, _workdir: &Beneath, _max: u64) -> Option<String> {
        Some(sought(call, "pattern"))
    }
}

fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> ToolOutcome {
    grep(prepared, ctx, abandoned).unwrap_or_else(|refusal| refusal)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn grep(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<ToolOutcome, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let regex = regex(prepared)?;
    let glob = glob(prepared)?;
    let patience = Patience::new(abandoned);
    let max_lines = usize::try_from(ctx.limits.max_lines)
        .unwrap_or(usize::MAX)
        .min(MAX_LINES);
    let max_bytes = usize::try_from(ctx.limits.max_bytes).unwrap_or(usize::MAX);
    let mut hits = Hits::new(mode(prepared), max_lines, max_bytes);
    let mut searcher = searcher(prepared);
    let entry = ctx
        .workdir
        .entry(&path)
        .map_err(|error| explain(&ctx.workdir, &path, &error))?;
    let complete = match entry.kind {
        EntryKind::Directory => {
            let base = if path == Path::new(".") {
                PathBuf::new()
            } else {
                path.clone()
            };
            let brackets = with_brackets(prepared.text("glob"));
            let hidden = names_hidden(prepared.path()) || names_hidden(prepared.text("glob"));
            files(&ctx.workdir, &base, hidden, &|| patience.is_over(), |file| {
                let from_base = file.strip_prefix(&base).unwrap_or(&file);
                let matches = |glob: &GlobSet| glob.is_match(from_base) || glob.is_match(&file);
                let wanted = glob.as_ref().is_none_or(matches) || brackets.as_ref().is_some_and(matches);
                if wanted
                    && let Ok(opened) = ctx.workdir.open_file(&file)
                    && opened.real == file
                {
                    let may_read = || ctx.files.lets_read(&file);
                    let found = (&opened.file, file.as_path());
                    search(&mut searcher, &regex, found, &mut hits, &patience, &may_read);
                }
                !hits.full()
            })
        }
        EntryKind::File | EntryKind::Symlink | EntryKind::Special => {
            let opened = open(&ctx.workdir, &path)?;
            let named = (&opened.file, path.as_path());
            // The rules, or a person, already judged this file.
            search(&mut searcher, &regex, named, &mut hits, &patience, &|| true);
            !patience.is_over()
        }
    };
    Ok(show(prepared, &hits, complete))
}

fn search(
    searcher: &mut Searcher,
    regex: &RegexMatcher,
    (file, path): (&std::fs::File, &Path),
    hits: &mut Hits,
    patience: &Patience,
    may_read: &dyn Fn() -> bool,
) {
    let name = path.to_string_lossy();
    let mut sink = FileSink {
        hits,
        path: &name,
        regex,
        matches: 0,
        stop: &|| patience.is_over(),
        may_read,
        judged: None,
    };
    // If a file cannot be read to its end, the earlier hits still count.
    let _ = searcher.search_file(regex, file, &mut sink);
    let matches = sink.matches;
    hits.end_file(&name, matches);
}

fn show(prepared: &Prepared, hits: &Hits, complete: bool) -> ToolOutcome {
    let complete = complete && !hits.full();
    let mut text: String = hits.lines.iter().map(|line| format!("{line}\n")).collect();
    if hits.lines.is_empty() {
        text = format!(
            "No match for {:?} in {}.\n",
            prepared.text("pattern"),
            prepared.path()
        );
    }
    if !complete {
        text.push_str("[There may be more. Use a narrower pattern, `path` or `glob`, or output_mode \"files_with_matches\".]\n");
    }
    if hits.binary > 0 && hits.matches == 0 {
        let files = if hits.binary == 1 {
            "One file was"
        } else {
            "Some files were"
        };
        text.push_str(&format!(
            "[{files} not searched to the end because of a NUL byte. Use Bash with `grep -a` for those.]\n"
        ));
    }
    // The model does not learn which files were left out: it could find out their contents guess by guess.
    ToolOutcome {
        details: Some(json!({
            "matches": hits.matches,
            "files": hits.files,
            "complete": complete,
            "left_out": hits.left_out,
        })),
        truncated: (!complete).then(|| Truncated {
            bytes: u64::try_from(text.len()).unwrap_or(u64::MAX),
            lines: u64::try_from(hits.lines.len()).unwrap_or(u64::MAX),
            spill: None,
        }),
        ..ToolOutcome::text(ToolStatus::Ok, text)
    }
}

fn mode(prepared: &Prepared) -> Mode {
    match prepared.text("output_mode") {
        "files_with_matches" => Mode::Files,
        "count" => Mode::Count,
        _ => Mode::Content,
    }
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn regex(prepared: &Prepared) -> Result<RegexMatcher, ToolOutcome> {
    let pattern = prepared.text("pattern");
    if pattern.len() > MAX_PATTERN {
        let text = format!(
            "Grep: the pattern has {} bytes; the limit is {MAX_PATTERN}. Search for a part of it.",
            pattern.len()
        );
        return Err(refuse(Code::InvalidArgs, text));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(prepared.flag("case_insensitive"))
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_REGEX)
        .dfa_size_limit(MAX_REGEX)
        .nest_limit(MAX_NEST)
        .build(pattern)
        .map_err(|error| {
            let error = error.to_string();
            let hint = if error.contains("size limit") || error.contains("nested") {
                "Use fewer and smaller repetitions, for example `\\w+` for `\\pL{1,500}`."
            } else {
                "Escape special characters with a backslash, for example `fn main\\(`. Matches are within one line."
            };
            refuse(Code::InvalidArgs, format!("Grep: the pattern cannot be used as a regular expression: {error}. {hint}"))
        })
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn glob(prepared: &Prepared) -> Result<Option<GlobSet>, ToolOutcome> {
    let pattern = prepared.text("glob");
    if pattern.is_empty() {
        return Ok(None);
    }
    let bad = |error| {
        refuse(
            Code::InvalidArgs,
            format!("Grep: `glob`: {error}. Example: `*.rs`."),
        )
    };
    matcher(pattern).map(Some).map_err(bad)
}

fn searcher(prepared: &Prepared) -> Searcher {
    let around = usize::try_from(prepared.number("context").unwrap_or_default()).unwrap_or_default();
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .before_context(around)
        .after_context(around)
        // A line that is longer than this ends the search of its file.
        .heap_limit(Some(8 << 20))
        .build()
}
