//! `compact`, `show --context` and `show --summary`: the conversation as the model gets it, its size in tokens, and a
//! summary of the session's work.

use crate::cli::{CompactArgs, ShowArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted};
use crate::render::context_text;
use agentd_client::Client;
use agentd_protocol::{EventBody, Fault, ModelStatus, Seq, SessionParams, SidePurpose};
use agentd_transcript::Prices;

/// Compacts a conversation and waits for the result.
pub(crate) async fn compact(ctx: &mut Ctx, args: &CompactArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let session = client.get(&args.session).await?.session.to_string();
    let params = SessionParams {
        session: session.clone(),
    };
    let asked = client.compact(&params).await?;
    if args.no_wait {
        ctx.out
            .status("compaction requested; the log gets context.compacted or context.kept when it is done");
        return Ok(Exit::OK);
    }
    let mut follower = follower(ctx, client, session, asked.seq).await?;
    loop {
        let news = follower.next().await?;
        match &news {
            News::Event(event, line) => match &event.body {
                EventBody::ContextCompacted(_) | EventBody::ContextKept(_) => {
                    if ctx.out.human() {
                        ctx.out.line(&crate::render::summary(&event.body))?;
                    } else {
                        ctx.out.json_line(line)?;
                    }
                    return Ok(Exit::OK);
                }
                _ => {}
            },
            News::Retrying => ctx.out.status("connection to the daemon lost; reconnecting"),
            News::Delta(_) | News::Synced(_) | News::Lagged | News::Back | News::Ended(_) => {}
        }
        if news.is_last() {
            let fault = Fault::conflict("session_closed", "the session was closed before it was compacted");
            return Err(fault.into());
        }
    }
}

/// Lets a model summarize a session and waits for the result.
pub(crate) async fn summarize(ctx: &Ctx, session: &str) -> Result<(), Failure> {
    let client = ctx.connect().await?;
    let session = client.get(session).await?.session.to_string();
    let params = SessionParams {
        session: session.clone(),
    };
    let asked = client.summarize(&params).await?;
    let mut follower = follower(ctx, client, session, asked.seq).await?;
    loop {
        let news = follower.next().await?;
        if let News::Event(event, _) = &news
            && let EventBody::SideCallFinished(finished) = &event.body
            && finished.purpose == SidePurpose::Summary
        {
            return match &finished.error {
                None => Ok(()),
                Some(why) => {
                    let message = format!("{} wrote no summary: {why}", finished.model);
                    Err(Fault::unavailable("no_summary", message).into())
                }
            };
        }
        if news.is_last() {
            let fault = Fault::conflict(
                "session_closed",
                "the session was closed before it was summarized",
            );
            return Err(fault.into());
        }
    }
}

async fn follower(ctx: &Ctx, client: Client, session: String, after: Seq) -> Result<Follower, Failure> {
    let wanted = Wanted {
        session,
        after,
        tail: None,
        deltas: false,
        decides: false,
    };
    Follower::attach(ctx.dial()?, client, wanted).await
}

/// The prices of the configured models.
pub(crate) fn prices_of(models: &[ModelStatus]) -> Prices {
    let priced = models
        .iter()
        .filter_map(|model| Some((model.name.clone(), model.price?)));
    priced.collect()
}

/// Shows the parts of the context window.
pub(crate) async fn show(ctx: &mut Ctx, client: &Client, args: &ShowArgs) -> Result<Exit, Failure> {
    let params = SessionParams {
        session: args.session.clone(),
    };
    let shown = client.context(&params).await?;
    let id = shown.session.to_string();
    ctx.out.object(&shown, &id, |paint| context_text(&shown, paint))?;
    Ok(Exit::OK)
}
