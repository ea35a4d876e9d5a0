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
    after_help = "Examples:\n  agentctl ps\n  agentctl ps -a --state failed,closed -o json\n  agentctl ps -w -l team=infra -L owner --sort cost"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct PsArgs {
    /// Closed sessions, too
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only these states, separated by commas; `running` matches running(model) and running(tool)
    #[arg(long, value_name = "STATE,...", value_delimiter = ',', add = ArgValueCompleter::new(states))]
    pub(crate) state: Vec<String>,
    /// Only sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
    /// Show these labels as columns, separated by commas
    #[arg(short = 'L', long, value_name = "KEY,...", value_delimiter = ',')]
    pub(crate) label_columns: Vec<String>,
    /// The order of the rows
    #[arg(long, value_enum, default_value = "created")]
    pub(crate) sort: Sort,
    /// The other way round
    #[arg(short, long)]
    pub(crate) reverse: bool,
    /// Sub-agents below the sessions that started them
    #[arg(long)]
    pub(crate) tree: bool,
    /// Redraw every second until q or Ctrl-C (on a terminal)
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// The order of `ps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Newest first
    Created,
    /// Last changed first
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
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// What the model is sent of the conversation, and about how many tokens each part takes; `show ID --context` is the same
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) window: bool,
    /// What the model is told before the conversation: the sources with their sizes, then the text
    #[arg(long)]
    pub(crate) prompt: bool,
    /// Have the model of side_calls.model write what was done in a few sentences, and wait for it
    #[arg(long, conflicts_with_all = ["prompt", "window"])]
    pub(crate) summary: bool,
}

/// `compact`.
#[derive(Debug, Args)]
#[command(
    after_help = "The log keeps the whole conversation; only what the model is sent becomes shorter. Between turns it is done \
at once, in a running turn before its next model call."
)]
pub(crate) struct CompactArgs {
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Do not wait until it is done
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// `logs`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentctl logs @last\n  agentctl logs --seq --times 4f2a   with the numbers that fork --at takes\n  agentctl logs -f --kind tool,turn 4f2a\n  agentctl logs -n 20 -o jsonl 4f2a"
)]
pub(crate) struct LogsArgs {
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Go on with what happens, until the session is closed
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only events after this seq
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
    /// Only the last N events
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    /// Only events since then: a duration ago (10m) or a moment (2026-11-20T09:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only these types, or families of types (tool, model, approval, turn), separated by commas
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', add = ArgValueCompleter::new(kinds))]
    pub(crate) kind: Vec<String>,
    #[command(flatten)]
    pub(crate) margin: MarginArgs,
}

/// What `logs` and `attach` show beside each event.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct MarginArgs {
    /// Show the number of each event on the left, as `fork --at` and `rewind --at` take it
    #[arg(long)]
    pub(crate) seq: bool,
    /// Show the time of each event on the left (UTC)
    #[arg(short, long)]
    pub(crate) times: bool,
    /// Show the model's reasoning, too, where the provider gives it
    #[arg(long, visible_alias = "thinking")]
    pub(crate) show_thinking: bool,
}

/// `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The exact stored lines (the only format in this version)
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// Go on with what happens, until the session is closed
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the events, without the outputs that were too long for their results (`-f` never prints them)
    #[arg(long)]
    pub(crate) no_blobs: bool,
    /// Only events after this seq
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
}

const BACKUP_NOTES: &str = "\
The daemon goes on working. The backup has every session up to one moment, with large results, rules and the audit \
files; it does not have the configuration and keys of providers. It is as confidential as the data directory.

To restore it, stop the daemon and run `agentd --data-dir DIR restore FILE`.";

/// `backup`.
#[derive(Debug, Args)]
#[command(after_help = BACKUP_NOTES)]
pub(crate) struct BackupArgs {
    /// Where to write it: a tar file that only you can read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

const IMPORT_NOTES: &str = "\
An imported log is history: it can be read, and the model knows the conversation. Nothing in it counts here. \
What was open in it is closed, and its verdicts, approvals, grants, mode, limits, budget, model, labels and \
working directory are not taken over: the options above and the configuration decide. It costs nothing in \
`usage`, and the audit trail says only who imported which file. The scope `import` is needed.

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
    /// The working directory; the one in the file does not count [default: asked for, without a terminal this one]
    #[arg(short = 'C', long = "workdir", value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// What people call the session [default: made from the file's name]
    #[arg(long, value_name = "TITLE")]
    pub(crate) name: Option<String>,
    /// A model by its configured name
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(models))]
    pub(crate) model: Option<String>,
    /// What runs without asking
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// A label, such as team=infra; may be repeated
    #[arg(short, long = "label", value_name = "K=V", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Steps in a turn: -1 up to the cap, 0 none, N at most N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) max_turns: Option<i32>,
    /// A hard budget: tokens=1M,usd=2.50,time=30m,steps=50, any of them
    #[arg(long, value_name = "K=V,...", value_parser = budget)]
    pub(crate) budget: Option<Budget>,
    /// Run calls that match this rule without asking; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Never run calls that match this rule; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// Offer only these tools, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,
    /// An idempotency key: importing with it again makes no second session
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// `events`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentctl events -n 50\n  agentctl events --since 2h --kind approval,turn -l team=infra\n  agentctl events -f -n 0 -o jsonl\n\nEach event of the fleet has a cursor; `--after CURSOR` goes on behind it. With -o jsonl the stored lines \
are printed exactly, and the last cursor is said on stderr at the end."
)]
pub(crate) struct EventsArgs {
    /// Go on with what happens
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only events after this cursor [default: all, or with -f only new ones]
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<u64>,
    /// Only the last N events
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    /// Only events since then: a duration ago (2h) or a moment (2026-11-20T09:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only these types, or families of types (tool, model, approval, turn), separated by commas
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', add = ArgValueCompleter::new(kinds))]
    pub(crate) kind: Vec<String>,
    /// Only of sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
}

/// `usage`.
#[derive(Debug, Args)]
#[command(
    after_help = "Removed sessions count, too; by session they are one group, (removed). With --since only what the logs tell \
is summed, so removed sessions do not count.\n\nExamples:\n  agentctl usage --by team\n  agentctl usage --since 24h --by session"
)]
pub(crate) struct UsageArgs {
    /// Group by `model`, `session`, or a label's name
    #[arg(long, value_name = "WHAT", default_value = "model")]
    pub(crate) by: String,
    /// Only of sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
    /// Only what was spent since then: a duration ago (2h) or a moment (2026-11-20T09:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
}
