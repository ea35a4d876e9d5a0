//! Where commands and files are kept in: a resident process warden per session, an environment by allow-list, captured
//! output with bounds, and file access beneath one directory.
//!
//! Invariants: I5 (a warden is the parent or the subreaper of all that it starts, and kills every descendant when its
//! socket to the daemon closes, also after kill -9 of the daemon), I8 (commands see an allow-list of the environment and
//! no descriptors but 0, 1 and 2), I6 (output is always drained and never held whole in memory), I7 (what cannot be
//! looked at is refused: an unknown peer counts as a descendant of a tool, a level of the sandbox that does not work here is an
//! error and never replaced by a lower one, and a warden that cannot build its walls runs nothing).
//!
//! Flow: `WardenSlot::get` -> `Warden::run` -> (socket, descriptors) -> `warden_main` -> `Running::collect`.

mod attempt;
mod beneath;
mod beneath_path;
mod beneath_write;
mod bounds;
mod bubble;
mod capture;
mod collect;
mod confinement;
mod controlling;
mod entry;
mod environment;
mod error;
mod family;
mod forker;
mod forwarder;
mod frame;
mod ground;
mod keeper;
mod landlocked;
mod launch;
mod leaf;
mod level;
mod line;
mod network;
mod new_files;
mod nursery;
mod passing;
mod piped;
mod privileges;
mod probe;
mod processes;
mod repository;
mod resident;
mod running;
mod sandboxing;
mod slot;
mod spawner;
mod spill;
mod syscalls;
mod talk;
mod terminal;
mod warden;
mod watch;

pub use beneath::{Beneath, Entry, EntryKind, OpenFile, Version};
pub use bounds::{Bound, Bounds, Exceeded, half_of_the_machine};
pub use capture::{Capture, CaptureLimits, Fresh};
pub use collect::{CollectSpec, Collected};
pub use confinement::{Confinement, readable};
pub use environment::Environment;
pub use error::SandboxError;
pub use leaf::{KernelLimits, kernel_limits};
pub use level::{Finding, Findings, Refusal, Wanted, choose, conceal};
pub use network::{Gate, Network};
pub use piped::Piped;
pub use probe::{ProbeSpec, note_choice, noted_choice, probe, recorded};
pub use processes::descends_from;
pub use resident::{WARDEN_ARG, warden_main};
pub use running::{Exit, Heard, Running};
pub use sandboxing::Sandboxing;
pub use slot::{WardenSlot, WardenSpec};
pub use spill::SpillFile;
pub use terminal::{AtTerminal, Keyboard, TerminalSize};
pub use warden::{CommandSpec, Warden};
