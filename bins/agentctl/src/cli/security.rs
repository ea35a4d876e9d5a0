//! Arguments of `audit`, `policy` and `rules`.

use crate::cli::turns::ModeArg;
use crate::complete::sessions;
use agentd_audit::Link;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use std::path::PathBuf;

/// `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) verb: AuditVerb,
}

/// The operation on the audit files.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// List who did what, newest first
    #[command(after_help = "\
The daemon searches its audit files; nothing is checked, which `agentctl audit verify` does.\n\nExamples:\
\n  agentctl audit ls --since 24h --event approval.decided\n  agentctl audit ls --who token:ci -n 1000 -o json\
\n  agentctl audit ls --session 01a2")]
    Ls(AuditListArgs),
    /// Check that no line was changed, removed, added or moved; exit with 1 if one was
    #[command(after_help = "\
Reads the files directly; asks a running daemon only for their location. With a context on another machine the daemon \
checks its own files. Only --head can detect lines missing \
at the very end: store the hash that a successful check prints elsewhere, and pass it to the next check.\n\nExamples:\
\n  agentctl audit verify\n  agentctl audit verify /backup/audit-000001.jsonl.gz /backup/audit.jsonl\
\n  agentctl audit verify --head \"$(cat last-head)\" -q > new-head")]
    Verify(VerifyArgs),
}

/// `audit ls`.
#[derive(Debug, Args)]
pub(crate) struct AuditListArgs {
    /// Only lines of a person or program, or of all whose name has this part
    #[arg(long, value_name = "WHO")]
    pub(crate) who: Option<String>,
    /// Only events of a type, or of all types that begin so
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Only lines about a session: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only lines since a time: a duration ago (2h) or a timestamp (2026-11-20T09:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only lines before a time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// The maximum number of lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) number: usize,
}

/// `audit verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Audit files of one daemon, oldest first [default: those in the data directory]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The daemon's data directory, if it is not the default one
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub(crate) data_dir: Option<PathBuf>,
    /// A hash printed by an earlier check; it must still be in the chain
    #[arg(long, value_name = "HASH")]
    pub(crate) head: Option<Link>,
}

/// `policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

/// The question for the permission rules.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Show the verdict that a call would get, and why; nothing is run
    #[command(after_help = "\
Without --session, the configuration of this machine applies and no daemon is needed. With it, the daemon's \
current rules, the session's own rules and the rules that people granted apply, in the session's mode.\n\nExamples:\
\n  agentctl policy check 'cargo test && git push'\n  agentctl policy check --tool Write --path /etc/hosts\
\n  agentctl policy check --session @last 'make install'")]
    Check(CheckArgs),
    /// Evaluate logged calls against other rules, and list the verdicts that would change
    #[command(
        name = "dry-run",
        after_help = "\
FILE is a configuration file. Only its [permission] section is used, on top of agentd's defaults and instead of \
your own files. The rules of sessions, and those that people granted in them or permanently, stay in force.\
\n\nExamples:\n  agentctl policy dry-run --rules new.toml --all\
\n  agentctl policy dry-run --rules new.toml --session @last -o json"
    )]
    DryRun(DryRunArgs),
}

/// `policy check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A command line for the tool Bash
    #[arg(value_name = "CMD", required_unless_present = "tool", conflicts_with = "tool")]
    pub(crate) command: Option<String>,
    /// Check a call of this tool instead of Bash
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// The file or directory that the call accesses
    #[arg(long, value_name = "P", requires = "tool", conflicts_with = "url")]
    pub(crate) path: Option<String>,
    /// The address that the call accesses
    #[arg(long, value_name = "URL", requires = "tool")]
    pub(crate) url: Option<String>,
    /// The permission mode [default: the session's, otherwise the configured one]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// The working directory [default: the session's, otherwise the current one]
    #[arg(short = 'C', long = "workdir", value_name = "DIR", conflicts_with = "session")]
    pub(crate) workdir: Option<PathBuf>,
    /// Also read this configuration file, as `agentd --config` does
    #[arg(long, value_name = "FILE", conflicts_with = "session")]
    pub(crate) config: Option<PathBuf>,
    /// Check the call as in this session: an id, an unambiguous beginning or end of one, a name, or @last
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: Option<String>,
}

/// `policy dry-run`.
#[derive(Debug, Args)]
pub(crate) struct DryRunArgs {
    /// The configuration file with the rules to try
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: PathBuf,
    /// Only calls of this session: an id, an unambiguous beginning or end of one, a name, or @last
    #[arg(long, value_name = "ID", required_unless_present = "all", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: Option<String>,
    /// Calls of all sessions
    #[arg(long, conflicts_with = "session")]
    pub(crate) all: bool,
}

/// `rules`.
#[derive(Debug, Args)]
#[command(after_help = "\
These rules come from answers with --scope always or everywhere, or `a` or `e` at a prompt. The column \
`holds` says where each applies. To change \
rules of the configuration, edit its files; `agentctl config view --show-origin` lists them.\n\nExamples:\
\n  agentctl rules ls\
\n  agentctl rules rm 3\n  agentctl rules rm 'allow Bash(cargo test)'")]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) verb: RulesVerb,
}

/// The operation on the permanent rules that people made.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesVerb {
    /// List the rules: number, age, author and originating approval
    #[command(alias = "list")]
    Ls,
    /// Revoke rules: the next such call asks again, in every session
    #[command(alias = "revoke")]
    Rm {
        /// Rule numbers as shown by `rules ls`, or whole rules
        #[arg(value_name = "RULE", required = true)]
        rules: Vec<String>,
    },
}
