//! What an operator says about a tool server.

use crate::error::McpError;
use agentd_protocol::EffectClass;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Longest name of a server: together with its prefix it leaves room for the names of tools.
const NAME_BYTES: usize = 24;

/// A tool server. Only an operator makes one: nothing in a working directory does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// What its tools are named after: lower-case letters, digits and `-`.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Who shares it.
    pub scope: Scope,
    /// What its tools do to the world, unless `effects` says otherwise.
    pub effect: EffectClass,
    /// What single tools do to the world, by the server's name for them.
    pub effects: BTreeMap<String, EffectClass>,
    /// Only these tools are offered, by the server's name for them; `get_*` is every one that begins so.
    pub only: Option<BTreeSet<String>>,
    /// These are not, in the same way.
    pub without: BTreeSet<String>,
    /// Why it cannot be used, when the operator's settings lack something.
    pub lacks: Option<String>,
    /// How long it may take.
    pub limits: Limits,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is talked with over its standard input and output.
    Stdio(Command),
    /// Streamable HTTP.
    Http {
        /// Where it is: http or https.
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
    /// What it sees besides the allow-listed environment; the values are secret.
    pub env: BTreeMap<String, String>,
    /// What is around it.
    pub walls: Walls,
    /// What it may read besides what the node's commands may.
    pub read: Vec<PathBuf>,
}

/// What is around a server's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Walls {
    /// What is around the node's commands: no network, and nothing is written outside the working directory.
    #[default]
    Node,
    /// Nothing: the operator's choice by name, for a server that needs more.
    None,
}

/// Who shares one running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The sessions of one working directory, in which it runs.
    #[default]
    Workdir,
    /// All sessions.
    Shared,
}

/// How long a server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// To start and to say which tools it has.
    pub start: Duration,
    /// For one call.
    pub call: Duration,
    /// Without a call, before it is ended.
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
    /// A program with the defaults: no variables of its own, behind the node's walls.
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

    /// Whether it can be used at all.
    ///
    /// # Errors
    /// [`McpError::Spec`] with what is wrong.
    pub fn check(&self) -> Result<(), McpError> {
        let wrong = |problem: &str| {
            Err(McpError::Spec {
                server: agentd_text::one_line(&self.name, 64),
                problem: problem.to_owned(),
            })
        };
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > NAME_BYTES || !self.name.chars().all(allowed) {
            return wrong("a name has 1 to 24 lower-case letters, digits and hyphens");
        }
        match &self.transport {
            Transport::Stdio(command) if command.argv.first().is_none_or(String::is_empty) => {
                wrong("no command is named")
            }
            Transport::Http { url, .. } if !reads_as_http(url) => {
                wrong("its URL is not one of http or https without a user name")
            }
            _ if self.limits.start.is_zero() || self.limits.call.is_zero() => {
                wrong("its time limits must be longer than nothing")
            }
            _ => Ok(()),
        }
    }

    /// Whether a tool is offered at all.
    pub(crate) fn wants(&self, tool: &str) -> bool {
        let named = |names: &BTreeSet<String>| {
            names.iter().any(|name| match name.strip_suffix('*') {
                Some(head) => tool.starts_with(head),
                None => name == tool,
            })
        };
        self.only.as_ref().is_none_or(named) && !named(&self.without)
    }

    /// What a tool does to the world. What the server claims does not count.
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
