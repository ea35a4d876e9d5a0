//! `events`: what happens in the whole fleet.

use crate::cli::{EventsArgs, Format};
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::unreadable;
use crate::render::{Paint, one_line, summary};
use crate::values;
use crate::verbs::logs::Choice;
use agentd_client::{Push, StoredEvent};
use agentd_protocol::{Event, Fault, WatchParams};
use std::time::Duration;

const TRIES: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

/// How a watch of the fleet ended.
enum Over {
    /// There is no more.
    End,
    /// The connection is lost.
    Lost(Fault),
}

pub(crate) async fn events(ctx: &mut Ctx, args: &EventsArgs) -> Result<Exit, Failure> {
    let exact = match ctx.out.format {
        Format::Table | Format::Wide => false,
        Format::Json | Format::Jsonl => true,
        Format::Yaml | Format::Name => {
            return Err(Failure::invalid(
                "events are printed as text or jsonl",
                "-o text or -o jsonl",
            ));
        }
    };
    values::kinds(&args.kind)?;
    // Families of types are chosen here, single types by the daemon.
    let single = args.kind.iter().all(|kind| kind.contains('.'));
    let choice = Choice {
        kinds: args.kind.clone(),
        since: None,
    };
    let mut params = WatchParams {
        labels: values::selector(&args.labels),
        kinds: if single { args.kind.clone() } else { Vec::new() },
        after: if args.follow {
            args.after
        } else {
            Some(args.after.unwrap_or(0))
        },
        once: !args.follow,
    };
    let (dial, mut tries) = (ctx.dial()?, 0);
    loop {
        let seen = params.after;
        match watch(ctx, &dial, &mut params, &choice, exact).await? {
            Over::End => break,
            Over::Lost(fault) => {
                tries = if params.after == seen { tries + 1 } else { 1 };
                if tries > TRIES || !args.follow {
                    return Err(fault.hint(resume_hint(params.after)).into());
                }
                ctx.out.talk("the daemon went away; trying to come back");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    if let Some(cursor) = params.after {
        ctx.out.talk(&format!("cursor: {cursor}"));
    }
    Ok(Exit::OK)
}

fn resume_hint(after: Option<u64>) -> String {
    after.map_or_else(
        || "try again".to_owned(),
        |cursor| format!("go on with: agentctl events -f --after {cursor}"),
    )
}

async fn watch(
    ctx: &mut Ctx,
    dial: &Dial,
    params: &mut WatchParams,
    choice: &Choice,
    exact: bool,
) -> Result<Over, Failure> {
    let client = match dial.connect().await {
        Ok(client) => client,
        Err(Failure::Fault(fault)) if fault.code == "daemon_unreachable" => return Ok(Over::Lost(fault)),
        Err(failure) => return Err(failure),
    };
    let mut live = client.watch(params).await?;
    loop {
        match live.next().await {
            Some(Push::Event(stored)) => {
                params.after = stored.cursor.or(params.after);
                print(ctx, &stored, choice, exact)?;
            }
            Some(Push::Ended(ended)) if ended.code == "draining" => {
                return Ok(Over::Lost(Fault::unavailable("draining", ended.message)));
            }
            Some(Push::Ended(ended)) => {
                params.after = ended.cursor.or(params.after);
                return Ok(Over::End);
            }
            Some(Push::Delta(_) | Push::Synced(_) | Push::CaughtUp(_) | Push::Lagged(_) | Push::Unknown) => {}
            None => {
                let lost = client.lost();
                return Ok(Over::Lost(lost.unwrap_or_else(|| {
                    Fault::unavailable("connection_lost", "the connection was lost")
                })));
            }
        }
    }
}

fn print(ctx: &mut Ctx, stored: &StoredEvent, choice: &Choice, exact: bool) -> Result<(), Failure> {
    let line = String::from_utf8_lossy(&stored.json);
    let event: Event = serde_json::from_str(&line).map_err(|error| unreadable(&error))?;
    if !choice.takes(&event) {
        return Ok(());
    }
    if exact {
        return ctx.out.json_line(&line);
    }
    let text = text_line(&event, stored.cursor, ctx.out.paint());
    ctx.out.line(&text)
}

/// Cursor, moment, session, type, and what it says.
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
