//! Arguments of `daemon`, `node`, `config`, `migrate`, `completion`, `demo`, `help`.

use crate::complete::topics;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;
use std::path::PathBuf;

/// `daemon`.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    #[command(subcommand)]
    pub(crate) verb: DaemonVerb,
}

/// The operation on the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum DaemonVerb {
    /// Show the daemon's process, store, model and load
    Status,
    /// Show the end of the daemon's log file
    Log {
        /// The number of lines, at most 2,000
        #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=2000))]
        lines: u32,
    },
    /// Reload configuration, rules and keys; SIGHUP does the same
    Reload,
    /// Refuse new work, let running calls finish, then stop
    Drain,
    /// Stop at once; open turns continue at the next start
    Stop,
}

/// `node`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentctl nodes\n  agentctl node drain web3      # its sessions continue on other nodes\
\n  agentctl node cordon web3     # it gets no more sessions\n  agentctl node uncordon web3\
\n  agentctl node key remove web3 # the other nodes refuse it from now on"
)]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    pub(crate) verb: NodeVerb,
}

/// The operation on a node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeVerb {
    /// Let other nodes take over its sessions, each at its next boundary, and stop it
    Drain {
        /// The node's name
        node: String,
    },
    /// Let it keep its sessions and get no others
    Cordon {
        /// The node's name
        node: String,
    },
    /// Let it get sessions again
    Uncordon {
        /// The node's name
        node: String,
    },
    /// Replace or remove the key with which a node signs, or admit a node with a new one
    Key {
        /// The operation.
        #[command(subcommand)]
        verb: NodeKeyVerb,
    },
}

/// The operation on the key of a node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeKeyVerb {
    /// Give the node that agentctl asks a new key
    Rotate,
    /// Refuse a node and its keys for good; others take over its sessions
    Remove {
        /// The node's name
        node: String,
    },
    /// Let a node whose keys were removed join with a new key
    Admit {
        /// The node's name
        node: String,
    },
}

/// `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) verb: ConfigVerb,
}

/// The operation on the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Print the settings of the running daemon, or those that a daemon started here would use
    View {
        /// Show where each key was set
        #[arg(long)]
        show_origin: bool,
        /// Print the settings that `agentd --config FILE` would use, without asking a daemon
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

const MIGRATE_NOTES: &str = "\
No daemon may use either database, and the destination must be empty. The same command again continues an interrupted \
migration. At the end both databases are compared; until then no daemon opens the destination. `sqlite:FILE` is relative \
to the current directory, and large results are in `blobs` next to FILE, or in --data-dir. A password comes from \
store.password_file or store.password_env of the configuration.

Examples:
  agentctl migrate sqlite:agentd.db postgres://agentd@db.example/agentd
  agentctl migrate postgres://agentd@db.example/agentd sqlite:new.db
  agentctl migrate --verify sqlite:old.db postgres://agentd@db.example/agentd";

/// `migrate`.
#[derive(Debug, Args)]
#[command(after_help = MIGRATE_NOTES)]
pub(crate) struct MigrateArgs {
    /// The source: sqlite:FILE or postgres://USER@HOST/DATABASE
    #[arg(value_name = "FROM")]
    pub(crate) from: String,
    /// The destination, of the other kind
    #[arg(value_name = "TO")]
    pub(crate) to: String,
    /// The node (node.name) on the machine with the sessions' directories. Only this node continues sessions
    /// outside shared paths
    #[arg(long, value_name = "NAME", conflicts_with = "verify", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) node: Option<String>,
    /// Say what would be copied
    #[arg(long, conflicts_with = "verify")]
    pub(crate) dry_run: bool,
    /// Copy nothing, and compare the two
    #[arg(long)]
    pub(crate) verify: bool,
    /// The daemon's configuration file, if it is not in a standard place
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The data directory of the SQLite database [default: the directory of its file]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
    /// elvish
    Elvish,
    /// PowerShell
    Powershell,
}

/// `completion`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  source <(agentctl completion bash)\
\n  agentctl completion fish > ~/.config/fish/completions/agentctl.fish")]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// `demo`.
#[derive(Debug, Args)]
#[command(
    after_help = "The demo runs `agentd --demo` in this terminal. Only the model's answers are scripted: files, commands, \
approvals and the log are real. It does not affect a daemon that is already running."
)]
pub(crate) struct DemoArgs {
    /// Number of sessions
    #[arg(value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) sessions: u16,
    /// Run at full speed instead of a readable pace
    #[arg(long)]
    pub(crate) fast: bool,
}

/// `help`.
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// A verb, or one of: agents, exit-codes, output, environment, hooks, providers, rules, states
    #[arg(add = ArgValueCompleter::new(topics))]
    pub(crate) topic: Option<String>,
}
