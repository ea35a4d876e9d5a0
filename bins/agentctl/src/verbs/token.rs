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
        ttl_ms: ttl,
    };
    let created = ctx.connect().await?.create_token(&params).await?;
    let (row, text) = (&created.row, created.token.expose());
    if ctx.out.human() {
        let reach = match row.labels.is_empty() {
            true => "all sessions".to_owned(),
            false => format!("sessions with {}", clean(&listed(&row.labels))),
        };
        let life = match ttl {
            Some(ttl) => format!("valid for {}", span(ttl)),
            None => "valid until revoked".to_owned(),
        };
        let what = format!("token {}: {}; {reach}; {life}", row.name, row.scopes.join(", "));
        ctx.out.status(&what);
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
