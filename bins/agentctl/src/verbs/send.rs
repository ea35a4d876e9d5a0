//! `send`: an input to an existing session.

use crate::cli::SendArgs;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::clean;
use crate::values;
use crate::verbs::before_run::{check_size, say_if_text};
use crate::verbs::run::{Watching, enter, watch};
use agentd_protocol::{Delivery, SendParams};

const USAGE: &str = "agentctl send ID \"also update the docs\", or --input-file FILE (- for stdin)";

pub(crate) async fn send(ctx: &mut Ctx, args: &SendArgs) -> Result<Exit, Failure> {
    let content = values::prompt(
        args.text.as_deref(),
        args.input_file.as_deref(),
        &args.images,
        USAGE,
    )?;
    let client = ctx.connect().await?;
    check_size(&client, &content)?;
    say_if_text(ctx, &content, args.commands);
    let delivery = [
        (args.steer, Delivery::Steer),
        (args.queue, Delivery::Queue),
        (args.collect, Delivery::Collect),
        (args.interrupt, Delivery::Interrupt),
    ];
    let params = SendParams {
        session: args.session.clone(),
        content,
        delivery: delivery
            .into_iter()
            .find(|(asked, _)| *asked)
            .map(|(_, delivery)| delivery),
        key: args.key.clone(),
        model: args.model.clone(),
        agent: args.agent.clone(),
        commands: args.commands,
    };
    let entered = enter(&client, params).await?;
    if let Some(said) = &entered.said {
        ctx.out.line(&clean(said))?;
        return Ok(Exit::OK);
    }
    entered.tell(ctx);
    if args.wait {
        return watch(ctx, client, &entered, Watching::of(ctx, false, args.timeout)).await;
    }
    if ctx.out.human() && !ctx.out.quiet {
        ctx.out.status(&format!(
            "accepted by {} as input {}",
            entered.session.short(),
            entered.input.short()
        ));
        return Ok(Exit::OK);
    }
    ctx.out
        .object(&entered.row(), &entered.input.to_string(), |_| String::new())?;
    Ok(Exit::OK)
}
