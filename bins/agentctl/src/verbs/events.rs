//! `events`: the events of all sessions.

use crate::cli::{EventsArgs, Format};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::render::{Paint, one_line, summary};
use crate::values;
use crate::verbs::fleet_log::{Found, Over, last, watch};
use crate::verbs::logs::Choice;
use agentd_protocol::{Event, WatchParams};
use std::time::Duration;

const TRIES: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn events(ctx: &mut Ctx, args: &EventsArgs) -> Result<Exit, Failure> {
    let exact = match ctx.out.format {
        Format::Table | Format::Wide => false,
        Format::Json | Format::Jsonl => true,
        Format::Yaml | Format::Name => {
            return Err(Failure::invalid(
                "events can only be printed as text or jsonl",
                "use -o text or -o jsonl",
            ));
        }
    };
    values::kinds(&args.kind)?;
    let choice = Choice {
        kinds: args.kind.clone(),
        since: values::since_flag(args.since.as_deref(), "agentctl events --since 2h")?,
    };
    let mut params = WatchParams {
        labels: values::selector(&args.labels),
        kinds: args.kind.clone(),
        after: if args.follow && args.since.is_none() {
            args.after
        } else {
            Some(args.after.unwrap_or(0))
        },
        once: !args.follow,
    };
    if let Some(most) = args.tail {
        let (found, cursor) = last(&ctx.dial()?, &params, &choice, most).await?;
        found
            .iter()
            .try_for_each(|found| print(&mut ctx.out, found, exact))?;
        params.after = cursor;
    }
    if args.tail.is_none() || args.follow {
        stream(ctx, &mut params, &choice, exact).await?;
    }
    if let Some(cursor) = params.after {
        ctx.out.status(&format!("cursor: {cursor}"));
    }
    Ok(Exit::OK)
}

/// Prints events as they arrive. With `-f`, reconnects when the daemon is back.
async fn stream(
    ctx: &mut Ctx,
    params: &mut WatchParams,
    choice: &Choice,
    exact: bool,
) -> Result<(), Failure> {
    let (dial, mut tries) = (ctx.dial()?, 0);
    loop {
        let seen = params.after;
        let shown = |found| print(&mut ctx.out, &found, exact);
        match watch(&dial, params, choice, shown).await? {
            Over::End => return Ok(()),
            Over::Lost(fault) => {
                tries = if params.after == seen { tries + 1 } else { 1 };
                if tries > TRIES || params.once {
                    return Err(fault.hint(resume_hint(params.after)).into());
                }
                ctx.out.status("connection to the daemon lost; reconnecting");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn resume_hint(after: Option<u64>) -> String {
    after.map_or_else(
        || "try again".to_owned(),
        |cursor| format!("continue with: agentctl events -f --after {cursor}"),
    )
}

fn print(out: &mut Output, (event, stored): &Found, exact: bool) -> Result<(), Failure> {
    if exact {
        return out.json_line(&String::from_utf8_lossy(&stored.json));
    }
    let text = text_line(event, stored.cursor, out.paint());
    out.line(&text)
}

/// Cursor, time, session, type and summary of an event.
pub(crate) fn text_line(event: &Event, cursor: Option<u64>, paint: Paint) -> String {
    let cursor = cursor.map_or_else(String::new, |cursor| cursor.to_string());
    let head = format!("{cursor:>8}  {}  {}  ", event.at, event.session.short());
    let kind = format!("{:<17}", event.body.kind());
    format!(
        "{}{}  {}",
        paint.dim(&head),
        paint.accent(&kind),
        one_line(&summary(&event.body), 160)
    )
}
