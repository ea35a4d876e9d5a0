//! Arguments of `diff`, `undo`, `rewind`, `fork`, `apply`, `branch`.

use crate::complete::sessions;
use clap::Args;
use clap_complete::ArgValueCompleter;

/// `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Compares files as they were before the session changed them with their current content. Changes by commands \
show up where files were recorded (`workspace.checkpoint`). Files changed by sub-agents are included and marked.\
\n\nExamples:\n  agentctl diff 4f2a\n  agentctl diff 4f2a --turn last --stat")]
pub(crate) struct DiffArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// Only the changes of this turn: its id, a beginning or end of it, or `last`
    #[arg(long, value_name = "TURN")]
    pub(crate) turn: Option<String>,
    /// Only what changed between two events, also by others: SEQ..SEQ
    #[arg(long, value_name = "SEQ..SEQ", conflicts_with = "turn")]
    pub(crate) at: Option<String>,
    /// Show only file names and line counts
    #[arg(long)]
    pub(crate) stat: bool,
}

/// `undo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reverts the last change of files: of a step with commands as a whole, else of one call. It covers what commands did in \
the working directory if its files were recorded (`workspace.checkpoint`). A file that was changed \
since by someone else is a conflict (exit code 5). The agent is informed with its next input. Changes by \
sub-agents belong to the turn that started them.\n\nExamples:\n  agentctl undo 4f2a                 its last change\
\n  agentctl undo 4f2a --turn last     all changes of the last turn\n  agentctl undo 4f2a --change 0123ab --dry-run")]
pub(crate) struct UndoArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The change to revert, by its undo id or a prefix of it [default: the last one]
    #[arg(long, value_name = "UNDO_ID", conflicts_with = "turn")]
    pub(crate) change: Option<String>,
    /// All changes of this turn: its id, a beginning or end of it, or `last`
    #[arg(long, value_name = "TURN")]
    pub(crate) turn: Option<String>,
    /// Also revert files that someone else changed since; their changes are lost
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// An idempotency key: repeating the command with it undoes nothing more
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// `rewind`.
#[derive(Debug, Args)]
#[command(after_help = "\
The log keeps everything; the model no longer sees what came after SEQ. If SEQ is inside a step, the session \
rewinds to the last point before that step.\n\nExamples:\n  agentctl logs --seq 4f2a           shows the numbers (SEQ)\
\n  agentctl rewind 4f2a --at 31\n  agentctl rewind 4f2a --at 31 --files")]
pub(crate) struct RewindArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The number of the last event to keep
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: u64,
    /// Also revert the files that the session has changed since
    #[arg(long)]
    pub(crate) files: bool,
    /// With --files: also revert files that someone else changed since; their changes are lost
    #[arg(short, long, requires = "files")]
    pub(crate) force: bool,
    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// An idempotency key
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// `fork`.
#[derive(Debug, Args)]
#[command(
    after_help = "The new session works in the same directory; files are not copied. The copy ends \
between two turns, at the last such point up to SEQ.\n\nExamples:\n  agentctl fork 4f2a\
\n  agentctl logs --seq 4f2a           shows the numbers (SEQ)\n  agentctl fork 4f2a --at 31 --name \"another way\""
)]
pub(crate) struct ForkArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The number of the last event to copy [default: as late as possible]
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: Option<u64>,
    /// Name of the new session [default: the old session's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// An idempotency key: repeating the command with it creates no second session
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// `apply`.
#[derive(Debug, Args)]
#[command(after_help = "\
Applies what the session changed: all of it, or nothing (exit code 5). A file with other changes is merged if they are \
in other lines.\n\nExamples:\n  agentctl apply 4f2a --to ~/project --dry-run\n  agentctl apply 4f2a --to ~/project")]
pub(crate) struct ApplyArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The directory to change [default: the current directory]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) to: Option<std::path::PathBuf>,
    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `branch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Makes a commit in the repository that the session's directory came from, and a branch that names it. The commit follows HEAD or, for \
a session with a workspace of its own, the commit that it began at. Index, files and other branches stay as they are; no hook runs.\n\nExamples:\n  agentctl branch 4f2a agent/fix\n  git merge agent/fix")]
pub(crate) struct BranchArgs {
    /// A session id, an unambiguous beginning or end of one, a name, or @last
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) session: String,
    /// The name of the new branch
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The message of the commit [default: the session's name and the model's last words]
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Push the branch to this URL instead of making it in the local repository; workspace.push must list it
    #[arg(long, value_name = "URL")]
    pub(crate) push: Option<String>,
    /// Do not ask for confirmation
    #[arg(short, long, requires = "push")]
    pub(crate) yes: bool,
}
