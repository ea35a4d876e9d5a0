//! `[mcp]`: tool servers for the Model Context Protocol.

use crate::duration;
use agentd_protocol::EffectClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum number of configured servers.
const MOST: usize = 64;
/// The maximum length of a server name: with its prefix it leaves room for tool names.
const NAME_BYTES: usize = 24;
/// The maximum time limit.
const LONGEST: Duration = Duration::from_secs(86_400);

/// `[mcp]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// How long the start of a session waits for servers that are starting.
    #[serde(with = "duration::plain")]
    pub ready_within: Duration,
    /// Concurrent servers over all working directories.
    pub max_running: u32,
    /// `[mcp.servers.*]`.
    #[serde(default)]
    pub servers: BTreeMap<String, McpServer>,
}

/// Which sessions share a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpScope {
    /// The sessions of one working directory.
    #[default]
    Session,
    /// All sessions.
    Shared,
}

/// How the program of a server is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpSandbox {
    /// In the sandbox of commands.
    #[default]
    Commands,
    /// Not at all.
    None,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// The program and its arguments, for a server that communicates over standard input and output.
    pub command: Vec<String>,
    /// The URL, for a server that communicates over streamable HTTP.
    pub url: String,
    /// Variables of the daemon's environment that the program gets, in addition to those of commands.
    pub env: Vec<String>,
    /// Headers sent with each request, each with the variable of the daemon's environment that holds its value.
    pub headers: BTreeMap<String, String>,
    /// Which sessions share it.
    pub scope: McpScope,
    /// How its program is confined.
    pub sandbox: McpSandbox,
    /// Absolute paths that its program may read in addition to those of commands.
    pub read: Vec<String>,
    /// The effect of its tools.
    pub effect: EffectClass,
    /// The effect of single tools, by the server's names for them.
    pub effects: BTreeMap<String, EffectClass>,
    /// Offer only these tools, by the server's names for them; empty: all.
    pub allow: Vec<String>,
    /// Do not offer these tools.
    pub deny: Vec<String>,
    /// Time limit for starting and listing its tools.
    #[serde(with = "duration::plain")]
    pub start_timeout: Duration,
    /// Time limit of one call.
    #[serde(with = "duration::plain")]
    pub call_timeout: Duration,
    /// agentd ends it after this time without a call.
    #[serde(with = "duration::plain")]
    pub idle_timeout: Duration,
}

impl Default for McpServer {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            url: String::new(),
            env: Vec::new(),
            headers: BTreeMap::new(),
            scope: McpScope::Session,
            sandbox: McpSandbox::Commands,
            read: Vec::new(),
            effect: EffectClass::Exec,
            effects: BTreeMap::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(600),
        }
    }
}

