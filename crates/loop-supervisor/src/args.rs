//! What the supervisor is started with.

use agentd_session_loop::Services;
use std::sync::Arc;

/// What the supervisor is started with.
#[derive(Debug, Clone)]
pub struct SupervisorArgs {
    /// What all loops share.
    pub services: Arc<Services>,
    /// How much at once.
    pub bounds: Bounds,
}

/// How much at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Sessions in memory.
    pub hot: usize,
    /// Sessions woken in a second.
    pub wake_per_second: u32,
    /// Commands that wait while their session is loaded, per session.
    pub waiting_per_session: usize,
    /// Commands that wait for room in memory.
    pub waiting_for_room: usize,
    /// Rows of a session list that are read at once.
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
