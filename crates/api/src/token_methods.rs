//! `token.create`, `token.list`, `token.revoke`.

use crate::api::Api;
use crate::dispatch::answer;
use crate::methods::Scope;
use crate::rights::checked;
use crate::sight::Caller;
use crate::token_words::may;
use crate::tokens::Secret;
use crate::validate;
use crate::words::cut;
use agentd_protocol::{
    CreateTokenParams, Fault, Labels, Principal, RevokeTokenParams, Timestamp, TokenRights, TokenRow, nearest,
};
use agentd_store::backend::MAX_TOKEN_NAME;
use agentd_store::{MAX_TOKENS, StoreError, StoredToken};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::sync::mpsc::error::TrySendError;

/// A hundred years: a longer life is a mistake.
const MAX_TTL_MS: u64 = 100 * 365 * DAY_MS;
const DAY_MS: u64 = 24 * 3_600_000;
/// For how long a token that ended is listed and keeps its name.
const KEPT_MS: u64 = 30 * DAY_MS;

impl Api {
    /// Creates a token. The answer is the only place that ever has its text.
    pub(crate) async fn create_token(&self, who: &Caller, params: CreateTokenParams) -> Result<Value, Fault> {
        self.tokens_read().await?;
        name(&params.name)?;
        validate::labels(&params.labels)?;
        let scopes = self.scopes_granted(who, &params.scopes)?;
        let rights = checked(TokenRights {
            dirs: params.dirs,
            sources: params.sources,
            mode: params.mode.unwrap_or(TokenRights::default().mode),
        })?;
        let ttl = params.ttl_ms;
        let make = |secret: &Secret, now| {
            Ok(StoredToken {
                name: params.name,
                hash: secret.hash(),
                scopes,
                labels: params.labels,
                rights: Some(rights),
                created: now,
                by: who.principal().clone(),
                expires: ttl.map(|ttl| expiry(now, ttl)).transpose()?,
                used: None,
                revoked: None,
            })
        };
        self.add_token(make).await
    }

    /// Stores and accepts a new token, and answers with it.
    pub(crate) async fn add_token(
        &self,
        make: impl FnOnce(&Secret, Timestamp) -> Result<StoredToken, Fault>,
    ) -> Result<Value, Fault> {
        let (secret, now) = (Secret::random()?, self.parts.clock.now());
        let token = make(&secret, now)?;
        let forget = Timestamp(now.0.saturating_sub(KEPT_MS));
        if !self.parts.backend.add_token(token.clone(), forget).await? {
            return Err(self.no_room(&token.name).await?);
        }
        self.tokens.accept(token.clone(), self.parts.clock);
        let by = token.by.clone();
        let row = self.token_row(token);
        tracing::info!(name = row.name, %by, "token created");
        self.record(&by, "token.created", &json!(row));
        let mut made = answer(&row)?;
        if let Some(fields) = made.as_object_mut() {
            fields.insert("token".to_owned(), Value::from(secret.expose()));
        }
        Ok(made)
    }

    pub(crate) async fn list_tokens(&self) -> Result<Vec<TokenRow>, Fault> {
        self.tokens_read().await?;
        let tokens = self.parts.backend.tokens().await?;
        let damaged = self.parts.backend.damaged_tokens().await?;
        let rows = tokens.into_iter().map(|token| self.token_row(token));
        Ok(rows
            .chain(damaged.into_iter().map(|name| damaged_row(name, "damaged")))
            .collect())
    }

    /// Revokes a token. Its streams end before this answers or shortly after.
    pub(crate) async fn revoke_token(
        &self,
        who: &Caller,
        params: RevokeTokenParams,
    ) -> Result<TokenRow, Fault> {
        self.tokens_read().await?;
        // Whatever the store can do: it opens nothing from here on (I7).
        self.tokens.revoke(&params.name);
        let now = self.parts.clock.now();
        let done = self.parts.backend.revoke_token(&params.name, now).await?;
        let tokens = self.parts.backend.tokens().await?;
        let token = tokens.into_iter().find(|token| token.name == params.name);
        let row = match token {
            Some(token) => Some(self.token_row(token)),
            None => done.then(|| damaged_row(params.name.clone(), "revoked")),
        };
        let Some(row) = row else {
            let message = format!("there is no token {:?}", cut(&params.name));
            return Err(Fault::not_found("unknown_token", message).hint("`agentctl token ls` lists them"));
        };
        if done {
            tracing::info!(name = row.name, by = %who, "token revoked");
            self.record(who.principal(), "token.revoked", &json!(row));
        }
        Ok(row)
    }

