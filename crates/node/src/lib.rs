//! Assembly: from settings to an actor tree to a running node. The only crate that knows all parts.
//!
//! Invariants: I6 (a failed singleton restarts alone, or with the actors that must fold again; too many restarts end
//! the process), I8 (logs are redacted).
//!
//! Flow: settings -> store, models, tools -> `Root` -> singletons -> control socket -> until a signal -> drain -> stop.

mod audit_log;
mod audit_writer;
mod child;
mod children;
mod core;
mod database;
mod error;
mod fleet;
mod fleet_log;
mod http;
mod indexing;
mod key_files;
mod loads;
mod log_follower;
mod logs;
mod lost;
mod migrate;
mod modes;
mod named_files;
mod node;
mod notify;
mod parsing;
mod paths;
mod peers;
mod probe;
mod relay;
mod reload;
mod reminder;
mod restore;
mod root;
mod rotated;
mod sandboxing;
mod service;
mod services;
mod shares;
mod signing;
mod start;
mod tool_servers;
mod trace_lines;
mod upkeep;
mod usage_counter;
mod view;
mod webhook_notifier;
mod workspaces;

pub use error::NodeError;
pub use logs::start_logging;
pub use migrate::{Migrate, Migrated, Progress, Task, migrate};
pub use named_files::check_files;
pub use node::{Ended, Node, NodeArgs};
pub use notify::notify_ready;
pub use paths::{Paths, Surroundings};
pub use restore::{Restored, restore};
pub use root::Health;
pub use start::check_rules;

#[cfg(test)]
mod tests;
