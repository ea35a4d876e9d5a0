//! `export` and `import`: a session's exact stored lines, out and in.

use crate::cli::{ExportArgs, ImportArgs};
use crate::clock::now;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted};
use crate::verbs::logs::Pages;
use agentd_client::Client;
use agentd_protocol::{Created, Fault, ImportParams, Seq, Stamp};
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// A page of an import stays below this, and so below any frame limit that takes its lines at all.
const PAGE_BYTES: usize = 1 << 20;
/// The last page is written as a whole log; the daemon gives itself two minutes.
const IMPORT_DEADLINE: Duration = Duration::from_secs(130);

pub(crate) async fn export(ctx: &mut Ctx, args: &ExportArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let session = client.get(&args.session).await?.session.to_string();
    if args.follow {
        return follow(ctx, client, session, args.after).await;
    }
    let mut pages = Pages::new(&session, args.after);
    while let Some(lines) = pages.next(&client).await? {
        for line in lines {
            ctx.out.json_line(&line)?;
        }
    }
    Ok(Exit::OK)
}

/// The stored lines and what comes, over a lost connection too, until the session is closed.
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
            News::Retrying => ctx.out.talk("the daemon went away; trying to come back"),
            News::Delta(_) | News::Synced(_) | News::Lagged | News::Back | News::Ended(_) => {}
        }
        if news.is_last() {
            return Ok(Exit::OK);
        }
    }
}

pub(crate) async fn import(ctx: &mut Ctx, args: &ImportArgs) -> Result<Exit, Failure> {
    let reader: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(&args.file).map_err(|error| Failure::file(&args.file, &error))?;
        Box::new(BufReader::new(file))
    };
    let client = ctx.connect().await?;
    let mut page = ImportParams {
        key: args.key.clone(),
        ..ImportParams::default()
    };
    let mut bytes = 0;
    for line in reader.lines() {
        let line = line.map_err(|error| Failure::file(&args.file, &error))?;
        if line.trim().is_empty() {
            continue;
        }
        if bytes + line.len() > PAGE_BYTES && !page.lines.is_empty() {
            // The key holds the pages together.
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
    let created = created
        .ok_or_else(|| Fault::version("bad_answer", "the daemon took the lines and made no session"))?;
    let id = created.session.to_string();
    ctx.out.object(&created, &id, |_| format!("{id}\n"))?;
    Ok(Exit::OK)
}

async fn send_page(client: &Client, page: &ImportParams) -> Result<Option<Created>, Failure> {
    Ok(client.call("session.import", page, IMPORT_DEADLINE).await?)
}

/// A key that nobody else has.
fn fresh_key() -> String {
    let entropy = RandomState::new().build_hasher().finish();
    format!("import-{}", Stamp::new(now(), entropy).append())
}
