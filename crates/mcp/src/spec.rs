//! The operator's configuration of a tool server.

use crate::error::McpError;
use agentd_protocol::EffectClass;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The longest name of a server: with its prefix it leaves room for tool names.
const NAME_BYTES: usize = 24;

/// A tool server. Only an operator can define one, never a file in a working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// The prefix of its tool names: lower-case letters, digits and `-`.
    pub name: String,
    /// Its transport.
    pub transport: Transport,
    /// Its scope.
    pub scope: Scope,
    /// The effect class of its tools, unless `effects` says otherwise.
    pub effect: EffectClass,
    /// Effect classes of single tools, by the server's name for them.
    pub effects: BTreeMap<String, EffectClass>,
    /// Offers only these tools, by the server's name for them; `get_*` matches every name that begins with `get_`.
    pub only: Option<BTreeSet<String>>,
    /// Leaves these tools out, with the same patterns.
    pub without: BTreeSet<String>,
    /// Why it cannot be used, if the operator's settings are incomplete.
    pub lacks: Option<String>,
    /// Its timeouts.
    pub limits: Limits,
}

/// The transport of a server.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that speaks over its standard input and output.
    Stdio(Command),
    /// Streamable HTTP.
    Http {
        /// Its address: http or https.
        url: String,
        /// Sent with each request; the values are secret.
        headers: BTreeMap<String, String>,
    },
}

/// The program of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; `{workdir}` stands for the working directory.
    pub argv: Vec<String>,
    /// Variables in addition to the allow-listed environment; the values are secret.
    pub env: BTreeMap<String, String>,
    /// Its sandbox.
    pub walls: Walls,
    /// Paths that it may read in addition to those of the node's commands.
    pub read: Vec<PathBuf>,
}

/// The sandbox of a server's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Walls {
    /// The sandbox of the node's commands: no network, and no writing outside the working directory.
    #[default]
    Node,
    /// No sandbox: the operator's explicit choice, for a server that needs more.
    None,
}

/// Which sessions share a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The sessions of one working directory, in which it runs.
    #[default]
    Workdir,
    /// All sessions.
    Shared,
}

/// The timeouts of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For starting and listing its tools.
    pub start: Duration,
    /// For one call.
    pub call: Duration,
    /// Without a call, before it is ended as idle.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            call: Duration::from_secs(120),
            idle: Duration::from_secs(600),
        }
    }
}

impl Command {
    /// A program with the defaults: no variables of its own, in the node's sandbox.
    #[must_use]
    pub const fn new(argv: Vec<String>) -> Self {
        Self {
            argv,
            env: BTreeMap::new(),
            walls: Walls::Node,
            read: Vec::new(),
        }
    }
}

impl ServerSpec {
    /// A server with the defaults: one for each working directory, all tools, effect exec.
    #[must_use]
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            scope: Scope::default(),
            effect: EffectClass::Exec,
            effects: BTreeMap::new(),
            only: None,
            without: BTreeSet::new(),
            lacks: None,
            limits: Limits::default(),
        }
    }

    /// Checks whether it can be used.
    ///
    /// # Errors
    /// [`McpError::Spec`] with the problem.
    pub fn check(&self) -> Result<(), McpError> {
        let wrong = |problem: &str| {
            Err(McpError::Spec {
                server: agentd_text::one_line(&self.name, 64),
                problem: problem.to_owned(),
            })
        };
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > NAME_BYTES || !self.name.chars().all(allowed) {
            return wrong("a name must have 1 to 24 lower-case letters, digits and hyphens");
        }
        match &self.transport {
            Transport::Stdio(command) if command.argv.first().is_none_or(String::is_empty) => {
                wrong("the command is missing")
            }
            Transport::Http { url, .. } if !reads_as_http(url) => {
                wrong("its URL must be an http or https URL without a user name")
            }
            _ if self.limits.start.is_zero() || self.limits.call.is_zero() => {
                wrong("its time limits must be longer than 0s")
            }
            _ => Ok(()),
        }
    }

    /// Whether a tool is offered.
    pub(crate) fn wants(&self, tool: &str) -> bool {
        let named = |names: &BTreeSet<String>| {
            names.iter().any(|name| match name.strip_suffix('*') {
                Some(head) => tool.starts_with(head),
                None => name == tool,
            })
        };
        self.only.as_ref().is_none_or(named) && !named(&self.without)
    }

    /// The effect class of a tool. The server's own claims do not count.
    pub(crate) fn effect_of(&self, tool: &str) -> EffectClass {
        self.effects.get(tool).copied().unwrap_or(self.effect)
    }
}

fn reads_as_http(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    })
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(command) => command.fmt(f),
            Self::Http { headers, .. } => f
                .debug_struct("Http")
                .field("headers", &headers.keys())
                .finish_non_exhaustive(),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.argv.first())
            .field("env", &self.env.keys())
            .field("walls", &self.walls)
            .finish_non_exhaustive()
    }
}
