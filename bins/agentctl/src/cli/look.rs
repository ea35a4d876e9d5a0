//! `ps`, `show`, `logs`, `export`, `import`, `events`, `usage`.

use crate::cli::turns::ModeArg;
use crate::complete::{kinds, models, sessions, states};
use crate::values::{budget, label};
use agentd_protocol::{Budget, Selector};
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use std::path::PathBuf;

/// `ps`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentctl ps\n  agentctl ps -a --state failed,closed -o json\
\n  agentctl ps -w -l team=infra -L owner --sort cost"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct PsArgs {
    /// Include closed sessions
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only sessions in these states, separated by commas; `running` matches running(model) and running(tool)
    #[arg(long, value_name = "STATE,...", value_delimiter = ',', add = ArgValueCompleter::new(states))]
    pub(crate) state: Vec<String>,
    /// Only sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
    /// Show these labels as columns, separated by commas
    #[arg(short = 'L', long, value_name = "KEY,...", value_delimiter = ',')]
    pub(crate) label_columns: Vec<String>,
    /// Sort the rows by
    #[arg(long, value_enum, default_value = "created")]
    pub(crate) sort: Sort,
    /// Reverse the order
    #[arg(short, long)]
    pub(crate) reverse: bool,
    /// Show sub-agents below the sessions that started them
    #[arg(long)]
    pub(crate) tree: bool,
    /// Show only how many sessions are in which state, now and in each minute of the last hour
    #[arg(long, conflicts_with_all = ["all", "state", "labels", "label_columns", "sort", "reverse", "tree", "watch"])]
    pub(crate) counts: bool,
    /// Redraw every second until q or Ctrl-C (on a terminal)
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// The order of `ps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Newest first
    Created,
    /// Most recently changed first
    Updated,
    /// By name
    Name,
    /// By state
    State,
    /// Most steps first
    Steps,
    /// Most tokens first
    Tokens,
    /// Most expensive first
    Cost,
}

/// `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Show what the model receives of the conversation, with approximate tokens per part; same as `show ID --context`
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) window: bool,
    /// Show the system prompt: its sources and their sizes, then the text
    #[arg(long)]
    pub(crate) prompt: bool,
    /// List the files of its directory as they were recorded at this event, or at the last one
    #[arg(long, value_name = "SEQ", num_args = 0..=1, conflicts_with_all = ["prompt", "window", "summary"])]
    #[expect(clippy::option_option, reason = "absent, without a number, with one")]
    pub(crate) files: Option<Option<u64>>,
    /// Have the model of side_calls.model summarize the work in a few sentences, and wait for the summary
    #[arg(long, conflicts_with_all = ["prompt", "window"])]
    pub(crate) summary: bool,
}

/// `compact`.
#[derive(Debug, Args)]
#[command(
    after_help = "The log keeps the whole conversation; only the model's input becomes shorter. Compaction happens at once \
between turns, or before the next model call of a running turn."
)]
pub(crate) struct CompactArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Do not wait for completion
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// `logs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  agentctl logs @last\
\n  agentctl logs --seq --times 4f2a   with the numbers that fork --at takes\n  agentctl logs -f --kind tool,turn 4f2a\
\n  agentctl logs -n 20 -o jsonl 4f2a")]
pub(crate) struct LogsArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Follow new events until the session is closed
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only events after this seq
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
    /// Only the last N events
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    /// Only events since a time: a duration ago (10m) or a timestamp (2026-11-20T09:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only these event types or families of types (tool, model, approval, turn), separated by commas
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', add = ArgValueCompleter::new(kinds))]
    pub(crate) kind: Vec<String>,
    #[command(flatten)]
    pub(crate) margin: MarginArgs,
}

/// The columns that `logs` and `attach` show before each event.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct MarginArgs {
    /// Show the number of each event on the left, for `fork --at` and `rewind --at`
    #[arg(long)]
    pub(crate) seq: bool,
    /// Show the time of each event on the left (UTC)
    #[arg(short, long)]
    pub(crate) times: bool,
    /// Also show the model's reasoning, if the provider returns it
    #[arg(long, visible_alias = "thinking")]
    pub(crate) show_thinking: bool,
}

