//! `token`: creates, lists and revokes the tokens of programs and people on other machines.

use crate::cli::{CreateTokenArgs, TokenVerb};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::{Column, age, clean, span};
use crate::values::labels;
use agentd_protocol::{CreateTokenParams, Fault, RevokeTokenParams, Timestamp, TokenRow, listed};
use serde_json::{Value, json};

impl Row for TokenRow {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::whole("name", 0),
            Column::whole("state", 0),
            Column::whole("scopes", 1),
            Column::text("labels", 2, 20),
            Column::whole("mode", 2),
            Column::whole("expires", 1),
            Column::whole("used", 3),
        ];
        if wide {
            columns.extend([Column::whole("age", 4), Column::whole("by", 4)]);
        }
        columns
    }

    fn cells(&self, wide: bool, now: Timestamp) -> Vec<String> {
        let ends = |at: Timestamp| match at.since_ms(now) {
            0 => "over".to_owned(),
            left => format!("in {}", span(left)),
        };
        let used = |at| format!("{} ago", age(at, now));
        let mut cells = vec![
            self.name.clone(),
            self.state.clone(),
            self.scopes.join(","),
            clean(&listed(&self.labels)).into_owned(),
            self.rights.mode.to_string(),
            self.expires_at.map_or_else(|| "never".to_owned(), ends),
            self.last_used_at.map_or_else(|| "never".to_owned(), used),
        ];
        if wide {
            cells.extend([age(self.created_at, now), clean(&self.by.0).into_owned()]);
        }
        cells
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

pub(crate) async fn token(ctx: &mut Ctx, verb: &TokenVerb) -> Result<Exit, Failure> {
    match verb {
        TokenVerb::Create(args) => create(ctx, args).await,
        TokenVerb::Ls => list(ctx).await,
        TokenVerb::Show { name } => show(ctx, name).await,
        TokenVerb::Revoke { names } => revoke(ctx, names).await,
    }
}

/// Prints the token alone on stdout, so that it can go into a file; the rest goes to stderr.
async fn create(ctx: &mut Ctx, args: &CreateTokenArgs) -> Result<Exit, Failure> {
    let ttl = args
        .ttl
        .map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let params = CreateTokenParams {
        name: args.name.clone(),
        scopes: args.scopes.iter().map(|scope| scope.name()).collect(),
        labels: labels(&args.labels),
        dirs: args.dirs.clone(),
        sources: args.sources.clone(),
        mode: args.mode.map(Into::into),
        ttl_ms: ttl,
    };
    let created = ctx.connect().await?.create_token(&params).await?;
    let (row, text) = (&created.row, created.token.expose());
    if ctx.out.human() {
        let life = match ttl {
            Some(ttl) => format!("valid for {}", span(ttl)),
            None => "valid until revoked".to_owned(),
        };
        ctx.out
            .status(&format!("token {}: {}; {life}", row.name, row.scopes.join(", ")));
        for words in &row.may {
            ctx.out.status(&format!("  {}", clean(words)));
        }
        ctx.out
            .status("agentd shows the token only once: keep it in a file that only you can read (chmod 600)");
        ctx.out.status(
            "to use it on another machine: agentctl context add NAME https://HOST:7433 --token-file FILE",
        );
        ctx.out.line(text)?;
    } else {
        let mut value = json!(row);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("token".to_owned(), Value::from(text));
        }
        ctx.out.value(&value)?;
    }
    Ok(Exit::OK)
}

async fn list(ctx: &mut Ctx) -> Result<Exit, Failure> {
    let rows = ctx.connect().await?.tokens().await?;
    if rows.is_empty() && ctx.out.human() {
        ctx.out
            .status("there are no tokens; to create one: agentctl token create NAME --scope read");
    } else {
        ctx.out.list(&rows)?;
    }
    Ok(Exit::OK)
}

/// Prints what a token may do.
async fn show(ctx: &mut Ctx, name: &str) -> Result<Exit, Failure> {
    let rows = ctx.connect().await?.tokens().await?;
    let Some(row) = rows.into_iter().find(|row| row.name == name) else {
        let message = format!("there is no token {name:?}");
        return Err(Fault::not_found("unknown_token", message)
            .hint("`agentctl token ls` lists them")
            .into());
    };
    if !ctx.out.human() {
        ctx.out.value(&row)?;
        return Ok(Exit::OK);
    }
    let now = crate::clock::now();
    let life = match row.expires_at {
        Some(at) if row.state == "live" => format!("for {}", span(at.since_ms(now))),
        _ => row.state.clone(),
    };
    ctx.out
        .line(&format!("{} ({life}), created by {}", row.name, clean(&row.by.0)))?;
    for words in &row.may {
        ctx.out.line(&format!("  {}", clean(words)))?;
    }
    Ok(Exit::OK)
}

async fn revoke(ctx: &mut Ctx, names: &[String]) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let (mut exit, mut revoked) = (Exit::OK, Vec::new());
    for name in names {
        match client
            .revoke_token(&RevokeTokenParams { name: name.clone() })
            .await
        {
            Ok(row) => {
                ctx.out.status(&format!("revoked: {}", row.name));
                revoked.push(row);
            }
            Err(error) => exit = exit.or(ctx.out.failure(&Fault::from(error).into())),
        }
    }
    if !ctx.out.human() {
        ctx.out.list(&revoked)?;
    }
    Ok(exit)
}
