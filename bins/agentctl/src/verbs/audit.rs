//! `audit`: lists who did what, and checks that the audit files are as agentd wrote them.

mod list;

use crate::cli::{AuditVerb, VerifyArgs};
use crate::contexts::Address;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{Paint, count, one_line};
use crate::verbs::config::loaded;
use agentd_protocol::{AuditCheck, Fault};
use std::path::PathBuf;

pub(crate) async fn audit(ctx: &mut Ctx, verb: &AuditVerb) -> Result<Exit, Failure> {
    let args = match verb {
        AuditVerb::Ls(args) => return list::list(ctx, args).await,
        AuditVerb::Verify(args) => args,
    };
    let elsewhere = !matches!(ctx.dial()?.address, Address::Socket { .. });
    let checked = if elsewhere && args.files.is_empty() && args.data_dir.is_none() {
        verified_there(ctx, args).await?
    } else {
        check(&files(ctx, args).await?, args)?
    };
    let head = checked.head.clone().unwrap_or_default();
    ctx.out.object(&checked, &head, |paint| text(&checked, paint))?;
    Ok(if checked.intact { Exit::OK } else { Exit::FAILURE })
}

/// Lets a daemon on another machine check its own files.
async fn verified_there(ctx: &mut Ctx, args: &VerifyArgs) -> Result<AuditCheck, Failure> {
    if args.head.is_some() {
        let message = "the daemon of this context is not on this machine, so --head cannot be checked";
        return Err(Failure::invalid(
            message,
            "copy its audit files and pass them as arguments",
        ));
    }
    let checked = ctx.connect().await?.audit_verify().await?;
    ctx.out
        .status("checked by the daemon itself; for an independent check pass copies of the files");
    Ok(checked)
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

fn check(files: &[PathBuf], args: &VerifyArgs) -> Result<AuditCheck, Failure> {
    agentd_audit::check(files, args.head).map_err(|(path, error)| Failure::file(&path, &error))
}

fn text(checked: &AuditCheck, paint: Paint) -> String {
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
