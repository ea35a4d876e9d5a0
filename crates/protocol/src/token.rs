//! Tokens as clients see them.

use crate::limits::PermissionMode;
use crate::principal::Principal;
use crate::stamp::Timestamp;
use crate::vocabulary::Labels;
use serde::{Deserialize, Serialize};

/// Where and how the sessions of a token may work. The default is the narrowest: no directory, and a mode that asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct TokenRights {
    /// Absolute paths of directories. Sessions of the token may work in them and below, and bring changes to them.
    pub dirs: Vec<String>,
    /// Absolute paths of directories, and beginnings of URLs. Sessions of the token may work in clones and copies of them;
    /// `*` stands for every URL. Without a URL, `workspace.urls` applies.
    pub sources: Vec<String>,
    /// The least strict mode.
    pub mode: PermissionMode,
}

impl Default for TokenRights {
    fn default() -> Self {
        Self {
            dirs: Vec::new(),
            sources: Vec::new(),
            mode: PermissionMode::Default,
        }
    }
}

impl TokenRights {
    /// The rights of a local user.
    #[must_use]
    pub fn all() -> Self {
        Self {
            dirs: vec!["/".to_owned()],
            sources: vec!["*".to_owned()],
            mode: PermissionMode::Yolo,
        }
    }
}

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
    /// Absolute paths of directories in and below which its sessions may work; none: only in workspaces made from `sources`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<String>,
    /// Absolute paths of directories, and beginnings of URLs, of which its sessions may work in clones and copies. Without a
    /// URL, `workspace.urls` applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The least strict mode that it may give a session; absent: `default`, which asks about writes and commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
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
    /// `live`, `expired`, `revoked`, or `damaged`: its row in the store cannot be trusted, so that it opens nothing.
    pub state: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// The labels that every session in its reach has; empty: all sessions.
    pub labels: Labels,
    /// Where and how its sessions may work.
    #[serde(flatten)]
    pub rights: TokenRights,
    /// What it may do, in plain words.
    #[serde(default)]
    pub may: Vec<String>,
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
