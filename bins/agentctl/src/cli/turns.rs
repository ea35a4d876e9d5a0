//! Arguments of `run`, `attach`, `send`.

use crate::cli::look::MarginArgs;
use crate::complete::{models, sessions};
use crate::values::{budget, label, some_time};
use agentd_protocol::{
    Budget, PermissionMode, Preset, Selector, ThinkingLevel, WorkspaceChoice, WorkspaceRequest,
};
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use std::path::PathBuf;
use std::time::Duration;

const RUN_EXAMPLES: &str = "\
Examples:
  agentctl run \"fix the failing test\"
  agentctl run -C ~/app --model sonnet --budget usd=2 \"update the docs\"
  agentctl run --allow 'Bash(cargo test:*)' \"make the tests pass\"
  agentctl run -d -q -l team=infra --input-file task.md
  agentctl run --workspace clone \"try another parser\"   # nothing changes here
  agentctl run --each files.txt --workspace worktree \"document {}\"
  agentctl run --session @last \"now add a test for it\"
  agentctl run -o json \"count the TODOs\" | jq .text

Without a terminal (or with --json or -o json) there is no one to ask: a call that needs approval is denied \
after permission.unattended_timeout, and the agent is told. See `agentctl help exit-codes`.";

/// `run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct RunArgs {
    /// The task for the agent; `-` reads it from stdin
    #[arg(conflicts_with = "input_file")]
    pub(crate) prompt: Option<String>,
    /// Read the prompt from a file, or from stdin with `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) input_file: Option<PathBuf>,
    /// Create one session for each line of this file (or of stdin with `-`), which replaces {} in the prompt
    #[arg(long, value_name = "FILE|-", requires = "prompt")]
    #[arg(conflicts_with_all = ["session", "json", "detach", "timeout", "input_file", "images"])]
    pub(crate) each: Option<PathBuf>,
    /// With --each: how many sessions run at the same time
    #[arg(long, value_name = "N", default_value_t = 4, requires = "each", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) at_once: u32,
    /// Do not watch: print the session's id and return
    #[arg(short, long, conflicts_with_all = ["json", "timeout"])]
    pub(crate) detach: bool,
    /// Continue this session instead of creating one
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(sessions))]
    #[arg(conflicts_with_all = ["workdir", "mode", "name", "labels", "requires", "preset", "max_turns", "thinking", "budget"])]
    #[arg(conflicts_with_all = ["allow", "deny", "tools", "system_prompt", "append_system_prompt", "agent"])]
    pub(crate) session: Option<String>,
    /// The working directory [default: the current one]
    #[arg(short = 'C', long = "workdir", value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// Work in the directory even if it is a protected place, such as ~/.ssh or /etc
    #[arg(long, conflicts_with = "session")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// A configured model, by name; `agentctl models` lists them
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(models))]
    pub(crate) model: Option<String>,
    /// The permission mode: which calls run without asking
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// The session's name [default: derived from the prompt]
    #[arg(long, value_name = "TITLE")]
    pub(crate) name: Option<String>,
    /// A label, such as team=infra; repeatable
    #[arg(short, long = "label", value_name = "K=V", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Run only on a node with this label (node.labels), such as gpu=yes; repeatable
    #[arg(long, value_name = "K=V", value_parser = label)]
    pub(crate) requires: Vec<(String, String)>,
    /// A preset of loop settings
    #[arg(long, value_enum)]
    pub(crate) preset: Option<PresetArg>,
    /// Steps per turn: -1 up to the cap, 0 none, N at most N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) max_turns: Option<i32>,
    /// How much the model should think [default: as configured]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) thinking: Option<ThinkingArg>,
    /// A hard budget: any of tokens=1M,usd=2.50,time=30m,steps=50
    #[arg(long, value_name = "K=V,...", value_parser = budget)]
    pub(crate) budget: Option<Budget>,
    /// Run calls that match this rule without asking, such as 'Bash(cargo test:*)'; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Deny calls that match this rule; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// Offer the agent only these tools, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,
    /// Run a custom agent: agents/NAME.md in your configuration directory, or in .agentd in the working directory
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Replace the base system prompt with the text of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt: Option<PathBuf>,
    /// Append this text to the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// Interpret the prompt like a line in `attach`: @path attaches files; /plan TEXT and command files work
    #[arg(long)]
    pub(crate) commands: bool,
    /// Attach an image file to the prompt; repeatable
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Also show the model's reasoning, if the provider returns it
    #[arg(long, conflicts_with_all = ["json", "detach"])]
    pub(crate) show_thinking: bool,
    /// Print events as they happen, as JSON lines exactly as stored
    #[arg(long)]
    pub(crate) json: bool,
    /// Print lines instead of using the whole screen [env: AGENTCTL_TUI=0]
    #[arg(long)]
    pub(crate) no_tui: bool,
    /// An idempotency key: repeating the command with it watches the same turn and starts nothing new
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Exit with 7 if a call was denied, even if the turn completed
    #[arg(long, conflicts_with = "detach")]
    pub(crate) fail_on_deny: bool,
    /// Cancel the turn after this long and exit with 124
    #[arg(long, value_name = "DURATION", value_parser = some_time)]
    pub(crate) timeout: Option<Duration>,
}

