//! SemanticSearch: finds places in the working directory that are about something. The port to the index that it
//! searches.

use crate::catalog::object;
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::detail::sought;
use crate::prepared::Prepared;
use crate::read::explain;
use crate::refusal::{Code, refuse};
use crate::run::unanswered;
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Tool};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus};
use agentd_sandbox::Beneath;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest query.
const MAX_QUERY: usize = 1_000;
/// Hits if the model gives no number.
const USUAL: u64 = 5;
/// How long the check of a directory may take.
const LOOK_WITHIN: Duration = Duration::from_secs(10);
/// The most hits.
const MOST: u64 = 20;

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words and names.
    pub text: String,
    /// The most hits.
    pub limit: usize,
    /// Restricts the search to this directory or file, relative to the working directory; empty: no restriction.
    pub below: PathBuf,
}

/// A place that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The file, relative to the working directory.
    pub path: String,
    /// Its first line, from 1.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// Its best lines, each with its number; bounded.
    pub text: String,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchFound {
    /// The hits, the best first; up to twice the requested number, so that some may be left out.
    pub hits: Vec<SearchHit>,
    /// The number of files in the index.
    pub files: u64,
    /// Whether the index covered every file at the time of the answer.
    pub complete: bool,
    /// Further information, in sentences.
    pub notes: Vec<String>,
}

/// Keeps the indexes of working directories. Every answer comes in bounded time.
#[async_trait]
pub trait Search: Debug + Send + Sync {
    /// Reports that tools ran in this directory. Must not block.
    fn touched(&self, workdir: &Path);
    /// Searches the index.
    ///
    /// # Errors
    /// Why there is no answer, in words for a model.
    async fn search(&self, workdir: &Path, query: SearchQuery) -> Result<SearchFound, String>;
}

/// Finds places about something, from the index.
pub(crate) struct SemanticSearch;

impl Tool for SemanticSearch {
    fn name(&self) -> &'static str {
        "SemanticSearch"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["semantic_search", "search_semantic", "codebase_search", "code_search"],
            title: "Search by meaning".into(),
            description: "Finds the places in the working directory that are most about something, from a few words or names. It knows what files define and parts of \
                          names. Use Grep for exact text."
                .to_owned(),
            schema: object(
                &json!({
                    "query": { "type": "string", "minLength": 1, "maxLength": MAX_QUERY },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MOST, "description": "Default 5" },
                    "path": { "type": "string", "minLength": 1, "description": "Only in this directory or file" }
                }),
                &["query"],
            ),
            example: json!({ "query": "where retries are counted", "limit": 5 }),
            effect: EffectClass::Read,
            idempotent: true,
            server: None,
        }
    }

    fn offered(&self, limits: &ToolLimits) -> bool {
        limits.search
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::below("path", Some("query"), input))
    }

    fn runs(&self) -> Runs {
        Runs::Worker(|call, ctx| Box::pin(run(call, ctx)))
    }

    fn filtered(&self) -> bool {
        true
    }

    fn preview(&self, call: &Prepared, _workdir: &Beneath, _max: u64) -> Option<String> {
        Some(sought(call, "query"))
    }
}

async fn run(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    let Some(search) = &ctx.search else {
        let text = "SemanticSearch: there is no index here. Use Grep and RepoMap.";
        return refuse(Code::RagDisabled, text).into();
    };
    let below = match ctx.workdir.relative(prepared.path()) {
        Ok(path) if path == Path::new(".") => PathBuf::new(),
        Ok(path) => path,
        Err(error) => return refuse(Code::Denied, format!("SemanticSearch: {error}.")).into(),
    };
    if let Err(refusal) = is_there(ctx, &below).await {
        return refusal.into();
    }
    let limit = usize::try_from(prepared.number("limit").unwrap_or(USUAL).min(MOST)).unwrap_or(1);
    let query = SearchQuery {
        text: prepared.text("query").to_owned(),
        limit,
        below,
    };
    ctx.on_start.begun();
    match search.search(ctx.workdir.path(), query).await {
        Ok(found) => show(found, limit, ctx).await.into(),
        Err(why) => refuse(Code::Tool, format!("SemanticSearch: {why}. Use Grep meanwhile.")).into(),
    }
}

/// Checks that the path exists: a search below a missing path would only report that it found nothing.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
async fn is_there(ctx: &ToolContext, below: &Path) -> Result<(), ToolOutcome> {
    if below.as_os_str().is_empty() {
        return Ok(());
    }
    let (workdir, below) = (Arc::clone(&ctx.workdir), below.to_owned());
    let look = ctx.file_work.run(ctx.workdir.path(), LOOK_WITHIN, move || {
        let found = workdir.entry(&below);
        found.map(drop).map_err(|error| explain(&workdir, &below, &error))
    });
    look.await
        .unwrap_or_else(|failed| Err(unanswered("SemanticSearch", failed)))
}

/// The hits that this session may read, as far as they fit.
async fn show(found: SearchFound, limit: usize, ctx: &ToolContext) -> ToolOutcome {
    let most = usize::try_from(ctx.limits.max_bytes).unwrap_or(usize::MAX);
    // Each file is judged once, in the order of the hits.
    let mut readable: BTreeMap<String, bool> = BTreeMap::new();
    let (mut text, mut shown, mut left_out) = (String::new(), Vec::new(), 0_u32);
    for hit in found.hits {
        if shown.len() >= limit || text.len().saturating_add(hit.text.len()) > most {
            break;
        }
        let allowed = match readable.get(&hit.path) {
            Some(allowed) => *allowed,
            None => ctx.files.may_read(&hit.path).await,
        };
        readable.insert(hit.path.clone(), allowed);
        if !allowed {
            left_out = left_out.saturating_add(1);
            continue;
        }
        let _ = writeln!(text, "{}:{}-{}", hit.path, hit.start_line, hit.end_line);
        text.push_str(&hit.text);
        text.push('\n');
        shown.push(json!({ "path": hit.path, "start_line": hit.start_line, "end_line": hit.end_line }));
    }
    if shown.is_empty() && found.complete {
        text.push_str("No results. Other words may help; Grep finds exact text.\n");
    } else if shown.is_empty() {
        text.push_str("No results yet. Search again in a moment; Grep finds exact text now.\n");
    }
    if !found.complete {
        let _ = writeln!(
            text,
            "[The index is being built: {} files so far. A later search may find more.]",
            found.files
        );
    }
    for note in &found.notes {
        let _ = writeln!(text, "[{note}]");
    }
    ToolOutcome {
        details: Some(json!({
            "hits": shown,
            "files": found.files,
            "complete": found.complete,
            "left_out": left_out,
        })),
        ..ToolOutcome::text(ToolStatus::Ok, text)
    }
}
