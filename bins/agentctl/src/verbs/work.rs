//! `apply`, `branch`, `export --patch`: a session's changes of files, brought to where they are wanted.

use crate::cli::{ApplyArgs, BranchArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::count;
use crate::verbs::lifecycle::confirm;
use agentd_client::Client;
use agentd_protocol::{AppliedTo, ApplyParams, BranchParams, Fault, PatchParams};
use agentd_text::for_terminal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) async fn apply(ctx: &mut Ctx, args: ApplyArgs) -> Result<Exit, Failure> {
    let to = args.to.unwrap_or_else(|| ".".into());
    let to = std::path::absolute(&to).map_err(|error| {
        Fault::invalid("bad_directory", format!("{}: {error}", to.display()))
            .hint("give an existing directory")
    })?;
    let client = ctx.connect().await?;
    let params = ApplyParams {
        session: args.session,
        to: to.to_string_lossy().into_owned(),
        dry_run: args.dry_run,
    };
    let applied = client.apply(&params).await?;
    let names = applied.files.join("\n");
    ctx.out
        .object(&applied, &names, |_| text_of(&applied, args.dry_run))?;
    if applied.files.is_empty() {
        ctx.out
            .status("nothing to apply: the directory has these changes already");
    }
    Ok(Exit::OK)
}

fn text_of(applied: &AppliedTo, dry_run: bool) -> String {
    let would = if dry_run { "would be " } else { "" };
    let line = |file: &String| {
        let how = if applied.merged.contains(file) {
            "merged"
        } else {
            "changed"
        };
        format!("{file}: {would}{how}\n")
    };
    let text: String = applied.files.iter().map(line).collect();
    for_terminal(&text).into_owned()
}

pub(crate) async fn branch(ctx: &mut Ctx, args: BranchArgs) -> Result<Exit, Failure> {
    if let Some(url) = args.push.as_ref().filter(|_| !args.yes) {
        let question = format!("push the branch {} to {url}?", args.name);
        confirm(ctx, &for_terminal(&question))?;
    }
    let client = ctx.connect().await?;
    let params = BranchParams {
        session: args.session,
        name: args.name,
        message: args.message,
        push: args.push,
    };
    let made = client.branch(&params).await?;
    ctx.out.object(&made, &made.commit, |_| {
        let commit: String = made.commit.chars().take(12).collect();
        let text = format!(
            "{} {commit}: {} changed\n",
            made.branch,
            count(made.files, "file")
        );
        for_terminal(&text).into_owned()
    })?;
    Ok(Exit::OK)
}

/// Prints the patch or the bundle as it is.
pub(crate) async fn patch(
    ctx: &mut Ctx,
    client: &Client,
    (session, bundle): (String, Option<String>),
) -> Result<Exit, Failure> {
    let patch = client.patch(&PatchParams { session, bundle }).await?;
    let bytes = STANDARD.decode(&patch.data);
    let bytes = bytes.map_err(|error| Fault::internal("bad_answer", format!("not base64: {error}")))?;
    ctx.out.raw(&bytes)?;
    Ok(Exit::OK)
}
