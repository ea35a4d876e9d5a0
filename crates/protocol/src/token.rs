//! Tokens as clients see them.

use crate::principal::Principal;
use crate::stamp::Timestamp;
use crate::vocabulary::Labels;
use serde::{Deserialize, Serialize};

/// `token.create`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CreateTokenParams {
    /// The name: what `by` says in events is `token:NAME`.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub name: String,
    /// The scopes of the token: `read`, `steer`, `approve`, `import`, `admin`.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub scopes: Vec<String>,
    /// The token reaches only sessions with all of these labels; none: all sessions.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The lifetime in milliseconds; absent: until it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// `token.link`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LinkTokenParams {
    /// The scopes of the page; none: `read`, `steer` and `approve`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// How long the browser stays signed in, in milliseconds; absent: 12 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// Answer of `token.link`.
#[derive(Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[expect(missing_debug_implementations, reason = "it has the code")]
pub struct TokenLink {
    /// The code, which can be exchanged once for a token. It is the fragment `code` of the URL.
    pub code: ClearToken,
    /// The page's address at the daemon, with the code.
    pub url: ClearToken,
    /// When the code expires.
    pub expires_at: Timestamp,
}

/// The body of `POST /v1/sign-in`, the answer to which is that of `token.create`.
#[derive(Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[expect(missing_debug_implementations, reason = "it has the code")]
pub struct SignInParams {
    /// The code of a link.
    pub code: ClearToken,
}

/// `token.revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RevokeTokenParams {
    /// The token's name.
    pub name: String,
}

/// One row of `token.list`. Nothing in it opens anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TokenRow {
    /// Its name.
    pub name: String,
    /// `live`, `expired` or `revoked`.
    pub state: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// The labels that every session in its reach has; empty: all sessions.
    pub labels: Labels,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub by: Principal,
    /// When it expires, if ever.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, give or take a minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// The text of a token, which only the answer of `token.create` has. It cannot be printed or written by accident: it has
/// neither `Debug` nor `Serialize` (I8).
#[derive(Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(transparent)]
#[expect(missing_debug_implementations, reason = "it must not be printed")]
pub struct ClearToken(String);

impl ClearToken {
    /// The token in this text, for example of a file.
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The text itself, for the person who asked for it or for a request's `Authorization`. Never for a log.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Answer of `token.create`.
#[derive(Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[expect(missing_debug_implementations, reason = "it has the token's text")]
pub struct TokenCreated {
    /// The token as lists show it.
    #[serde(flatten)]
    pub row: TokenRow,
    /// Its text, which is never shown again.
    pub token: ClearToken,
}
