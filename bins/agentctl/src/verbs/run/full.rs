//! `run` full-screen.

use super::{Entered, Watching, after_leaving};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, Wanted};
use crate::fullscreen;
use crate::interactive::TurnWatch;
use crate::render::clean;
use agentd_client::Client;

/// Watches full-screen. The model's last words stay on the terminal.
pub(super) async fn watch(
    ctx: &mut Ctx,
    client: Client,
    entered: &Entered,
    watching: Watching,
) -> Result<Exit, Failure> {
    let wanted = Wanted {
        session: entered.session.to_string(),
        after: 0,
        tail: Some(fullscreen::TAIL),
        deltas: true,
        decides: true,
    };
    let row = client.get(&wanted.session).await?;
    let follower = Follower::attach(ctx.dial()?, client, wanted).await?;
    let watch = TurnWatch::new(entered.session, entered.input);
    let followed = fullscreen::follow(
        ctx,
        ctx.dial()?,
        follower,
        &row,
        Some(watch),
        (true, watching.thinking),
    )
    .await?;
    let Some(result) = followed.result else {
        return after_leaving(ctx, watching, entered, None, Exit::INTERRUPTED);
    };
    if let Some(words) = followed.words {
        ctx.out.line(clean(&words).trim_end())?;
    }
    let next = format!("to continue: agentctl attach {}", entered.session.short());
    ctx.out.status(&next);
    Ok(watching.exit(&result))
}
