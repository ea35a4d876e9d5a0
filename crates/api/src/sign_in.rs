//! Links that sign a browser in: `token.link` makes a code that can be exchanged once for a token.

use crate::api::Api;
use crate::sight::Caller;
use crate::token_methods::expiry;
use crate::tokens::Secret;
use agentd_protocol::{Fault, Labels, LinkTokenParams, Principal, SignInParams, Timestamp, TokenRights};
use agentd_store::StoredToken;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// How long a code is valid: enough to open a browser.
const CODE_MS: u64 = 5 * 60_000;
/// How long a browser stays signed in, unless the caller says otherwise.
const SIGNED_IN_MS: u64 = 12 * 3_600_000;
/// The most codes that are valid at the same time.
const MAX_CODES: usize = 64;
/// The default scopes of a page.
const SCOPES: [&str; 3] = ["read", "steer", "approve"];

/// The token that a code stands for.
#[derive(Debug)]
struct Grant {
    by: Principal,
    scopes: Vec<String>,
    rights: TokenRights,
    ttl_ms: u64,
    until: Timestamp,
}

/// The unused codes, by their hash. They do not survive a restart.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<HashMap<[u8; 32], Grant>>);

impl Codes {
    fn add(&self, code: &Secret, grant: Grant, now: Timestamp) -> Result<(), Fault> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, grant| now < grant.until);
        if codes.len() >= MAX_CODES {
            let message = format!("{MAX_CODES} links are waiting to be opened, which is the limit");
            return Err(Fault::busy("too_many_links", message).hint("a link expires after five minutes"));
        }
        codes.insert(code.hash(), grant);
        Ok(())
    }

    /// Takes a code out. No one can choose a hash, so the look-up takes the same time for every input.
    fn take(&self, code: &Secret, now: Timestamp) -> Option<Grant> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.remove(&code.hash()).filter(|grant| now < grant.until)
    }
}

impl Api {
    /// `token.link`. Only its answer has the code.
    pub(crate) async fn link_token(&self, who: &Caller, params: LinkTokenParams) -> Result<Value, Fault> {
        let page = &self.parts.facts.http;
        if page == "off" {
            let fault = Fault::conflict("http_off", "the page needs HTTP, which is off");
            return Err(fault.hint("set http.listen, or start agentd with --http 127.0.0.1:7433"));
        }
        let asked = match params.scopes.is_empty() {
            true => SCOPES.map(str::to_owned).to_vec(),
            false => params.scopes,
        };
        let now = self.parts.clock.now();
        let grant = Grant {
            by: who.principal().clone(),
            scopes: self.scopes_granted(who, &asked)?,
            rights: who.rights().owned(),
            ttl_ms: params.ttl_ms.unwrap_or(SIGNED_IN_MS),
            until: now.plus_ms(CODE_MS),
        };
        expiry(now, grant.ttl_ms)?;
        let (code, until) = (Secret::random()?, grant.until);
        self.codes.add(&code, grant, now)?;
        // The server refuses the address that stands for all addresses.
        let page = page.replacen("://0.0.0.0:", "://localhost:", 1);
        let page = page.replacen("://[::]:", "://localhost:", 1);
        let url = format!("{page}/ui/#code={}", code.expose());
        Ok(json!({"code": code.expose(), "url": url, "expires_at": until}))
    }

    /// Exchanges the code of a link for a token that is named after the one who made the link.
    ///
    /// # Errors
    /// The fault `bad_code`, the same for a code that is unknown, used or expired; or the store's.
    pub async fn sign_in(&self, params: &SignInParams) -> Result<Value, Fault> {
        self.tokens_read().await?;
        let now = self.parts.clock.now();
        let grant = Secret::read(params.code.expose()).and_then(|code| self.codes.take(&code, now));
        let Some(grant) = grant else {
            return Err(Fault::denied("bad_code", "the link is not valid")
                .hint("a link works once, within five minutes; `agentctl open` makes a new one"));
        };
        let name = page_name(&grant.by)?;
        let make = |secret: &Secret, now| {
            Ok(StoredToken {
                name,
                hash: secret.hash(),
                scopes: grant.scopes,
                labels: Labels::new(),
                rights: Some(grant.rights),
                created: now,
                by: grant.by,
                expires: Some(expiry(now, grant.ttl_ms)?),
                used: None,
                revoked: None,
            })
        };
        self.add_token(make).await
    }
}

/// `ana-page-3fa94c01`: events of the page say who opened it.
fn page_name(by: &Principal) -> Result<String, Fault> {
    let mut bits = [0; 4];
    getrandom::fill(&mut bits).map_err(|error| {
        Fault::internal(
            "no_entropy",
            format!("cannot get random bytes from the system: {error}"),
        )
    })?;
    let (_, who) = by.0.split_once(':').unwrap_or_default();
    let who: String = who.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    let mut name = if who.is_empty() { "user".to_owned() } else { who };
    name.push_str("-page-");
    for byte in bits {
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(until: u64) -> Grant {
        Grant {
            by: Principal::user("ana"),
            scopes: vec!["read".to_owned()],
            rights: TokenRights::default(),
            ttl_ms: 1,
            until: Timestamp(until),
        }
    }

    #[test]
    fn i7_a_code_works_once_and_not_after_it_expired() {
        let (codes, code) = (Codes::default(), Secret::random().unwrap());
        codes.add(&code, grant(10), Timestamp(0)).unwrap();
        assert!(codes.take(&code, Timestamp(9)).is_some());
        assert!(codes.take(&code, Timestamp(9)).is_none());
        codes.add(&code, grant(10), Timestamp(0)).unwrap();
        assert!(codes.take(&code, Timestamp(10)).is_none());
    }

    #[test]
    fn i6_unused_codes_are_bounded_and_expired_ones_are_dropped() {
        let codes = Codes::default();
        for _ in 0..MAX_CODES {
            codes
                .add(&Secret::random().unwrap(), grant(10), Timestamp(0))
                .unwrap();
        }
        let one_more = |now| codes.add(&Secret::random().unwrap(), grant(20), Timestamp(now));
        assert_eq!(one_more(9).unwrap_err().code, "too_many_links");
        one_more(10).unwrap();
    }

    #[test]
    fn a_page_is_named_after_the_person() {
        let name = page_name(&Principal::user("a n.a")).unwrap();
        assert!(name.starts_with("ana-page-") && name.len() == 17, "{name}");
        assert!(page_name(&Principal::user("")).unwrap().starts_with("user-page-"));
    }
}
