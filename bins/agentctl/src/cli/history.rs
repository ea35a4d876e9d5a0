//! Arguments of `diff`, `undo`, `rewind`, `fork`.

use crate::complete::sessions;
use clap::Args;
use clap_complete::ArgValueCompleter;

/// `diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "Compares what files held before the session changed them with what they hold now. What commands did to files \
is seen only where the session's own tools changed the file, too. Files that its sub-agents changed are among them, marked.\nExamples:\n  agentctl diff 4f2a\n  agentctl diff 4f2a --turn last --stat"
)]
pub(crate) struct DiffArgs {
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Only what this turn changed: its id, the beginning or end of it, or `last`
    #[arg(long, value_name = "TURN")]
    pub(crate) turn: Option<String>,
    /// Only names and counts of lines
    #[arg(long)]
    pub(crate) stat: bool,
}

/// `undo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Only changes by the session's own tools on files can be undone; what commands did cannot. A file that somebody \
changed since is in the way (exit code 5). The agent is told at its next input. What sub-agents \
changed belongs to the turn that started them. Examples:\n  agentctl undo 4f2a                 its last change\n  agentctl undo 4f2a --turn last     all that the last turn changed\n  agentctl undo 4f2a --change 0123ab --dry-run"
)]
pub(crate) struct UndoArgs {
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// This change, by its undo id or the beginning of it [default: the last one]
    #[arg(long, value_name = "UNDO_ID", conflicts_with = "turn")]
    pub(crate) change: Option<String>,
    /// All changes of this turn: its id, the beginning or end of it, or `last`
    #[arg(long, value_name = "TURN")]
    pub(crate) turn: Option<String>,
    /// Also files that somebody changed since; what they did is lost
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// An idempotency key: undoing with it again undoes nothing more
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// `rewind`.
#[derive(Debug, Args)]
#[command(
    after_help = "The log keeps everything; the model does not see what came after SEQ. Inside a step the last point before it \
is taken. Examples:\n  agentctl logs --seq 4f2a           shows the numbers (SEQ)\n  agentctl rewind 4f2a --at 31\n  agentctl rewind 4f2a --at 31 --files"
)]
pub(crate) struct RewindArgs {
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The number of the last event that counts
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: u64,
    /// Put the files back, too, that the session changed since
    #[arg(long)]
    pub(crate) files: bool,
    /// With --files: also those that somebody else changed since; what they did is lost
    #[arg(short, long, requires = "files")]
    pub(crate) force: bool,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// An idempotency key
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// `fork`.
#[derive(Debug, Args)]
#[command(
    after_help = "The new session works in the same directory; files are not copied. Between two turns the last point before SEQ is \
taken. Examples:\n  agentctl fork 4f2a\n  agentctl logs --seq 4f2a           shows the numbers (SEQ)\n  agentctl fork 4f2a --at 31 --name \"another way\""
)]
pub(crate) struct ForkArgs {
    /// An id, an unambiguous prefix of either end, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The number of the last event that is copied [default: as late as possible]
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: Option<u64>,
    /// What to call the new session [default: as the old one]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// An idempotency key: forking with it again makes no second session
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}