/// A field, the problem, and the remedy.
type Wrong = (&'static str, &'static str, &'static str);

impl McpServer {
    fn problem(&self) -> Option<Wrong> {
        let named = self.command.first().is_some_and(|program| !program.is_empty());
        if named != self.url.is_empty() {
            return Some((
                "command",
                "a tool server needs either a command or a url",
                "write command = [\"/usr/bin/server\", \"{workdir}\"] or url = \"https://host/mcp\"",
            ));
        }
        if named && !self.headers.is_empty() {
            return Some(("headers", "only a server with a url can have headers", "use env"));
        }
        if !(named || self.env.is_empty() && self.read.is_empty()) {
            return Some((
                "env",
                "only a server with a command can have env and read",
                "remove env and read",
            ));
        }
        let shared = self.scope == McpScope::Shared;
        if shared && self.command.iter().any(|word| word.contains("{workdir}")) {
            return Some((
                "scope",
                "a shared server has no working directory of a session",
                "remove {workdir} from its command, or write scope = \"session\"",
            ));
        }
        self.wrong_word().or_else(|| self.wrong_time())
    }

    fn wrong_word(&self) -> Option<Wrong> {
        let variable = |name: &String| {
            let mut bytes = name.bytes();
            bytes
                .next()
                .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !self.env.iter().chain(self.headers.values()).all(variable) {
            return Some((
                if self.env.iter().all(variable) {
                    "headers"
                } else {
                    "env"
                },
                "invalid name of an environment variable",
                "give names of environment variables, never values: GITHUB_TOKEN",
            ));
        }
        let http = ["http://", "https://"]
            .iter()
            .any(|scheme| self.url.starts_with(scheme));
        if !self.url.is_empty() && (!http || self.url.contains('@')) {
            return Some((
                "url",
                "it must be an http or https URL without a user name",
                "write https://host/mcp",
            ));
        }
        let all = self
            .read
            .iter()
            .all(|path| path.starts_with('/') && path.len() > 1);
        (!all).then_some((
            "read",
            "a path is not absolute, or is the root directory",
            "give paths such as /srv/data",
        ))
    }

    fn wrong_time(&self) -> Option<Wrong> {
        let times = [
            ("start_timeout", self.start_timeout),
            ("call_timeout", self.call_timeout),
            ("idle_timeout", self.idle_timeout),
        ];
        let bad = |(_, time): &(&'static str, Duration)| time.is_zero() || *time > LONGEST;
        let (field, _) = times.into_iter().find(bad)?;
        Some((field, "it is out of range", "give more than 0s and at most 24h"))
    }
}

impl McpConfig {
    /// The first invalid value: its key, the problem, and the remedy.
    pub(crate) fn problem(&self) -> Option<(String, &'static str, &'static str)> {
        let most = Duration::from_secs(25);
        if self.ready_within > most {
            let fix = "give at most 25s: a client that creates a session waits at most 30s";
            return Some(("mcp.ready_within".to_owned(), "it is out of range", fix));
        }
        if self.servers.len() > MOST {
            return Some(("mcp.servers".to_owned(), "too many servers", "keep at most 64"));
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        self.servers.iter().find_map(|(name, server)| {
            if name.is_empty() || name.len() > NAME_BYTES || !name.chars().all(plain) {
                let fix = "use 1 to 24 lower-case letters, digits and hyphens";
                return Some((
                    format!("mcp.servers.{name}"),
                    "invalid name of a tool server",
                    fix,
                ));
            }
            let (field, what, fix) = server.problem()?;
            Some((format!("mcp.servers.{name}.{field}"), what, fix))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::settings_with;
    use toml::de::DeTable;

    fn problem(server: &str) -> Option<String> {
        let text = format!("[mcp.servers.a]\n{server}");
        let settings = settings_with(&DeTable::parse(&text).unwrap()).unwrap();
        settings.mcp.problem().map(|(key, ..)| key)
    }

    #[test]
    fn a_server_is_a_command_or_a_url() {
        assert_eq!(problem("command = [\"x\"]"), None);
        assert_eq!(
            problem("url = \"https://h/mcp\"\nheaders = { Authorization = \"TOKEN\" }"),
            None
        );
        assert_eq!(problem("command = [\"x\", \"{workdir}\"]\nenv = [\"A_1\"]"), None);
        for (bad, field) in [
            ("", "command"),
            ("command = [\"\"]", "command"),
            ("command = [\"x\"]\nurl = \"https://h\"", "command"),
            ("command = [\"x\"]\nheaders = { a = \"B\" }", "headers"),
            ("url = \"https://h\"\nenv = [\"A\"]", "env"),
            ("url = \"ftp://h\"", "url"),
            ("url = \"https://me:pw@h\"", "url"),
            ("url = \"https://h\"\nheaders = { a = \"Bearer x\" }", "headers"),
            ("command = [\"x\"]\nenv = [\"A=b\"]", "env"),
            ("command = [\"x\"]\nread = [\"data\"]", "read"),
            ("command = [\"x\", \"{workdir}\"]\nscope = \"shared\"", "scope"),
            ("command = [\"x\"]\ncall_timeout = \"0s\"", "call_timeout"),
            ("command = [\"x\"]\nidle_timeout = \"25h\"", "idle_timeout"),
        ] {
            assert_eq!(problem(bad), Some(format!("mcp.servers.a.{field}")), "{bad}");
        }
    }

    #[test]
    fn server_names_are_valid_in_tool_names() {
        let of = |name: &str| {
            let server = McpServer {
                command: vec!["x".to_owned()],
                ..McpServer::default()
            };
            let servers = BTreeMap::from([(name.to_owned(), server)]);
            McpConfig {
                servers,
                ..McpConfig::default()
            }
            .problem()
            .is_some()
        };
        assert!(!of("git-hub2") && !of(&"x".repeat(24)));
        assert!(of("") && of("A") && of("a_b") && of("a b") && of(&"x".repeat(25)));
    }
}
