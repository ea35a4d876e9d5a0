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

/// What to do with the audit files.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Check that no line was changed, removed, added or moved; exit code 1 if one was
    #[command(
        after_help = "Reads the files themselves; a daemon that runs is only asked where they are. Lines missing at the very end can only be noticed with \
--head: keep the hash that a good check prints somewhere else, and give it to the next check.\n\nExamples:\n  agentctl audit verify\n  agentctl audit verify /backup/audit-000001.jsonl.gz /backup/audit.jsonl\n  agentctl audit verify --head \"$(cat last-head)\" -q > new-head"
    )]
    Verify(VerifyArgs),
}

/// `audit verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Audit files of one daemon, oldest first [default: those in the data directory]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The daemon's data directory, if it is not the usual one
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub(crate) data_dir: Option<PathBuf>,
    /// A hash that an earlier check printed: it must still be in the chain
    #[arg(long, value_name = "HASH")]
    pub(crate) head: Option<Link>,
}

/// `policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

/// What to ask the permission rules.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Say what verdict a call would get, and why; nothing is run
    #[command(
        after_help = "Without --session the configuration of this machine decides, and no daemon is needed. With it, the rules in \
force in the daemon, the session's own and those that people granted decide, in the session's mode.\n\nExamples:\n  agentctl policy check 'cargo test && git push'\n  agentctl policy check --tool Write --path /etc/hosts\n  agentctl policy check --session @last 'make install'"
    )]
    Check(CheckArgs),
    /// Judge logged calls by other rules, and list whose verdict would change
    #[command(
        name = "dry-run",
        after_help = "FILE is a configuration file; only its [permission] section counts, above agentd's defaults and instead of \
your own files. Rules of the sessions, and those that people granted in them or for good, stay in force.\n\nExamples:\n  agentctl policy dry-run --rules new.toml --all\n  agentctl policy dry-run --rules new.toml --session @last -o json"
    )]
    DryRun(DryRunArgs),
}

/// `policy check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A command line, as Bash would get it
    #[arg(value_name = "CMD", required_unless_present = "tool", conflicts_with = "tool")]
    pub(crate) command: Option<String>,
    /// Another tool's call
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// The file or directory that the call is about
    #[arg(long, value_name = "P", requires = "tool", conflicts_with = "url")]
    pub(crate) path: Option<String>,
    /// The address that the call is about
    #[arg(long, value_name = "URL", requires = "tool")]
    pub(crate) url: Option<String>,
    /// The permission mode [default: the session's, else the configured one]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// The working directory [default: the session's, else this one]
    #[arg(short = 'C', long = "workdir", value_name = "DIR", conflicts_with = "session")]
    pub(crate) workdir: Option<PathBuf>,
    /// Also read this configuration file, as `agentd --config` does
    #[arg(long, value_name = "FILE", conflicts_with = "session")]
    pub(crate) config: Option<PathBuf>,
    /// Judge as in this session: an id, an unambiguous prefix of either end, a name, or @last
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: Option<String>,
}

/// `policy dry-run`.
#[derive(Debug, Args)]
pub(crate) struct DryRunArgs {
    /// The configuration file with the other rules
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: PathBuf,
    /// Only the calls of this session: an id, an unambiguous prefix of either end, a name, or @last
    #[arg(long, value_name = "ID", required_unless_present = "all", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: Option<String>,
    /// The calls of all sessions
    #[arg(long, conflicts_with = "session")]
    pub(crate) all: bool,
}

/// `rules`.
#[derive(Debug, Args)]
#[command(
    after_help = "These rules come from answers with --scope always, or `a` at a question, and hold in every session. Rules of the \
configuration are changed there: agentctl config view. Examples:\n  agentctl rules ls\n  agentctl rules rm 3\n  agentctl rules rm 'allow Bash(cargo test)'"
)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) verb: RulesVerb,
}

/// What to do with the rules that people made for good.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesVerb {
    /// List them: number, age, who made it, the approval it comes from
    #[command(alias = "list")]
    Ls,
    /// Revoke them: the next such call is asked about again, in every session
    #[command(alias = "revoke")]
    Rm {
        /// Numbers as `rules ls` shows them, or whole rules
        #[arg(value_name = "RULE", required = true)]
        rules: Vec<String>,
    },
}
