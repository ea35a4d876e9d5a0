//! `diff`, `undo`, `rewind`, `fork`: a session's file changes and history.

use crate::cli::{DiffArgs, ForkArgs, RewindArgs, UndoArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::Paint;
use agentd_protocol::{DiffParams, Diffed, ForkParams, PutBackDone, RewindParams, SessionId, UndoParams};
use agentd_text::for_terminal;

pub(crate) async fn diff(ctx: &mut Ctx, args: DiffArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let params = DiffParams {
        session: args.session,
        turn: args.turn,
        at: args.at,
    };
    let diffed = client.diff(&params).await?;
    let names: Vec<&str> = diffed.files.iter().map(|file| file.path.as_str()).collect();
    let names = names.join("\n");
    ctx.page();
    ctx.out
        .object(&diffed, &names, |paint| shown(&diffed, args.stat, paint))?;
    ctx.out.unpage()?;
    if diffed.files.is_empty() {
        ctx.out.status("no file changes");
    }
    stays(ctx, &diffed.stays, "not compared, but also done");
    Ok(Exit::OK)
}

fn shown(diffed: &Diffed, stat: bool, paint: Paint) -> String {
    let mut text = String::new();
    for file in &diffed.files {
        // Paths and file contents are untrusted text.
        let (path, by) = (for_terminal(&file.path), by(&file.by));
        if stat {
            let added = paint.good(&format!("+{:<5}", file.added));
            let removed = paint.bad(&format!("-{:<5}", file.removed));
            text.push_str(&format!("{:<9} {added} {removed} {path}{by}\n", file.status));
        } else {
            if !file.by.is_empty() {
                // Tools that read diffs ignore this line.
                text.push_str(&format!("{}\n", paint.dim(&format!("# {path}{by}"))));
            }
            text.push_str(&coloured(&for_terminal(&file.diff), paint));
        }
    }
    text
}

/// A file's diff in colours: heading bold, additions green, deletions red.
fn coloured(diff: &str, paint: Paint) -> String {
    let mut within = false;
    let painted = diff.split_inclusive('\n').map(|whole| {
        let line = whole.trim_end_matches('\n');
        let end = whole.get(line.len()..).unwrap_or_default();
        within |= line.starts_with("@@");
        let line = match line.chars().next() {
            Some('@') if within => paint.accent(line),
            Some('+') if within => paint.good(line),
            Some('-') if within => paint.bad(line),
            _ if within => line.to_owned(),
            _ => paint.bold(line),
        };
        format!("{line}{end}")
    });
    painted.collect()
}

/// The sub-agents that changed a file, as a suffix.
fn by(sessions: &[SessionId]) -> String {
    if sessions.is_empty() {
        return String::new();
    }
    let names: Vec<String> = sessions.iter().map(|session| session.short()).collect();
    format!("  (by sub-agent {})", names.join(", "))
}

pub(crate) async fn undo(ctx: &mut Ctx, args: UndoArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let params = UndoParams {
        session: args.session,
        change: args.change,
        turn: args.turn,
        force: args.force,
        dry_run: args.dry_run,
        key: args.key,
    };
    let done = client.undo(&params).await?;
    told(ctx, &done, args.dry_run)
}

pub(crate) async fn rewind(ctx: &mut Ctx, args: RewindArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let params = RewindParams {
        session: args.session,
        at: args.at,
        files: args.files,
        force: args.force,
        dry_run: args.dry_run,
        key: args.key,
    };
    let done = client.rewind(&params).await?;
    told(ctx, &done, args.dry_run)
}

fn told(ctx: &mut Ctx, done: &PutBackDone, dry_run: bool) -> Result<Exit, Failure> {
    let name = if done.undo_id.is_empty() {
        done.seq.to_string()
    } else {
        done.undo_id.clone()
    };
    ctx.out.object(done, &name, |_| text_of(done, dry_run))?;
    stays(ctx, &done.stays, "done since, and not undone");
    // A dry run exits with the same code as the real undo.
    Ok(if done.conflicts.is_empty() {
        Exit::OK
    } else {
        Exit::CONFLICT
    })
}

fn text_of(done: &PutBackDone, dry_run: bool) -> String {
    let would = if dry_run { "would be " } else { "" };
    let mut text = String::new();
    for file in &done.files {
        let changed = if done.conflicts.contains(file) {
            ", but someone else changed it since"
        } else {
            ""
        };
        text.push_str(&format!("{file}: {would}restored{changed}\n"));
    }
    if let Some(to) = done.rewound_to {
        let tense = if dry_run { "would be" } else { "was" };
        text.push_str(&format!("the conversation {tense} rewound to {to}\n"));
    }
    if !done.undo_id.is_empty() {
        text.push_str(&format!("to undo this change: --change {}\n", done.undo_id));
    }
    for_terminal(&text).into_owned()
}

fn stays(ctx: &mut Ctx, stays: &[String], what: &str) {
    if stays.is_empty() {
        return;
    }
    ctx.out.status(&format!("{what}:"));
    for one in stays {
        ctx.out.status(&format!("  {one}"));
    }
}

pub(crate) async fn fork(ctx: &mut Ctx, args: ForkArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let params = ForkParams {
        session: args.session,
        at: args.at,
        title: args.name,
        key: args.key,
    };
    let created = client.fork(&params).await?;
    let id = created.session.to_string();
    ctx.out.object(&created, &id, |_| format!("{id}\n"))?;
    Ok(Exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_coloured_by_the_kind_of_its_lines() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- a rule\n+++ another\n";
        assert_eq!(coloured(diff, Paint::new(false)), diff);
        assert_eq!(
            coloured(diff, Paint::new(true)),
            "\x1b[1m--- a/x\x1b[0m\n\x1b[1m+++ b/x\x1b[0m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n same\n\
             \x1b[31m--- a rule\x1b[0m\n\x1b[32m+++ another\x1b[0m\n"
        );
    }
}
