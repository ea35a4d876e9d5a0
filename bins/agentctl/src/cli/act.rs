//! Arguments of the approval and lifecycle verbs, `set` and `wait`.

use crate::complete::{sessions, states};
use crate::values::duration;
use agentd_protocol::{Scope, Selector};
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use std::path::PathBuf;
use std::time::Duration;

/// `approvals`.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// A session whose approvals to list, or an approval to show in full
    #[arg(value_name = "SESSION|APPROVAL", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: Option<String>,
    /// Only sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
    /// Review and answer approvals one by one, then wait for new ones
    #[arg(short = 'w', long, alias = "watch")]
    pub(crate) walk: bool,
}

/// Scope of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Only this call
    Once,
    /// The same call in this session, in this project, while the files that it runs stay the same
    Session,
    /// The same call in every session of this project, permanently, while the files that it runs stay the same
    Always,
    /// The same call in every session and directory, permanently, whatever its files contain then
    Everywhere,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Once => Self::Once,
            ScopeArg::Session => Self::Session,
            ScopeArg::Always => Self::Always,
            ScopeArg::Everywhere => Self::Everywhere,
        }
    }
}

/// `approve` and `deny`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentctl approve 4f2a            the only open approval of session 4f2a\
\n  agentctl approve --scope session 9c1d\n  agentctl deny 9c1d \"use the staging database\"   or with --reason\
\n  agentctl deny --all -l team=infra --yes\n  agentctl approve --like 9c1d     every open approval of the same call"
)]
pub(crate) struct DecideArgs {
    /// Approvals (ids or prefixes), or sessions with exactly one open approval; for `deny`, a reason may follow
    #[arg(value_name = "APPROVAL|SESSION", required_unless_present_any = ["all", "like"], add = ArgValueCompleter::new(sessions))]
    pub(crate) targets: Vec<String>,
    /// How widely the approval applies
    #[arg(long, value_enum, default_value = "once")]
    pub(crate) scope: ScopeArg,
    /// A message for the agent
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Every open approval (of the sessions selected with -l)
    #[arg(long, conflicts_with = "targets")]
    pub(crate) all: bool,
    /// Every open approval like this one: same call, directory, environment, programs and files, in any session
    #[arg(long, value_name = "APPROVAL|SESSION", conflicts_with_all = ["targets", "all"])]
    pub(crate) like: Option<String>,
    /// With --all or --like: only sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR", conflicts_with = "targets")]
    pub(crate) labels: Vec<Selector>,
    /// Decide without showing the question, by a rule of yours; the log says so (so it does without a terminal)
    #[arg(short, long, visible_alias = "by-policy")]
    pub(crate) yes: bool,
    /// Decide only if the request has this SHA-256 (at least 8 digits); `approvals -o json` prints it
    #[arg(long, value_name = "HEX", conflicts_with_all = ["all", "like"])]
    pub(crate) sha256: Option<String>,
}

/// `answer`.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// An approval (id or prefix), or a session with exactly one open approval
    #[arg(value_name = "APPROVAL|SESSION", add = ArgValueCompleter::new(sessions))]
    pub(crate) target: String,
    /// The answer: free text, or the number, name or unique prefix of a choice
    #[arg(value_name = "ANSWER")]
    pub(crate) text: String,
    /// Send the answer as text even if there are choices
    #[arg(long = "text")]
    pub(crate) words: bool,
    /// Answer without showing the question, by a rule of yours; the log says so (so it does without a terminal)
    #[arg(short, long, visible_alias = "by-policy")]
    pub(crate) yes: bool,
    /// An additional message for the agent
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Which sessions.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Session ids, unambiguous beginnings or ends of ids, names, or @last
    #[arg(value_name = "ID", required_unless_present = "all", add = ArgValueCompleter::new(sessions))]
    pub(crate) sessions: Vec<String>,
    /// All sessions (or those selected with -l and --state)
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
    /// With --all: only sessions in these states, separated by commas
    #[arg(
        long,
        value_name = "STATE,...",
        value_delimiter = ',',
        requires = "all",
        conflicts_with = "sessions",
        add = ArgValueCompleter::new(states)
    )]
    pub(crate) state: Vec<String>,
    /// Skip the confirmation for --all
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// `cancel` and `kill`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    /// The reason; recorded in the log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// `cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelTurnArgs {
    #[command(flatten)]
    pub(crate) cancel: CancelArgs,
    /// Kill commands immediately, including background jobs, as `kill` does
    #[arg(short, long)]
    pub(crate) kill: bool,
}

/// `pause`, `resume`, `close`.
#[derive(Debug, Args)]
pub(crate) struct LifecycleArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    /// The reason; recorded in the log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Cancel a running turn first
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// `resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) lifecycle: LifecycleArgs,
    /// Go on in this directory of the daemon's machine, for one session whose directory is gone or not the right one
    #[arg(short = 'C', long = "workdir", value_name = "DIR", conflicts_with = "all")]
    pub(crate) workdir: Option<PathBuf>,
}

/// `set`.
#[derive(Debug, Args)]
#[command(after_help = "\
Keys: name, model, mode, budget, labels. Unnamed parts of a budget do not change; the value none removes a limit. \
For labels, KEY=VALUE sets a label and KEY- removes one. A session that has used up its budget continues \
when the new budget has room. A new model or mode takes effect at the next step.\n\nExamples:\
\n  agentctl set 4f2a name=nightly model=sonnet mode=accept-edits\n  agentctl set 4f2a budget=usd=5,tokens=none\
\n  agentctl set 4f2a labels=team=infra,urgent-")]
pub(crate) struct SetArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Settings to change: name=, model=, mode=, budget=, labels=
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub(crate) changes: Vec<String>,
}

/// `rm`.
#[derive(Debug, Args)]
#[command(
    after_help = "A tombstone remains until retention purges the log.\n\nExamples:\n  agentctl rm 4f2a\
\n  agentctl rm --all --state closed --yes"
)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    /// Also remove running sessions
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// What `wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitFor {
    /// Nothing is running, and nothing will run without new input
    Idle,
    /// The session accepts no more input
    Closed,
    /// The session waits for an approval or an answer
    Approval,
}

/// `wait`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: that of the last turn (0 completed, 6 failed, 8 cancelled, 9 budget or limit), 7 if a session \
that should become idle waits for a person, 124 on timeout. With several sessions, the first nonzero code is used."
)]
pub(crate) struct WaitArgs {
    /// Session ids, unambiguous beginnings or ends of ids, names, or @last
    #[arg(value_name = "ID", required = true, add = ArgValueCompleter::new(sessions))]
    pub(crate) sessions: Vec<String>,
    /// The condition to wait for
    #[arg(long = "for", value_enum, default_value = "idle", value_name = "WHAT")]
    pub(crate) what: WaitFor,
    /// Give up after this long
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}