/// Where the session works.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Where the session works [default: as configured]
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "session")]
    pub(crate) workspace: Option<WorkspaceArg>,
    /// Clone this URL and work there
    #[arg(long, value_name = "URL", conflicts_with_all = ["session", "with_changes"])]
    pub(crate) repo: Option<String>,
    /// The branch, tag or commit to begin at [default: the one that is checked out]
    #[arg(long = "ref", value_name = "REF", conflicts_with_all = ["session", "with_changes"])]
    pub(crate) reference: Option<String>,
    /// Bring uncommitted changes along to the session's own workspace
    #[arg(long, conflicts_with = "session")]
    pub(crate) with_changes: bool,
}

impl PlaceArgs {
    /// What to ask the daemon for; `None`: nothing in particular.
    pub(crate) fn request(&self) -> Option<WorkspaceRequest> {
        let request = WorkspaceRequest {
            kind: self.workspace.map(Into::into),
            repo: self.repo.clone(),
            reference: self.reference.clone(),
            with_changes: self.with_changes,
        };
        (request != WorkspaceRequest::default()).then_some(request)
    }
}

/// A kind of workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkspaceArg {
    /// A clone in a git repository, the directory itself elsewhere
    Auto,
    /// The directory itself, together with everyone else who works there
    Shared,
    /// A git worktree, on a branch of the session's own
    Worktree,
    /// A clone that borrows the objects of the repository
    Clone,
    /// A copy of a directory without git
    Copy,
}

impl From<WorkspaceArg> for WorkspaceChoice {
    fn from(kind: WorkspaceArg) -> Self {
        match kind {
            WorkspaceArg::Auto => Self::Auto,
            WorkspaceArg::Shared => Self::Shared,
            WorkspaceArg::Worktree => Self::Worktree,
            WorkspaceArg::Clone => Self::Clone,
            WorkspaceArg::Copy => Self::Copy,
        }
    }
}

/// A permission mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Reads run; writes and commands ask
    Default,
    /// Writes inside the working directory also run
    AcceptEdits,
    /// Reads run; everything else is denied
    Plan,
    /// Everything runs except calls that match a deny rule
    Yolo,
}

impl From<ModeArg> for PermissionMode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Default => Self::Default,
            ModeArg::AcceptEdits => Self::AcceptEdits,
            ModeArg::Plan => Self::Plan,
            ModeArg::Yolo => Self::Yolo,
        }
    }
}

/// How much a model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingArg {
    /// Not at all
    Off,
    /// As little as possible
    Minimal,
    /// A little
    Low,
    /// The usual amount
    Medium,
    /// A lot
    High,
    /// As much as possible
    Max,
}

impl From<ThinkingArg> for ThinkingLevel {
    fn from(level: ThinkingArg) -> Self {
        match level {
            ThinkingArg::Off => Self::Off,
            ThinkingArg::Minimal => Self::Minimal,
            ThinkingArg::Low => Self::Low,
            ThinkingArg::Medium => Self::Medium,
            ThinkingArg::High => Self::High,
            ThinkingArg::Max => Self::Max,
        }
    }
}

/// A named set of loop settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetArg {
    /// The daemon's defaults
    Default,
    /// Up to 100 steps, asks at the cap
    Clawd,
    /// 30 tool rounds, then stops
    Openclaw,
    /// No step limit; a denial stops the turn
    Etcode,
    /// 20 steps, tools as JSON in the text
    React,
}

