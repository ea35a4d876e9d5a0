//! The configuration of the daemon under load.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The environment variable with the key; no server checks it.
pub(crate) const KEY: &str = "AGENTD_BENCH_KEY";

/// The daemon, and how it is set up.
#[derive(Debug, Clone, Args)]
pub(crate) struct DaemonArgs {
    /// The daemon to measure; default: the one next to this program if optimized, else one that cargo builds
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) agentd: Option<PathBuf>,
    /// The model server to use instead of the built-in one (for comparable figures it must follow the same plans)
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) model_url: Option<String>,
    /// The sandbox level of commands
    #[arg(long, global = true, value_enum, default_value = "confined")]
    pub(crate) sandbox: Level,
    /// The dialect between daemon and model server
    #[arg(long, global = true, value_enum, default_value = "anthropic")]
    pub(crate) dialect: DialectName,
    /// The tool that each step calls
    #[arg(long, global = true, value_enum, default_value = "bash")]
    pub(crate) tools: ToolMix,
    /// Settings of a mode, as sections that are not below.
    #[arg(skip)]
    pub(crate) more: &'static str,
    /// The fleet that the daemon joins; default: it has a store of its own.
    #[arg(skip)]
    pub(crate) member: Option<Member>,
    /// A whole configuration of a mode, in place of the one below.
    #[arg(skip)]
    pub(crate) whole: Option<String>,
}

/// A node of a fleet.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// The URL of the database.
    pub(crate) store: String,
    /// The node's name.
    pub(crate) name: String,
    /// The seconds without a sign of life after which it counts as gone.
    pub(crate) ttl: u32,
}

/// A level of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    None,
    Confined,
    Isolated,
}

/// The tool that a step calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolMix {
    /// `true` in a shell
    Bash,
    /// Read a line of a file, inside the daemon
    Read,
    /// Both, alternating
    Mix,
    /// No tool: each step is a turn
    None,
}

/// A dialect, with its name in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DialectName {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
    Ollama,
    LlamaCompletion,
}

impl Level {
    /// Its name in the configuration.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Confined => "confined",
            Self::Isolated => "isolated",
        }
    }
}

impl DialectName {
    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// The path of the dialect's base URL.
    const fn base(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::OpenaiResponses => "/v1",
            _ => "",
        }
    }
}

impl ToolMix {
    /// A plan with this number of steps.
    pub(crate) fn plan(self, key: &str, steps: u32) -> String {
        let (tool, steps) = match self {
            Self::Bash => ("bash", steps),
            Self::Read => ("read", steps),
            Self::Mix => ("mix", steps),
            Self::None => ("bash", 0),
        };
        format!("plan:{key} steps={steps} tool={tool} command=true;")
    }
}

impl Member {
    /// Its lines of `[node]`, and its sections.
    fn text(&self) -> (String, String) {
        let Self { store, name, ttl } = self;
        let node = format!("name = \"{name}\"\nttl = \"{ttl}s\"\nshared_paths = [\"/\"]\n");
        let sections = format!("[store]\nurl = \"{store}\"\n[http]\nlisten = \"127.0.0.1:0\"\n");
        (node, sections)
    }
}

impl DaemonArgs {
    /// The text of the configuration file.
    pub(crate) fn text(&self, url: &str) -> String {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        let dialect = self.dialect.name();
        let base = self.dialect.base();
        let level = self.sandbox.name();
        let (node, store) = self.member.as_ref().map_or_else(Default::default, Member::text);
        let protocol = match self.dialect {
            DialectName::LlamaCompletion => "tool_protocol = \"json-text\"",
            _ => "",
        };
        format!(
            r#"[model]
default = "bench"
[permission]
mode = "yolo"
[node]
idle_passivate = "1s"
drain_timeout = "5s"
{node}{store}[limits]
sessions_hot = 8192
connections = 4096
[retry]
base_ms = 100
[providers.bench]
dialect = "{dialect}"
base_url = "{url}{base}"
credentials = [{{ name = "main", env = "{KEY}" }}]
max_concurrent = 8192
[models.bench]
provider = "bench"
model = "bench"
context_window = 10000000
{protocol}
[sandbox]
level = "{level}"
require = "{level}"
max_memory_bytes = 1073741824
[loop]
turn_cap = 5000
[tools]
max_lines = 100000
max_bytes = 1000000
{more}"#,
            more = self.more
        )
    }
}
