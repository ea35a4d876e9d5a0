//! `export` and `import`: writes a session's exact stored lines, and reads them as the history of a new session.

use crate::cli::{ExportArgs, ImportArgs};
use crate::clock::now;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted};
use crate::render::clean;
use crate::values;
use crate::verbs::before_run::name_is_free;
use crate::verbs::lifecycle::ask;
use crate::verbs::logs::Pages;
use agentd_client::{Client, ClientError};
use agentd_protocol::{BlobParams, Created, Event, Fault, ImportParams, Seq, Stamp};
use std::collections::BTreeSet;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// The page size of an import; low enough for any frame limit that admits the lines at all.
const PAGE_BYTES: usize = 1 << 20;
/// The last page makes the daemon write the whole log, for which it allows itself two minutes.
const IMPORT_DEADLINE: Duration = Duration::from_secs(130);

pub(crate) async fn export(ctx: &mut Ctx, args: &ExportArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let session = client.get(&args.session).await?.session.to_string();
    if args.patch || args.bundle.is_some() {
        return crate::verbs::work::patch(ctx, &client, (session, args.bundle.clone())).await;
    }
    if args.follow {
        return follow(ctx, client, session, args.after).await;
    }
    let mut pages = Pages::new(&session, args.after);
    let mut kept = BTreeSet::new();
    while let Some(lines) = pages.next(&client).await? {
        for line in lines {
            if !args.no_blobs {
                kept.extend(kept_output(&line));
            }
            ctx.out.json_line(&line)?;
        }
    }
    for name in kept {
        blob(ctx, &client, name).await?;
    }
    Ok(Exit::OK)
}

/// The name of the stored content that an event refers to. A line of a newer version refers to none.
fn kept_output(line: &str) -> Option<String> {
    let event: Event = serde_json::from_str(line).ok()?;
    event.kept_output().map(str::to_owned)
}

/// Prints the lines of a stored content, after the events. Content that was not part of an import is missing.
async fn blob(ctx: &mut Ctx, client: &Client, name: String) -> Result<(), Failure> {
    let mut params = BlobParams { name, offset: 0 };
    loop {
        let part = match client.blob(&params).await {
            Err(ClientError::Refused(fault)) if fault.code == "no_blob" => {
                ctx.out
                    .status(&format!("omitted: the store has no content {}", params.name));
                return Ok(());
            }
            part => part?,
        };
        ctx.out
            .json_line(&serde_json::to_string(&part).unwrap_or_default())?;
        let taken = u64::try_from(part.data.len() / 4 * 3).unwrap_or(u64::MAX);
        params.offset = part.at.saturating_add(taken);
        if params.offset >= part.of || taken == 0 {
            return Ok(());
        }
    }
}

/// Prints the stored and all new lines, even over a lost connection, until the session is closed.
async fn follow(ctx: &mut Ctx, client: Client, session: String, after: Seq) -> Result<Exit, Failure> {
    let wanted = Wanted {
        session,
        after,
        tail: None,
        deltas: false,
        decides: false,
    };
    let mut follower = Follower::attach(ctx.dial()?, client, wanted).await?;
    loop {
        let news = follower.next().await?;
        match &news {
            News::Event(_, line) => ctx.out.json_line(line)?,
            News::Retrying => ctx.out.status("connection to the daemon lost; reconnecting"),
            News::Delta(_) | News::Synced(_) | News::Lagged | News::Back | News::Ended(_) => {}
        }
        if news.is_last() {
            return Ok(Exit::OK);
        }
    }
}

pub(crate) async fn import(ctx: &mut Ctx, args: &ImportArgs) -> Result<Exit, Failure> {
    let mut page = asked(ctx, args)?;
    let reader: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(&args.file).map_err(|error| Failure::file(&args.file, &error))?;
        Box::new(BufReader::new(file))
    };
    let client = ctx.connect().await?;
    if let Some(name) = &args.name {
        name_is_free(&client, name).await?;
    }
    let mut bytes = 0;
    for line in reader.lines() {
        let line = line.map_err(|error| Failure::file(&args.file, &error))?;
        if line.trim().is_empty() {
            continue;
        }
        if bytes + line.len() > PAGE_BYTES && !page.lines.is_empty() {
            // The key ties the pages together.
            page.key.get_or_insert_with(fresh_key);
            page.more = true;
            send_page(&client, &page).await?;
            page.lines.clear();
            bytes = 0;
        }
        bytes += line.len();
        page.lines.push(line);
    }
    page.more = false;
    let created = send_page(&client, &page).await?;
    let created = created.ok_or_else(|| {
        Fault::version(
            "bad_answer",
            "the daemon accepted the lines but created no session",
        )
    })?;
    let id = created.session.to_string();
    ctx.out.object(&created, &id, |_| format!("{id}\n"))?;
    Ok(Exit::OK)
}

/// The importer's parameters for the session; the file has no influence on them.
fn asked(ctx: &mut Ctx, args: &ImportArgs) -> Result<ImportParams, Failure> {
    let from_stdin = args.file.as_os_str() == "-";
    let name = args.file.file_name().filter(|_| !from_stdin);
    let source = name.map_or_else(|| "stdin".to_owned(), |name| name.to_string_lossy().into_owned());
    let workdir = match &args.workdir {
        Some(dir) => values::workdir(Some(dir))?,
        None => chosen_dir(ctx, from_stdin)?,
    };
    Ok(ImportParams {
        key: args.key.clone(),
        source: Some(source),
        workdir,
        title: args.name.clone(),
        model: args.model.clone(),
        mode: args.mode.map(Into::into),
        labels: values::labels(&args.labels),
        max_turns: args.max_turns,
        budget: args.budget,
        tools: args.tools.clone(),
        rules: values::rules(&args.allow, &args.deny),
        ..ImportParams::default()
    })
}

/// Asks a person for the directory. Without a terminal it is the current one, as with `run`, and a message says so.
fn chosen_dir(ctx: &mut Ctx, from_stdin: bool) -> Result<String, Failure> {
    let here = values::workdir(None)?;
    if from_stdin || !(ctx.out.terminal.stdin && ctx.out.terminal.stderr) {
        ctx.out.status(&format!(
            "the session will work in {} (to change it: -C DIR)",
            clean(&here)
        ));
        return Ok(here);
    }
    let question = format!("Working directory of the imported session [{}]: ", clean(&here));
    let typed = ask(ctx, &question)?;
    match typed.as_str() {
        "" => Ok(here),
        dir => values::workdir(Some(std::path::Path::new(dir))),
    }
}

async fn send_page(client: &Client, page: &ImportParams) -> Result<Option<Created>, Failure> {
    Ok(client.call("session.import", page, IMPORT_DEADLINE).await?)
}

/// A unique idempotency key.
fn fresh_key() -> String {
    let entropy = RandomState::new().build_hasher().finish();
    format!("import-{}", Stamp::new(now(), entropy).append())
}