impl From<PresetArg> for Preset {
    fn from(preset: PresetArg) -> Self {
        match preset {
            PresetArg::Default => Self::Default,
            PresetArg::Clawd => Self::Clawd,
            PresetArg::Openclaw => Self::Openclaw,
            PresetArg::Etcode => Self::Etcode,
            PresetArg::React => Self::React,
        }
    }
}

const ATTACH_KEYS: &str = "\
On a terminal, attach uses the whole screen: press ? or F1 for the keys. Enter sends a message: it steers a running turn or \
starts the next one. Esc cancels the turn. Ctrl-C, or Ctrl-P Ctrl-Q, detaches; the session continues. \
AGENTCTL_DETACH_KEYS=ctrl-a,ctrl-d chooses other keys. NO_COLOR, COLORTERM and AGENTCTL_THEME=light|dark choose the colours.

With --no-tui, AGENTCTL_TUI=0, --seq or --times, or without a terminal, attach prints lines. Type a line and press Enter to send it. \
While an approval is open: y allow, s allow for this session, a always in this project, e everywhere, n [reason] deny; \
for a choice, its number or id. Commands: /approve [once|session|always|everywhere]  /deny [reason]  /answer TEXT \
/cancel  /resume  /detach  /help, and those of the daemon: /plan /mode /model /compact /todo and command files. \
@path attaches a file, @path:10-20 only those lines. Ctrl-C or Ctrl-D detaches; the session continues. \
With --seq or --times, an answer is shown when it is complete, not while it streams.";

/// `attach`.
#[derive(Debug, Args)]
#[command(after_help = ATTACH_KEYS)]
pub(crate) struct AttachArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Watch only; do not accept input
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Print lines instead of using the whole screen [env: AGENTCTL_TUI=0]
    #[arg(long)]
    pub(crate) no_tui: bool,
    /// Start with the last N events instead of the whole log
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) tail: Option<u32>,
    #[command(flatten)]
    pub(crate) margin: MarginArgs,
}

const TOP_KEYS: &str = "\
Enter attaches to the selected session, a answers its question, x cancels its turn, p pauses it, d shows its diff, L its log. \
/ filters, s sorts, Space marks several, A opens the inbox, : runs another command, ? shows all keys.";

/// `top`.
#[derive(Debug, Args)]
#[command(after_help = TOP_KEYS)]
pub(crate) struct TopArgs {
    /// Only sessions whose labels match: team=a, team!=a, 'team in (a,b)', urgent, '!urgent'
    #[arg(short, long = "label", value_name = "SELECTOR")]
    pub(crate) labels: Vec<Selector>,
    /// Print one frame and return
    #[arg(long)]
    pub(crate) once: bool,
}

/// `send`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("delivery").args(["steer", "queue", "collect", "interrupt"]))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct SendArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The message; `-` reads it from stdin
    #[arg(conflicts_with = "input_file")]
    pub(crate) text: Option<String>,
    /// Read the message from a file, or from stdin with `-`
    #[arg(long, value_name = "FILE|-")]
    pub(crate) input_file: Option<PathBuf>,
    /// Join the running turn at its next model call (the default while a turn runs)
    #[arg(long)]
    pub(crate) steer: bool,
    /// Start the next turn after the running one has ended
    #[arg(long)]
    pub(crate) queue: bool,
    /// Like --queue, but one turn takes all such messages that wait
    #[arg(long)]
    pub(crate) collect: bool,
    /// Cancel the running turn and start the next one
    #[arg(long)]
    pub(crate) interrupt: bool,
    /// Watch until the turn that takes the message ends; exit codes are those of `run`
    #[arg(long)]
    pub(crate) wait: bool,
    /// With --wait: stop watching after this long and exit with 124
    #[arg(long, value_name = "DURATION", value_parser = some_time, requires = "wait")]
    pub(crate) timeout: Option<Duration>,
    /// An idempotency key: repeating the command with it adds no second message
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The model for the turn that the message starts
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(models))]
    pub(crate) model: Option<String>,
    /// Give the task to this custom agent, as a sub-agent of the session
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Attach an image file to the message; repeatable
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Interpret the message like a line in `attach`: @path attaches files, /help lists the commands
    #[arg(long)]
    pub(crate) commands: bool,
}
