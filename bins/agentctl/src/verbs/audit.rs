//! `audit`: lists who did what, and checks that the audit files are as agentd wrote them.

mod list;

use crate::cli::{AuditVerb, VerifyArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{Paint, count, one_line};
use crate::verbs::config::loaded;
use agentd_audit::{Chain, Stop};
use agentd_protocol::Fault;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The JSON shape of `audit verify`.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Checked {
    intact: bool,
    files: Vec<String>,
    /// The number of intact lines.
    lines: u64,
    /// The number of lines before the chain; nothing proves these.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsealed: Option<u64>,
    /// The hash of the last intact line.
    head: Option<String>,
    /// Whether the chain begins with the very first line; if not, older files are missing.
    whole: bool,
    /// Older files are missing because the settings delete them: the chain has a record of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deletion_recorded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<BrokenLine>,
}

/// The place where the chain is broken.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct BrokenLine {
    file: String,
    line: Option<u64>,
    what: String,
}

pub(crate) async fn audit(ctx: &mut Ctx, verb: &AuditVerb) -> Result<Exit, Failure> {
    let args = match verb {
        AuditVerb::Ls(args) => return list::list(ctx, args).await,
        AuditVerb::Verify(args) => args,
    };
    let files = files(ctx, args).await?;
    let checked = check(&files, args)?;
    let head = checked.head.clone().unwrap_or_default();
    ctx.out.object(&checked, &head, |paint| text(&checked, paint))?;
    Ok(if checked.intact { Exit::OK } else { Exit::FAILURE })
}

/// The given files, else those of the data directory, oldest first.
async fn files(ctx: &mut Ctx, args: &VerifyArgs) -> Result<Vec<PathBuf>, Failure> {
    if !args.files.is_empty() {
        return Ok(args.files.clone());
    }
    let dir = match &args.data_dir {
        Some(dir) => Some(dir.clone()),
        None => match told(ctx).await {
            Some(dir) => Some(dir),
            None => ours(ctx)?,
        },
    };
    let dir =
        dir.ok_or_else(|| Failure::invalid("there is no home directory", "pass the files as arguments"))?;
    let logs = dir.join("logs");
    let files = agentd_audit::files(&logs).map_err(|error| Failure::file(&logs, &error))?;
    if files.is_empty() {
        let fault = Fault::not_found("no_audit", format!("no audit file in {}", logs.display()));
        return Err(fault
            .hint("check that log.audit is on, or pass the files as arguments")
            .into());
    }
    Ok(files)
}

/// The data directory of the running daemon, if one answers.
async fn told(ctx: &Ctx) -> Option<PathBuf> {
    let status = ctx.connect().await.ok()?.status().await.ok()?;
    Some(PathBuf::from(status.data_dir))
}

/// The data directory that a daemon started here would use.
fn ours(ctx: &mut Ctx) -> Result<Option<PathBuf>, Failure> {
    let dir = match loaded(ctx, None)?.settings.node.data_dir.as_str() {
        "" => ctx.environment.data_dir(),
        dir => Some(PathBuf::from(dir)),
    };
    if let Some(dir) = &dir {
        ctx.out.status(&format!(
            "no daemon answers; checking the files in {}, as set in the configuration that agentctl reads",
            one_line(&dir.display().to_string(), 300)
        ));
    }
    Ok(dir)
}

fn check(files: &[PathBuf], args: &VerifyArgs) -> Result<Checked, Failure> {
    let mut chain = Chain::with_head(args.head);
    let shown = |path: &Path| path.display().to_string();
    let mut broken = None;
    for path in files {
        let file = agentd_audit::open(path).map_err(|error| Failure::file(path, &error))?;
        match chain.read(file) {
            Ok(()) => {}
            Err(Stop::Broken(line, what)) => {
                broken = Some(BrokenLine {
                    file: shown(path),
                    line: Some(line),
                    what: what.to_string(),
                });
                break;
            }
            Err(Stop::Io(error)) => return Err(Failure::file(path, &error)),
        }
    }
    if let (None, Some(head), Some(last)) = (&broken, chain.missing(), files.last()) {
        broken = Some(BrokenLine {
            file: shown(last),
            line: None,
            what: format!(
                "the line with hash {head} is missing: lines were cut off, or the file was rewritten"
            ),
        });
    }
    if let (None, None, Some(first)) = (&broken, chain.head(), files.first())
        && chain.unsealed() > 0
    {
        broken = Some(BrokenLine {
            file: shown(first),
            line: Some(1),
            what: "no line is sealed: the lines were written before the chain existed, or not by agentd"
                .to_owned(),
        });
    }
    Ok(Checked {
        unsealed: Some(chain.unsealed()).filter(|unsealed| *unsealed > 0),
        intact: broken.is_none(),
        files: files.iter().map(|path| shown(path)).collect(),
        lines: chain.lines(),
        head: chain.head().map(|head| head.to_string()),
        whole: chain.is_whole(),
        deletion_recorded: chain.deletion_is_recorded(),
        broken,
    })
}

fn text(checked: &Checked, paint: Paint) -> String {
    let files = u64::try_from(checked.files.len()).unwrap_or(u64::MAX);
    let lines = count(checked.lines, "line");
    let mut text = match &checked.broken {
        None => format!("{} {lines} in {}\n", paint.good("intact:"), count(files, "file")),
        Some(broken) => {
            let line = broken.line.map(|line| format!(":{line}")).unwrap_or_default();
            format!(
                "{} {}{line}: {}\nintact before that: {lines}\n",
                paint.bad("broken:"),
                one_line(&broken.file, 300),
                broken.what
            )
        }
    };
    if let Some(unsealed) = checked.unsealed.filter(|_| checked.head.is_some()) {
        text.push_str(&format!(
            "begins unsealed: lines 1 to {unsealed} predate the chain and cannot be verified; the chain begins at line {}\n",
            unsealed + 1
        ));
    }
    if checked.deletion_recorded {
        text.push_str("the oldest files were deleted by agentd (log.audit_files); the chain records it\n");
    } else if !checked.whole {
        text.push_str("the oldest files are missing; the remaining ones begin in the middle of the chain\n");
    }
    if let Some(head) = &checked.head {
        text.push_str(&format!("{} {head}\n", paint.dim("head:")));
    }
    text
}

#[cfg(test)]
mod tests;
