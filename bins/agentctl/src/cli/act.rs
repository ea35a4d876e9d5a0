//! Arguments of the approval and lifecycle verbs, `set` and `wait`.

use crate::complete::{sessions, states};
use crate::values::duration;
use agentd_protocol::{Scope, Selector};
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use std::time::Duration;

/// `approvals`.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// Only this session's; an approval is shown whole
    #[arg(value_name = "SESSION|APPROVAL", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: Option<String>,
    /// Only of sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
    /// Go through them one by one and answer; then wait for more
    #[arg(short = 'w', long, alias = "watch")]
    pub(crate) walk: bool,
}

/// How far an allow reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// This call
    Once,
    /// Calls like it in this session
    Session,
    /// Calls like it in every session, for good
    Always,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Once => Self::Once,
            ScopeArg::Session => Self::Session,
            ScopeArg::Always => Self::Always,
        }
    }
}

/// `approve` and `deny`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentctl approve 4f2a            the one open approval of session 4f2a\n  agentctl approve --scope session 9c1d\n  agentctl deny 9c1d \"use the staging database\"   or with --reason\n  agentctl deny --all -l team=infra --yes\n  agentctl approve --like 9c1d     every question about the same call there"
)]
pub(crate) struct DecideArgs {
    /// Approvals (ids or prefixes), or sessions with exactly one open; `deny` takes its reason behind them
    #[arg(value_name = "APPROVAL|SESSION", required_unless_present_any = ["all", "like"], add = ArgValueCompleter::new(sessions))]
    pub(crate) targets: Vec<String>,
    /// How far an allow reaches
    #[arg(long, value_enum, default_value = "once")]
    pub(crate) scope: ScopeArg,
    /// Words for the agent
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Every open approval (of the sessions that -l chooses)
    #[arg(long, conflicts_with = "targets")]
    pub(crate) all: bool,
    /// Every open approval like this one: the same call, directory, environment, programs and files, in whichever session
    #[arg(long, value_name = "APPROVAL|SESSION", conflicts_with_all = ["targets", "all"])]
    pub(crate) like: Option<String>,
    /// With --all or --like: only of sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR", conflicts_with = "targets")]
    pub(crate) labels: Vec<Selector>,
    /// Do not ask first
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Only if what is asked has this SHA-256 (at least 8 digits), as `approvals -o json` shows it
    #[arg(long, value_name = "HEX", conflicts_with_all = ["all", "like"])]
    pub(crate) sha256: Option<String>,
}

/// `answer`.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// An approval (id or prefix), or a session with exactly one open
    #[arg(value_name = "APPROVAL|SESSION", add = ArgValueCompleter::new(sessions))]
    pub(crate) target: String,
    /// The answer: words, or of a choice its number, its name or how just one of them begins
    #[arg(value_name = "ANSWER")]
    pub(crate) text: String,
    /// Send the answer as words, whatever choices there are
    #[arg(long = "text")]
    pub(crate) words: bool,
    /// More words for the agent
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Which sessions.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Ids, unambiguous prefixes of either end, names, or @last
    #[arg(value_name = "ID", required_unless_present = "all", add = ArgValueCompleter::new(sessions))]
    pub(crate) sessions: Vec<String>,
    /// Every session (that -l and --state choose)
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) all: bool,
    /// With --all: only sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(
        short,
        long = "label",
        value_name = "SELECTOR",
        requires = "all",
        conflicts_with = "sessions"
    )]
    pub(crate) labels: Vec<Selector>,
    /// With --all: only these states, separated by commas
    #[arg(
        long,
        value_name = "STATE,...",
        value_delimiter = ',',
        requires = "all",
        conflicts_with = "sessions",
        add = ArgValueCompleter::new(states)
    )]
    pub(crate) state: Vec<String>,
    /// Do not ask before acting on --all
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// `cancel` and `kill`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    /// Why; it is kept in the log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// `cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelTurnArgs {
    #[command(flatten)]
    pub(crate) cancel: CancelArgs,
    /// As `kill` does: commands end at once, background jobs, too
    #[arg(short, long)]
    pub(crate) kill: bool,
}

/// `pause`, `resume`, `close`.
#[derive(Debug, Args)]
pub(crate) struct LifecycleArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    /// Why; it is kept in the log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Also while a turn runs: it is cancelled
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// `set`.
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: name, model, mode, budget, labels. Parts of a budget that are not named stay as they are; none lifts one. \
Of labels KEY=VALUE sets one, KEY- removes one. A session that stopped because its budget was used up goes on \
when the new one has room. A model and a mode count from the next step on.\nExamples:\n  agentctl set 4f2a name=nightly model=sonnet mode=accept-edits\n  agentctl set 4f2a budget=usd=5,tokens=none\n  agentctl set 4f2a labels=team=infra,urgent-"
)]
pub(crate) struct SetArgs {
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// What to change: name=, model=, mode=, budget=, labels=
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub(crate) changes: Vec<String>,
}

/// `rm`.
#[derive(Debug, Args)]
#[command(
    after_help = "A tombstone stays until retention purges the log. Examples:\n  agentctl rm 4f2a\n  agentctl rm --all --state closed --yes"
)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    /// Also running sessions
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// What `wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitFor {
    /// Nothing runs and nothing will without new input
    Idle,
    /// It takes no more input
    Closed,
    /// It asks a person
    Approval,
}

/// `wait`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: those of the last turn (0 completed, 6 failed, 8 cancelled, 9 budget or limit), 7 when a session \
that should become idle waits for a person, 124 at the timeout. Of many sessions the first that is not 0 counts."
)]
pub(crate) struct WaitArgs {
    /// Ids, unambiguous prefixes of either end, names, or @last
    #[arg(value_name = "ID", required = true, add = ArgValueCompleter::new(sessions))]
    pub(crate) sessions: Vec<String>,
    /// What to wait for
    #[arg(long = "for", value_enum, default_value = "idle", value_name = "WHAT")]
    pub(crate) what: WaitFor,
    /// Give up after this long
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}