    fn token_row(&self, token: StoredToken) -> TokenRow {
        let held = self.tokens.named(&token.name).and_then(|held| held.last_used());
        let state = match token.revoked {
            Some(_) => "revoked",
            None if token.is_live(self.parts.clock.now()) => "live",
            None => "expired",
        };
        let rights = token.rights.unwrap_or_default();
        TokenRow {
            may: may(&token.scopes, &token.labels, &rights),
            rights,
            name: token.name,
            state: state.to_owned(),
            scopes: token.scopes,
            labels: token.labels,
            created_at: token.created,
            by: token.by,
            expires_at: token.expires,
            last_used_at: held.max(token.used),
            revoked_at: token.revoked,
        }
    }

    /// The scopes of a new token. A caller can grant only scopes that it has.
    pub(crate) fn scopes_granted(&self, who: &Caller, asked: &[String]) -> Result<Vec<String>, Fault> {
        let names = || Scope::ALL.map(Scope::as_str);
        let list = || names().join(", ");
        let mut scopes = BTreeSet::new();
        for word in asked {
            let scope = Scope::parse(word).ok_or_else(|| {
                let hint = match nearest(word, names()) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("the scopes are {}", list()),
                };
                let message = format!("there is no scope {:?}", cut(word));
                Fault::invalid("unknown_scope", message).hint(hint)
            })?;
            if !who.scopes().contains(&scope) {
                let message = format!("{who} lacks the scope {scope} and so cannot grant it");
                return Err(Fault::denied("scope_beyond", message));
            }
            scopes.insert(scope);
        }
        if scopes.is_empty() {
            let fault = Fault::invalid("scopes_missing", "a token needs at least one scope");
            return Err(fault.hint(format!("the scopes are {}", list())));
        }
        Ok(scopes.into_iter().map(|scope| scope.to_string()).collect())
    }

    /// Why the store did not add a token.
    async fn no_room(&self, name: &str) -> Result<Fault, Fault> {
        let tokens = self.parts.backend.tokens().await?;
        if tokens.iter().any(|token| token.name == name) {
            let message =
                format!("the name {name:?} belongs to a token that is live or ended in the last 30 days");
            let fault = Fault::conflict("token_exists", message);
            return Ok(fault.hint("choose another name: logs tell tokens apart by their names"));
        }
        let damaged = self.parts.backend.damaged_tokens().await?;
        if damaged.iter().any(|damaged| damaged == name) {
            let message = format!("the name {name:?} belongs to a damaged token, which opens nothing");
            let fault = Fault::conflict("token_damaged", message);
            return Ok(fault.hint(format!("`agentctl token revoke {name}` removes it")));
        }
        if tokens.len() + damaged.len() < MAX_TOKENS {
            let why =
                format!("the table of tokens has no readable row for the name {name:?}, and yet refuses it");
            return Ok(StoreError::Damaged(why).into());
        }
        let message = format!("there are {MAX_TOKENS} tokens, which is the limit");
        let hint = "revoke some; a token that ended 30 days ago makes room";
        Ok(Fault::limit("too_many_tokens", message).hint(hint))
    }

    /// Writes a line into the audit file. Without one, nothing receives the line.
    pub(crate) fn record(&self, who: &Principal, event: &str, what: &Value) {
        let line = json!({"at": self.parts.clock.now(), "who": who, "session": Value::Null,
            "seq": Value::Null, "event": event, "what": what, "why": Value::Null, "trace_id": Value::Null});
        if let Err(TrySendError::Full(_)) = self.parts.audit.try_send(line) {
            tracing::warn!(
                event,
                "a line is missing from the audit file: its writer is too far behind"
            );
        }
    }
}

/// The row of a damaged token: what it was is unknown.
fn damaged_row(name: String, state: &str) -> TokenRow {
    TokenRow {
        may: vec!["nothing: its row in the store is damaged".to_owned()],
        rights: TokenRights::default(),
        name,
        state: state.to_owned(),
        scopes: Vec::new(),
        labels: Labels::new(),
        created_at: Timestamp(0),
        by: Principal::agentd(),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}

fn name(name: &str) -> Result<(), Fault> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let fits = name.len() <= MAX_TOKEN_NAME && name.chars().all(word);
    if fits && edge(name.chars().next()) && edge(name.chars().next_back()) {
        return Ok(());
    }
    let message = format!("the name {:?} is not allowed for a token", cut(name));
    let hint = format!("1 to {MAX_TOKEN_NAME} of A-Z a-z 0-9 . _ -, a letter or digit at both ends");
    Err(Fault::invalid("bad_token_name", message).hint(hint))
}

pub(crate) fn expiry(now: Timestamp, ttl_ms: u64) -> Result<Timestamp, Fault> {
    if (1..=MAX_TTL_MS).contains(&ttl_ms) {
        return Ok(now.plus_ms(ttl_ms));
    }
    let fault = Fault::invalid("bad_ttl", format!("the lifetime {ttl_ms} ms is not allowed"));
    Err(fault.hint(format!(
        "1 ms to {MAX_TTL_MS} ms; leave it out for a token that lives until it is revoked"
    )))
}
