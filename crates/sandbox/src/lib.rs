//! Confines commands and file access: a resident warden process per session, an environment by allow-list, captured output
//! with bounds, and file access beneath one directory.
//!
//! Invariants: I5 (a warden is the parent or the subreaper of everything that it starts, and kills every descendant when
//! its socket to the daemon closes, also after kill -9 of the daemon; processes that outlive their warden become children
//! of the daemon, which kills them), I8 (commands see an allow-list of the environment and no descriptors but 0, 1 and 2),
//! I6 (output is always drained and never held whole in memory), I7 (unreadable means refused: an unknown peer counts as a
//! descendant of a tool, a sandbox level that does not work here is an error and never replaced by a lower one, and a
//! warden that cannot build its sandbox runs nothing).
//!
//! Flow: `WardenSlot::get` -> `Warden::run` -> (socket, descriptors) -> `warden_main` -> `Running::collect`.
//!
//! ```
//! use agentd_sandbox::Beneath;
//! use std::path::Path;
//!
//! let dir = tempfile::tempdir()?;
//! std::os::unix::fs::symlink("/etc/hostname", dir.path().join("link"))?;
//! std::fs::write(dir.path().join("file"), "text")?;
//!
//! let beneath = Beneath::open(dir.path())?;
//! assert_eq!(beneath.read(Path::new("file"), 100)?.0, b"text");
//! assert!(beneath.read(Path::new("link"), 100).is_err(), "a link must not lead outside");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod annex;
mod attempt;
mod beneath;
mod beneath_names;
mod beneath_path;
mod beneath_write;
mod bounds;
mod broker;
mod bubble;
mod capture;
mod cgroup;
mod collect;
mod conceal;
mod confinement;
mod controlling;
mod deadline;
mod descent;
mod entry;
mod environment;
mod error;
mod family;
mod fork_server;
mod forker;
mod forwarder;
mod frame;
mod git_refusals;
mod git_settings;
mod growth;
mod hidden;
mod history;
mod keeper;
mod landlocked;
mod lapse;
mod launch;
mod line;
mod linked;
mod machine;
mod mark;
mod messages;
mod mounts;
mod namespaces;
mod network;
mod passing;
mod permit;
mod piped;
mod privileges;
mod probe;
mod processes;
mod recheck;
mod repository;
mod resident;
mod root;
mod running;
mod sandboxing;
mod shared_memory;
mod slot;
mod spawner;
mod spill;
mod strays;
mod surroundings;
mod syscalls;
mod terminal;
mod tree;
mod unattended;
mod warden;
mod watch;
mod workdir;

pub use agentd_protocol::sandbox::{Builder, Finding, Findings, KernelLimits, Refusal};
pub use annex::Annex;
pub use beneath::{Beneath, Entry, EntryKind, OpenFile, Version};
pub use beneath_names::Named;
pub use bounds::{Bound, Bounds, Exceeded};
pub use capture::{Capture, CaptureLimits, Fresh};
pub use cgroup::kernel_limits;
pub use collect::{CollectSpec, Collected};
pub use conceal::conceal;
pub use confinement::{Confinement, readable};
pub use deadline::CommandDeadline;
pub use environment::Environment;
pub use error::SandboxError;
pub use git_refusals::{GitRefusal, GitRefusals};
pub use hidden::Hidden;
pub use history::DeniedHistory;
pub use machine::half_of_the_machine;
pub use mark::{end_orphans, mark_of_daemon};
pub use network::{Gate, Network};
pub use permit::{Judged, WritePermit};
pub use piped::Piped;
pub use probe::{ProbeSpec, note_choice, probe, recorded};
pub use processes::descends_from;
pub use resident::{WARDEN_ARG, warden_main};
pub use running::{Exit, Heard, Running};
pub use sandboxing::Sandboxing;
pub use slot::{WardenSlot, WardenSpec};
pub use spill::SpillFile;
pub use strays::Strays;
pub use terminal::{AtTerminal, Keyboard, TerminalSize};
pub use warden::{CommandSpec, Warden};
