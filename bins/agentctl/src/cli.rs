//! Command-line arguments: parsing only.

mod act;
mod history;
mod look;
mod operate;
mod security;
mod turns;
mod typed;

pub(crate) use act::{
    AnswerArgs, ApprovalsArgs, CancelArgs, CancelTurnArgs, DecideArgs, LifecycleArgs, RmArgs, SetArgs,
    TargetArgs, WaitArgs, WaitFor,
};
pub(crate) use history::{DiffArgs, ForkArgs, RewindArgs, UndoArgs};
pub(crate) use look::{
    BackupArgs, CompactArgs, EventsArgs, ExportArgs, ImportArgs, LogsArgs, PsArgs, ShowArgs, Sort, UsageArgs,
};
pub(crate) use operate::{
    CompletionArgs, ConfigArgs, ConfigVerb, DaemonArgs, DaemonVerb, DemoArgs, HelpArgs, Shell,
};
pub(crate) use security::{
    AuditArgs, AuditVerb, CheckArgs, DryRunArgs, PolicyArgs, PolicyVerb, RulesArgs, RulesVerb, VerifyArgs,
};
pub(crate) use turns::{AttachArgs, ModeArg, RunArgs, SendArgs};
pub(crate) use typed::{understood, verb};

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agentctl run \"fix the failing test\"      run an agent here and watch it
  agentctl run -d --name nightly \"...\"     leave it running, print its id
  agentctl ps                               what runs, what waits, for whom
  agentctl approvals                        what waits for a person
  agentctl attach @last                     watch and steer the newest session
  agentctl help exit-codes                  explain a topic

Topics: agents environment exit-codes hooks output providers rules states";

/// Controls agentd, the daemon that runs LLM agents.
#[derive(Debug, Parser)]
#[command(name = "agentctl", version, after_help = EXAMPLES)]
#[command(
    disable_help_subcommand = true,
    arg_required_else_help = true,
    max_term_width = 110
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Flags that every verb takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The daemon's control socket [env: AGENTD_SOCKET]
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "context")]
    pub(crate) socket: Option<PathBuf>,
    /// A daemon named in ~/.config/agentctl/config.toml [env: AGENTCTL_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// How to print: `agentctl help output` explains each
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    /// Print names or ids only, and no talk on stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// When to colour; NO_COLOR is obeyed
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Print long texts as they are; else a terminal shows them in $AGENTD_PAGER, $PAGER or less
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people; `text` is the same
    #[value(alias = "text")]
    Table,
    /// For people, with more columns
    Wide,
    /// An array for lists, else one object
    Json,
    /// One object a line
    Jsonl,
    /// YAML
    Yaml,
    /// Ids or names only
    Name,
}

/// When to colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Create a session and watch it until its turn ends
    Run(Box<RunArgs>),
    /// List sessions
    #[command(visible_alias = "ls", alias = "list")]
    Ps(PsArgs),
    /// Show one session in full
    #[command(visible_aliases = ["inspect", "describe"])]
    Show(ShowArgs),
    /// Print a session's log as a transcript or as JSON lines
    Logs(LogsArgs),
    /// Watch, steer and answer a session from this terminal
    Attach(AttachArgs),
    /// Send a message to a session
    Send(SendArgs),
    /// List what waits for a person
    Approvals(ApprovalsArgs),
    /// Allow what an approval asks for
    Approve(DecideArgs),
    /// Refuse what an approval asks for
    Deny(DecideArgs),
    /// Answer a question or choose
    Answer(AnswerArgs),
    /// End the running turn; the session goes on
    Cancel(CancelTurnArgs),
    /// End the running turn and kill its commands at once, background jobs, too
    Kill(CancelArgs),
    /// Start no new model call until resumed
    Pause(LifecycleArgs),
    /// Let a paused, parked or faulted session go on: a parked call is tried at once
    Resume(LifecycleArgs),
    /// Change a session: its name, model, mode, budget or labels
    Set(SetArgs),
    /// Put a summary in the place of a conversation's beginning
    Compact(CompactArgs),
    /// Take no more input, for good
    Close(LifecycleArgs),
    /// Remove a session
    Rm(RmArgs),
    /// Wait until sessions are idle, closed, or ask for approval
    Wait(WaitArgs),
    /// Show what a session changed in files
    Diff(DiffArgs),
    /// Put files back as they were before a change of a session
    Undo(UndoArgs),
    /// Take a session's conversation back to an earlier point
    Rewind(RewindArgs),
    /// Make a new session whose log begins as another one's
    Fork(ForkArgs),
    /// Print a session's exact stored lines
    Export(ExportArgs),
    /// Make a session that has an exported log as its history
    Import(ImportArgs),
    /// Write a backup of the running daemon's store and audit files (`agentd restore` reads it)
    Backup(BackupArgs),
    /// Print events of all sessions
    Events(EventsArgs),
    /// Tokens and money, grouped
    Usage(UsageArgs),
    /// List the configured models
    Models,
    /// List the tools that agents may use
    Tools,
    /// List the tool servers: state, tools, restarts, last error
    Mcp,
    /// List and revoke what was allowed or denied for good
    Rules(RulesArgs),
    /// Ask the permission rules: what a call would get, what other rules would change
    Policy(PolicyArgs),
    /// The record of who did what
    Audit(AuditArgs),
    /// Check this machine and the daemon, and say how to mend what is wrong
    Doctor,
    /// The daemon itself
    Daemon(DaemonArgs),
    /// The daemon's configuration
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print the versions of agentctl and of the daemon
    Version,
    /// Watch agents work on small projects, without an API key
    Demo(DemoArgs),
    /// Explain a verb or a topic
    Help(HelpArgs),
}

/// Whether the arguments request JSON, as far as that is visible before parsing.
pub(crate) fn wants_json(arguments: &[OsString]) -> bool {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let spelled = |word: &str| {
        [
            "-ojson",
            "-o=json",
            "--output=json",
            "-ojsonl",
            "-o=jsonl",
            "--output=jsonl",
        ]
        .contains(&word)
    };
    words.iter().any(|word| spelled(word))
        || words
            .windows(2)
            .any(|pair| matches!(pair, ["-o" | "--output", "json" | "jsonl"]))
}

#[cfg(test)]
mod tests;
