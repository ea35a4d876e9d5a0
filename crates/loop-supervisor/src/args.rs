//! Start arguments of the supervisor.

use agentd_session_loop::Services;
use std::sync::Arc;

/// Start arguments of the supervisor.
#[derive(Debug, Clone)]
pub struct SupervisorArgs {
    /// Services that all loops share.
    pub services: Arc<Services>,
    /// Limits on concurrent work.
    pub bounds: Bounds,
}

/// Limits on concurrent work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The most sessions in memory.
    pub hot: usize,
    /// The most sessions woken per second.
    pub wake_per_second: u32,
    /// The most commands per session that wait while it is loaded.
    pub waiting_per_session: usize,
    /// The most commands that wait for room in memory.
    pub waiting_for_room: usize,
    /// The number of session list rows that are read at a time.
    pub scan_rows: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            hot: 2_048,
            wake_per_second: 50,
            waiting_per_session: 64,
            waiting_for_room: 256,
            scan_rows: 1_000,
        }
    }
}
