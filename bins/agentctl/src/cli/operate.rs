//! Arguments of `daemon`, `config`, `completion`, `demo`, `help`.

use crate::complete::topics;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;
use std::path::PathBuf;

/// `daemon`.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    #[command(subcommand)]
    pub(crate) verb: DaemonVerb,
}

/// What to do with the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum DaemonVerb {
    /// Show its process, store, model and load
    Status,
    /// Read configuration, rules and keys again; SIGHUP does the same
    Reload,
    /// Let running calls end, refuse new work, then stop
    Drain,
    /// Stop at once; what runs is taken up again at the next start
    Stop,
}

/// `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) verb: ConfigVerb,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Print the settings of the running daemon; where none runs, those that one started here would have
    View {
        /// Say where each key was set
        #[arg(long)]
        show_origin: bool,
        /// Ask no daemon: print what `agentd --config FILE` would have
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
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
#[command(
    after_help = "Examples:\n  source <(agentctl completion bash)\n  agentctl completion fish > ~/.config/fish/completions/agentctl.fish"
)]
pub(crate) struct CompletionArgs {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// `demo`.
#[derive(Debug, Args)]
#[command(
    after_help = "The demo runs `agentd --demo` in this terminal. Only the model's words are scripted: files, commands, \
approvals and the log are real. A daemon that already runs is left alone."
)]
pub(crate) struct DemoArgs {
    /// How many sessions
    #[arg(value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) sessions: u16,
    /// Go at once, instead of so that a person can follow
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
