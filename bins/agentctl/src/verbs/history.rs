//! `diff`, `undo`, `rewind`, `fork`: work on files and history.

use crate::cli::{DiffArgs, ForkArgs, RewindArgs, UndoArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use agentd_protocol::{DiffParams, Diffed, ForkParams, PutBackDone, RewindParams, SessionId, UndoParams};
use agentd_text::for_terminal;

pub(crate) async fn diff(ctx: &mut Ctx, args: DiffArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let params = DiffParams {
        session: args.session,
        turn: args.turn,
    };
    let diffed = client.diff(&params).await?;
    let names: Vec<&str> = diffed.files.iter().map(|file| file.path.as_str()).collect();
    let names = names.join("\n");
    ctx.out.object(&diffed, &names, |_| shown(&diffed, args.stat))?;
    if diffed.files.is_empty() {
        ctx.out.talk("no file differs from what it was");
    }
    stays(ctx, &diffed.stays, "it also did this, which is not compared");
    Ok(Exit::OK)
}

fn shown(diffed: &Diffed, stat: bool) -> String {
    let mut text = String::new();
    for file in &diffed.files {
        if stat {
            let line = format!(
                "{:<9} +{:<5} -{:<5} {}{}\n",
                file.status,
                file.added,
                file.removed,
                file.path,
                by(&file.by)
            );
            text.push_str(&line);
        } else {
            if !file.by.is_empty() {
                // Tools that read diffs pass over it.
                text.push_str(&format!("# {}{}\n", file.path, by(&file.by)));
            }
            text.push_str(&file.diff);
        }
    }
    // A file's content is somebody else's words.
    for_terminal(&text).into_owned()
}

/// The sub-agents that changed a file.
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
    stays(ctx, &done.stays, "this was done since and stays done");
    // As the undo itself would end.
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
            ", but somebody changed it since"
        } else {
            ""
        };
        text.push_str(&format!("{file}: {would}put back{changed}\n"));
    }
    if let Some(to) = done.rewound_to {
        let tense = if dry_run { "would go" } else { "went" };
        text.push_str(&format!("the conversation {tense} back to {to}\n"));
    }
    if !done.undo_id.is_empty() {
        text.push_str(&format!("to undo this, too: --change {}\n", done.undo_id));
    }
    for_terminal(&text).into_owned()
}

fn stays(ctx: &mut Ctx, stays: &[String], what: &str) {
    if stays.is_empty() {
        return;
    }
    ctx.out.talk(&format!("{what}:"));
    for one in stays {
        ctx.out.talk(&format!("  {one}"));
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
