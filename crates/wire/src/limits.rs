//! What a frame may cost its reader.

/// Limits of one direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    /// Bytes of a frame's body.
    pub max_frame_bytes: usize,
    /// Maps and arrays inside each other.
    pub max_depth: usize,
    /// Values (map keys included) in one frame.
    pub max_items: usize,
}

impl FrameLimits {
    /// What a daemon takes from its clients.
    #[must_use]
    pub const fn of_requests(max_frame_bytes: usize) -> Self {
        Self {
            max_frame_bytes,
            max_depth: 128,
            max_items: 65_536,
        }
    }

    /// What a client takes from its daemon, whose lists may be long.
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
