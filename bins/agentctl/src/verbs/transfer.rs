//! `export` and `import`: a session's exact stored lines, out and in.

use crate::cli::{ExportArgs, ImportArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted};
use crate::verbs::logs::Pages;
use agentd_client::Client;
use agentd_protocol::{Created, Event, EventBody, Fault, ImportParams};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// A page of an import stays below this, and so below any frame limit that takes its lines at all.
const PAGE_BYTES: usize = 1 << 20;

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
    let mut page = Vec::new();
    let mut bytes = 0;
    for line in reader.lines() {
        let line = line.map_err(|error| Failure::file(&args.file, &error))?;
        if line.trim().is_empty() {
            continue;
        }
        if bytes + line.len() > PAGE_BYTES && !page.is_empty() {
            send_page(&client, std::mem::take(&mut page), args.key.clone(), true).await?;
            bytes = 0;
        }
        bytes += line.len();
        page.push(line);
    }
    let created = send_page(&client, page, args.key.clone(), false).await?;
    let created = created
        .ok_or_else(|| Fault::version("bad_answer", "the daemon took the lines and made no session"))?;
    let id = created.session.to_string();
    ctx.out.object(&created, &id, |_| format!("{id}\n"))?;
    Ok(Exit::OK)
}

async fn send_page(
    client: &Client,
    lines: Vec<String>,
    key: Option<String>,
    more: bool,
) -> Result<Option<Created>, Failure> {
    Ok(client.import(&ImportParams { lines, key, more }).await?)
}
