//! `export` and `import`: a session's exact stored lines, out and in.

use crate::cli::{ExportArgs, ImportArgs};
use crate::clock::now;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted};
use crate::verbs::logs::Pages;
use agentd_client::Client;
use agentd_protocol::{Created, Event, EventBody, Fault, ImportParams, Stamp};
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
    let (mut pages, mut closed) = (Pages::new(&session, args.after), false);
    while let Some(lines) = pages.next(&client).await? {
        closed = lines.last().is_some_and(|line| is_closed(line));
        for line in lines {
            ctx.out.json_line(&line)?;
        }
    }
    if args.follow && !closed {
        let wanted = Wanted {
            session,
            after: pages.last(),
            tail: None,
            deltas: false,
            decides: false,
        };
        let mut follower = Follower::attach(ctx.dial()?, client, wanted).await?;
        loop {
            match follower.next().await? {
                News::Event(event, line) => {
                    ctx.out.json_line(&line)?;
                    if matches!(event.body, EventBody::SessionClosed(_)) {
                        break;
                    }
                }
                News::Ended(_) => break,
                News::Retrying => ctx.out.talk("the daemon went away; trying to come back"),
                News::Delta(_) | News::Synced(_) | News::Lagged | News::Back => {}
            }
        }
    }
    Ok(Exit::OK)
}

fn is_closed(line: &str) -> bool {
    serde_json::from_str::<Event>(line).is_ok_and(|event| matches!(event.body, EventBody::SessionClosed(_)))
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
