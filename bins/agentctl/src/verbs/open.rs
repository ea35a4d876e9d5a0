//! `open`: prints a link that signs a browser in to the page.

use crate::cli::OpenArgs;
use crate::contexts::Address;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::span;
use agentd_protocol::LinkTokenParams;
use serde_json::json;

pub(crate) async fn open(ctx: &mut Ctx, args: &OpenArgs) -> Result<Exit, Failure> {
    let params = LinkTokenParams {
        scopes: args.scopes.iter().map(|scope| scope.name()).collect(),
        ttl_ms: args
            .ttl
            .map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
    };
    let dial = ctx.dial()?;
    let link = dial.connect().await?.link_token(&params).await?;
    // A daemon on another machine does not know the address by which this one reaches it.
    let url = match &dial.address {
        Address::Web { url, .. } => format!("{}/ui/#code={}", url.trim_end_matches('/'), link.code.expose()),
        Address::Socket { .. } => link.url.expose().to_owned(),
    };
    if ctx.out.human() {
        let left = span(link.expires_at.since_ms(crate::clock::now()));
        ctx.out.status(&format!(
            "open this link in a browser within {left}; it works once"
        ));
        ctx.out.line(&url)?;
    } else {
        ctx.out
            .value(&json!({"url": url, "expires_at": link.expires_at}))?;
    }
    Ok(Exit::OK)
}
