//! Arguments of `token` and `context`.

use crate::cli::turns::ModeArg;
use crate::values::{label, some_time};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// `open`.
#[derive(Debug, Args)]
#[command(
    after_help = "The link works once, within five minutes. The browser then has a token of its own, which `agentctl token ls` shows and \
`agentctl token revoke` ends.\n\nExamples:\n  agentctl open\n  agentctl open --scope read --ttl 30d   # for a screen on the wall"
)]
pub(crate) struct OpenArgs {
    /// Scopes of the page; several with commas, or several times [default: read,steer,approve]
    #[arg(long = "scope", value_enum, value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<ScopeArg>,
    /// How long the browser stays signed in [default: 12h]
    #[arg(long, value_name = "DURATION", value_parser = some_time)]
    pub(crate) ttl: Option<Duration>,
}

/// `token`.
#[derive(Debug, Args)]
#[command(
    after_help = "A token lets a program or a person on another machine use agentd's HTTP API. Its events say by: token:NAME. \
With --label it reaches only sessions that have these labels, and sessions that it makes get them. Without --dir its sessions work only in \
clones and copies of what --source names, or of the URLs in workspace.urls; without --mode they ask about writes and \
commands.\n\nExamples:\n  agentctl token create ci --scope read,steer -l team=a --dir /srv/a > ci.token\n  agentctl token show ci\n  agentctl token ls\n  agentctl token revoke ci"
)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

/// The operation on tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Create one and print it, this one time; agentd keeps only its hash
    Create(CreateTokenArgs),
    /// List them: scopes, labels, mode, expiry, last use
    #[command(alias = "list")]
    Ls,
    /// Say in plain words what one may do
    Show {
        /// Its name, as `token ls` shows it
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// End them for good, and their open streams within a second
    #[command(alias = "rm")]
    Revoke {
        /// Names as `token ls` shows them
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}

/// `token create`.
#[derive(Debug, Args)]
pub(crate) struct CreateTokenArgs {
    /// Its name: 1 to 63 of A-Z a-z 0-9 . _ -
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Scopes of the token; several with commas, or several times
    #[arg(
        long = "scope",
        value_enum,
        value_name = "SCOPE",
        required = true,
        value_delimiter = ','
    )]
    pub(crate) scopes: Vec<ScopeArg>,
    /// Reach only sessions with this label; several must all be there
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Let its sessions work in this directory and below, and bring their changes to it; several times for several
    #[arg(long = "dir", value_name = "DIR")]
    pub(crate) dirs: Vec<String>,
    /// Let its sessions work in clones and copies of this directory, or of URLs that begin with this; several times for several
    #[arg(long = "source", value_name = "DIR|URL")]
    pub(crate) sources: Vec<String>,
    /// The least strict mode that it may give a session [default: default]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// How long it is valid, such as 30d [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = some_time)]
    pub(crate) ttl: Option<Duration>,
}

/// A scope of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// See sessions, usage and the daemon's state
    Read,
    /// Create sessions, send inputs, cancel, close
    Steer,
    /// Answer approvals
    Approve,
    /// Import logs
    Import,
    /// Stop the daemon, make backups and tokens
    Admin,
}

impl ScopeArg {
    /// The name on the wire.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// `context`.
#[derive(Debug, Args)]
#[command(
    after_help = "A context names a daemon, so that --context NAME or AGENTCTL_CONTEXT chooses it. The token stays in its file, which agentctl \
reads at every connection. Contexts are in ~/.config/agentctl/config.toml.\n\nExamples:\n  agentctl context add prod https://host:7433 --token-file prod.token\n  agentctl --context prod ps\n  agentctl context use prod"
)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    pub(crate) verb: ContextVerb,
}

/// The operation on contexts.
#[derive(Debug, Subcommand)]
pub(crate) enum ContextVerb {
    /// Name a daemon
    Add(AddContextArgs),
    /// List them; a star marks the one in use
    #[command(alias = "list")]
    Ls,
    /// Use one for all commands that name no daemon; without NAME, the daemon of this machine
    Use {
        /// Its name
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Forget one; its token file stays
    Rm {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// `context add`.
#[derive(Debug, Args)]
pub(crate) struct AddContextArgs {
    /// The name for it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// https://HOST:PORT, http://localhost:PORT, or the path of a control socket
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: String,
    /// The file with the token that `agentctl token create` printed
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificates to trust in addition to the system's, in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
}
