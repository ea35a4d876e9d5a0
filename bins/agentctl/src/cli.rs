//! Command-line arguments: parsing only.

mod access;
mod act;
mod given;
mod history;
mod look;
mod operate;
mod security;
mod turns;
mod typed;
mod workspace;

pub(crate) use access::{
    AddContextArgs, ContextArgs, ContextVerb, CreateTokenArgs, OpenArgs, TokenArgs, TokenVerb,
};
pub(crate) use act::{
    AnswerArgs, ApprovalsArgs, CancelArgs, CancelTurnArgs, DecideArgs, LifecycleArgs, ResumeArgs, RmArgs,
    ScopeArg, SetArgs, TargetArgs, WaitArgs, WaitFor,
};
pub(crate) use given::parse;
pub(crate) use history::{ApplyArgs, BranchArgs, DiffArgs, ForkArgs, RewindArgs, UndoArgs};
pub(crate) use look::{
    BackupArgs, CompactArgs, EventsArgs, ExportArgs, ImportArgs, LogsArgs, PsArgs, ShowArgs, Sort, UsageArgs,
};
pub(crate) use operate::{
    CompletionArgs, ConfigArgs, ConfigVerb, DaemonArgs, DaemonVerb, DemoArgs, HelpArgs, MigrateArgs,
    NodeArgs, NodeKeyVerb, NodeVerb, Shell,
};
pub(crate) use security::{
    AuditArgs, AuditListArgs, AuditVerb, CheckArgs, DryRunArgs, PolicyArgs, PolicyVerb, RulesArgs, RulesVerb,
    VerifyArgs,
};
pub(crate) use turns::{AttachArgs, ModeArg, RunArgs, SendArgs, TopArgs};
pub(crate) use typed::{understood, verb};
pub(crate) use workspace::{WorkspaceArgs, WorkspacePruneArgs, WorkspaceVerb};

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agentctl run \"fix the failing test\"      run an agent here and watch it
  agentctl run -d --name nightly \"...\"     run in the background, print the id
  agentctl top                             watch all sessions, full-screen
  agentctl ps                              list open sessions and their states
  agentctl approvals                       list the approvals that wait for you
  agentctl attach @last                    watch and steer the newest session
  agentctl help exit-codes                 explain a topic

Topics: agents environment exit-codes hooks output providers rules states terminal";

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
    /// Output format; see `agentctl help output`
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    /// Print only ids or names, and no progress or hints on stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour; NO_COLOR is honoured
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Never use a pager; by default, long text on a terminal goes through $AGENTD_PAGER, $PAGER or less
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people; `text` is the same
    #[value(alias = "text")]
    Table,
    /// For people, with more columns
    Wide,
    /// An array for lists, otherwise one object
    Json,
    /// One object per line
    Jsonl,
    /// YAML
    Yaml,
    /// Ids or names only
    Name,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// When writing to a terminal
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
    /// Show all sessions live, full-screen (also: agentctl alone on a terminal)
    Top(TopArgs),
    /// Show one session in full
    #[command(visible_aliases = ["inspect", "describe"])]
    Show(ShowArgs),
    /// Print a session's log as a transcript or as JSON lines
    Logs(LogsArgs),
    /// Watch, steer and answer a session from this terminal
    Attach(AttachArgs),
    /// Send a message to a session
    Send(SendArgs),
    /// List the approvals that wait for you
    Approvals(ApprovalsArgs),
    /// Approve a request
    Approve(DecideArgs),
    /// Deny a request
    Deny(DecideArgs),
    /// Answer an agent's question or pick one of its choices
    Answer(AnswerArgs),
    /// Cancel the running turn; the session stays open
    Cancel(CancelTurnArgs),
    /// Cancel the running turn and kill its commands immediately, including background jobs
    Kill(CancelArgs),
    /// Pause sessions: start no new model calls until resumed
    Pause(LifecycleArgs),
    /// Resume a paused, parked or faulted session; a parked call is retried at once
    Resume(ResumeArgs),
    /// Change a session: its name, model, mode, budget or labels
    Set(SetArgs),
    /// Replace the beginning of a conversation with a summary
    Compact(CompactArgs),
    /// Close a session permanently: it accepts no more input
    Close(LifecycleArgs),
    /// Remove a session
    Rm(RmArgs),
    /// Wait until sessions are idle, closed or waiting for an approval
    Wait(WaitArgs),
    /// Show the file changes of a session
    Diff(DiffArgs),
    /// Revert file changes of a session
    Undo(UndoArgs),
    /// Rewind a session's conversation to an earlier point
    Rewind(RewindArgs),
    /// Create a session that starts with a copy of another session's log
    Fork(ForkArgs),
    /// Apply a session's file changes to another directory
    Apply(ApplyArgs),
    /// Make a git branch of a session's file changes
    Branch(BranchArgs),
    /// Export a session's log, exactly as stored, or its file changes
    Export(ExportArgs),
    /// Create a session with an exported log as its history
    Import(ImportArgs),
    /// Back up the running daemon's store and audit files (restore with `agentd restore`)
    Backup(BackupArgs),
    /// Copy the store between SQLite and PostgreSQL, while no daemon runs
    Migrate(MigrateArgs),
    /// Print events of all sessions
    Events(EventsArgs),
    /// List, measure and remove the workspaces of sessions
    Workspace(WorkspaceArgs),
    /// Show tokens and cost by group
    Usage(UsageArgs),
    /// List the configured models
    Models,
    /// List the tools that agents can use
    Tools,
    /// List the tool servers: state, tools, restarts, last error
    Mcp,
    /// List and revoke permanent permission rules
    Rules(RulesArgs),
    /// Print a link to the web page that signs your browser in
    Open(OpenArgs),
    /// Create, list and revoke tokens for other machines
    Token(TokenArgs),
    /// Name daemons, also on other machines, for --context
    Context(ContextArgs),
    /// Test permission rules: check the verdict for a call, or try out other rules
    Policy(PolicyArgs),
    /// Verify the audit trail
    Audit(AuditArgs),
    /// Diagnose this machine and the daemon, and suggest fixes
    Doctor,
    /// Show, reload, drain or stop the daemon
    Daemon(DaemonArgs),
    /// List the nodes that share the store
    Nodes,
    /// Drain, cordon or open a node of a fleet
    Node(NodeArgs),
    /// Show the daemon's configuration
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print the versions of agentctl and the daemon
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
