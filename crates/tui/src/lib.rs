//! The full-screen views of a terminal: one session and the fleet. `agentctl` owns the terminal, the connection and the
//! clock; this crate has none of them, so every view can be tested without a terminal.
//!
//! Pure. A view folds events and deltas into a model; keys become actions; drawing reads the model and changes nothing.
//! Text of a session passes `agentd_text` before it is laid out. Invariants: I6 (the model keeps a window of the log and
//! cuts long texts) and I7 (no key answers a question that was not shown to its end, or that it was not meant for).
//!
//! Flow: event, delta, key -> view -> action for the caller; view -> frame.

mod action;
mod composer;
mod entry;
mod facts;
mod family;
mod fleet;
mod fleet_action;
mod fleet_draw;
mod fleet_keys;
mod fleet_rate;
mod fleet_table;
mod labels;
mod layout;
mod live;
mod log;
mod markdown;
mod mouse;
mod panel;
mod queue;
mod scroll;
mod session;
mod session_draw;
mod session_keys;
mod session_moves;
mod syntax;
mod theme;
mod wrap;

pub use action::{Action, Setup};
pub use composer::Proposal;
pub use family::Branch;
pub use fleet::{FleetView, Wanted};
pub use fleet_action::{FleetAction, Snapshot};
pub use fleet_draw::printed;
pub use session::SessionView;
pub use theme::{Depth, Ground, Theme};

#[cfg(test)]
mod tests;
