//! `attach`: a person and a session, full-screen or line by line.

use crate::cli::AttachArgs;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, Wanted};
use crate::fullscreen;
use crate::interactive::{Conversation, Held, Interrupt, Manner, Screen, Signals, Streams};
use crate::render::{Margin, one_line};
use agentd_client::Client;
use agentd_protocol::Summary;

/// The most lines shown of a tool's output.
const OUTPUT_LINES: usize = 10;

pub(crate) async fn attach(ctx: &mut Ctx, args: &AttachArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let row = client.get(&args.session).await?;
    let person = ctx.out.terminal.interactive() && !args.read_only && ctx.out.human();
    let short = row.session.short();
    let lines = args.margin.seq || args.margin.times;
    if !lines && fullscreen::wanted(ctx, args.no_tui) {
        full(ctx, client, &row, args).await?;
        ctx.out.status(&format!(
            "detached from {short}; to reattach: agentctl attach {short}"
        ));
        return Ok(Exit::OK);
    }
    let wanted = Wanted {
        session: row.session.to_string(),
        after: 0,
        tail: args.tail,
        deltas: true,
        decides: person,
    };
    let follower = Follower::attach(ctx.dial()?, client, wanted).await?;
    let signals = Signals::listen().map_err(Failure::Output)?;
    ctx.out.status(&format!(
        "attached to {short} ({}), {}",
        one_line(&row.name, 60),
        row.status.state
    ));
    ctx.out.status(if person {
        "type to send; /help lists commands; Ctrl-C or Ctrl-D detaches"
    } else {
        "watching only; Ctrl-C detaches"
    });
    let manner = Manner {
        answers: person,
        sends: person,
        status: None,
        exact: !ctx.out.human(),
        leaves_when: None,
        deadline: None,
        interrupt: Interrupt::Detach,
    };
    let margin = Margin::new(args.margin.seq, args.margin.times);
    let screen = Screen::new(Streams::Together, OUTPUT_LINES, true)
        .beside(margin)
        .thinking(args.margin.show_thinking);
    match Conversation::new(&mut ctx.out, follower, screen, None, manner)
        .hold(signals)
        .await?
    {
        Held::Detached | Held::Turn(_) | Held::TimedOut(_) | Held::Interrupted(_) | Held::Blocked(_) => {}
    }
    ctx.out.status(&format!(
        "detached from {short}; to reattach: agentctl attach {short}"
    ));
    Ok(Exit::OK)
}

/// The same, full-screen.
async fn full(ctx: &Ctx, client: Client, row: &Summary, args: &AttachArgs) -> Result<(), Failure> {
    let person = !args.read_only;
    let wanted = Wanted {
        session: row.session.to_string(),
        after: 0,
        tail: Some(args.tail.unwrap_or(fullscreen::TAIL)),
        deltas: true,
        decides: person,
    };
    let dial = ctx.dial()?;
    let follower = Follower::attach(dial.clone(), client, wanted).await?;
    let manner = (person, args.margin.show_thinking);
    fullscreen::follow(ctx, dial, follower, row, None, manner).await?;
    Ok(())
}