/// `export`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct ExportArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Export JSON lines exactly as stored (the only format in this version)
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// Instead of the log: the session's changes of files, as a patch for `git apply`
    #[arg(long, conflicts_with_all = ["jsonl", "follow", "bundle"])]
    pub(crate) patch: bool,
    /// Instead of the log: the session's changes of files, as a git bundle with a branch of this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["jsonl", "follow"])]
    pub(crate) bundle: Option<String>,
    /// Follow new events until the session is closed
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Export only events, without the large outputs stored outside their results (`-f` never includes those)
    #[arg(long)]
    pub(crate) no_blobs: bool,
    /// Only events after this seq
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
}

const BACKUP_NOTES: &str = "\
The daemon keeps running. The backup contains every session as of one moment, large results, rules and the audit \
files, but not the configuration or provider keys. It is as confidential as the data directory.

To restore it, stop the daemon and run `agentd --data-dir DIR restore FILE`.";

/// `backup`.
#[derive(Debug, Args)]
#[command(after_help = BACKUP_NOTES)]
pub(crate) struct BackupArgs {
    /// The file to write: a tar file that only you can read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

const IMPORT_NOTES: &str = "\
An imported log is history: you can read it, and the model knows the conversation. Nothing else carries over. \
Open calls and approvals are closed. Verdicts, approvals, grants, mode, limits, budget, model, labels and working \
directory come from the options above and the configuration, not from the log. Imported events do not count in \
`usage`, and the audit trail records only who imported which file. Importing requires the scope `import`.

Examples:
  agentctl import -C ~/src/app travels.jsonl
  agentctl import -C . --mode plan --name review travels.jsonl";

/// `import`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_NOTES)]
pub(crate) struct ImportArgs {
    /// A file that `export` wrote, or stdin with `-`
    #[arg(value_name = "FILE|-")]
    pub(crate) file: PathBuf,
    /// The working directory; the one in the file is ignored [default: ask; without a terminal, the current one]
    #[arg(short = 'C', long = "workdir", value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// The session's name [default: derived from the file name]
    #[arg(long, value_name = "TITLE")]
    pub(crate) name: Option<String>,
    /// A configured model, by name
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(models))]
    pub(crate) model: Option<String>,
    /// The permission mode
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// A label, such as team=infra; repeatable
    #[arg(short, long = "label", value_name = "K=V", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Steps per turn: -1 up to the cap, 0 none, N at most N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) max_turns: Option<i32>,
    /// A hard budget: any of tokens=1M,usd=2.50,time=30m,steps=50
    #[arg(long, value_name = "K=V,...", value_parser = budget)]
    pub(crate) budget: Option<Budget>,
    /// Run calls that match this rule without asking; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Deny calls that match this rule; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// Offer the agent only these tools, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,
    /// An idempotency key: repeating the command with it creates no second session
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// `events`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentctl events -n 50\n  agentctl events --since 2h --kind approval,turn -l team=infra\
\n  agentctl events -f -n 0 -o jsonl\
\n\nEach event of the fleet has a cursor; `--after CURSOR` continues after it. With -o jsonl, stored lines are \
printed exactly, and the last cursor is printed on stderr at the end."
)]
pub(crate) struct EventsArgs {
    /// Follow new events
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only events after this cursor [default: all; with -f, only new ones]
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<u64>,
    /// Only the last N events
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    /// Only events since a time: a duration ago (2h) or a timestamp (2026-11-20T09:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only these event types or families of types (tool, model, approval, turn), separated by commas
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', add = ArgValueCompleter::new(kinds))]
    pub(crate) kind: Vec<String>,
    /// Only sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
}

/// `usage`.
#[derive(Debug, Args)]
#[command(after_help = "\
Removed sessions are included; with --by session they form one group, (removed). With --since, the sums come from \
the logs, so removed sessions are not included.\n\nExamples:\n  agentctl usage --by team\
\n  agentctl usage --since 24h --by session\
\n  agentctl usage --daily --by team")]
pub(crate) struct UsageArgs {
    /// Group by `model`, `session` or a label key
    #[arg(long, value_name = "WHAT", default_value = "model")]
    pub(crate) by: String,
    /// Only sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
    /// Only usage since a time: a duration ago (2h) or a timestamp (2026-11-20T09:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Show each of the last 31 days (UTC); the daemon counts since it was first started with this option
    #[arg(long, conflicts_with = "since")]
    pub(crate) daily: bool,
}
