//! Workspaces: the directories that sessions work in, when they do not share one. Each is a git worktree, a clone that
//! borrows objects, or a copy, below `workspaces/` in the data directory.
//!
//! Flow: [`plan`] decides from the request, the settings and the kind of directory, without I/O; [`Workspaces::make`]
//! carries a plan out. A record is written before anything else and marked as made at the end, so a crash between two
//! steps leaves only what [`Workspaces::clean_up`] removes at the next start.
//!
//! Invariants: agentd runs git only with a configuration of its own, so no hook, filter or monitor that a repository
//! configures runs outside of the sandbox; a workspace with work that was not fetched is removed only by force.

mod base;
mod commits;
mod copy;
mod disk;
mod error;
mod give;
mod inspect;
mod make;
mod mirror;
mod plan;
mod record;
mod remove;
mod skeleton;
mod state;
mod submodules;
mod url;
mod workspaces;

pub use agentd_git::GitEnvironment;
pub use disk::Usage;
pub use error::WorkspaceError;
pub use inspect::Repository;
pub use make::{Limits, Made};
pub use plan::{Asked, Plan, Source, plan};
pub use record::{Record, Stage};
pub use remove::Removed;
pub use state::{Present, State};
pub use url::{check_url, protocol};
pub use workspaces::{Listing, WORKSPACES, Workspaces};
