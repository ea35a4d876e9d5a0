//! Arguments of `workspace`.

use crate::complete::sessions;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

/// `workspace`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agentctl run --workspace worktree \"...\"   # it works on its own tree\
\n  agentctl workspace ls\n  agentctl workspace du            # disk space, and work that was not fetched\
\n  agentctl workspace prune --days 7        # of sessions that are closed"
)]
pub(crate) struct WorkspaceArgs {
    #[command(subcommand)]
    pub(crate) verb: WorkspaceVerb,
}

/// The operation on workspaces.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceVerb {
    /// List the workspaces on this node
    #[command(visible_alias = "list")]
    Ls,
    /// Measure their disk space, and show work that was not fetched; reads every file
    Du,
    /// Remove the workspaces of closed sessions, except for work that was not fetched
    Prune(WorkspacePruneArgs),
}

/// `workspace prune`.
#[derive(Debug, Args)]
pub(crate) struct WorkspacePruneArgs {
    /// Only the workspaces of these sessions
    #[arg(value_name = "ID", add = ArgValueCompleter::new(sessions))]
    pub(crate) sessions: Vec<String>,
    /// Only if the session last changed at least this many days ago
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,
    /// Also remove work that was not fetched; it is lost
    #[arg(long)]
    pub(crate) force: bool,
    /// Only show what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}
