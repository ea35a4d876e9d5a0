//! Protected paths: files that act without an explicit build or run, such as git hooks, editor tasks or instruction files.
//!
//! This is the only definition. The permission gate asks before a tool writes such a path, in every mode; the sandbox
//! refuses it to commands. Paths are relative to the working directory, and the caller resolves links first: a name tells
//! nothing about a link's target. [`Places`] are protected by their absolute path, whatever the working directory is.
//!
//! It also says which settings files in the home directory hold credentials, so that commands must not read them.
//!
//! Invariant: I7. Any path that is not plainly harmless is protected: in a git directory only names on a short list are
//! data, and a path with `..` in it is protected.

mod config_change;
mod denied;
mod exception;
mod git;
mod git_config;
mod git_steps;
mod named;
mod obeyed;
mod paths;
mod places;
mod settings_files;
#[cfg(test)]
mod tests;

pub use config_change::{ConfigChange, check_config_change, check_packed_refs, may_remove_config};
pub use denied::DeniedWrites;
pub use exception::{BadException, DEFAULT_EXCEPTIONS};
pub use git::{completes_repository, holds_git_directories, is_repository};
pub use git_config::work_tree;
pub use git_steps::{check_options, check_steps};
pub use named::{Named, named_by_git};
pub use paths::{Class, Guard, ProtectedPaths, Reason};
pub use places::{Place, Places};
pub use settings_files::{SETTINGS_FILES, holds_secret, is_secret_line, secret_settings};
