//! Limits on what a frame may cost its reader.

/// Limits of one direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    /// The maximum size of a body in bytes.
    pub max_frame_bytes: usize,
    /// The maximum nesting depth of maps and arrays.
    pub max_depth: usize,
    /// The maximum number of values (map keys included) in one frame.
    pub max_items: usize,
}

impl FrameLimits {
    /// The limits for frames from clients to the daemon.
    #[must_use]
    pub const fn of_requests(max_frame_bytes: usize) -> Self {
        Self {
            max_frame_bytes,
            max_depth: 128,
            max_items: 65_536,
        }
    }

    /// The limits for frames from the daemon to clients, whose lists may be long.
    #[must_use]
    pub const fn of_answers() -> Self {
        Self {
            max_frame_bytes: 64 << 20,
            max_depth: 144,
            max_items: 4 << 20,
        }
    }
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self::of_requests(8 << 20)
    }
}
