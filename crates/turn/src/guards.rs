//! Guards against going in circles.

use serde::{Deserialize, Serialize};

/// What the guards count in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Guards {
    /// Nudges since the last tool call.
    pub nudges: u32,
    /// Steps in a row in which every call failed.
    pub failing_steps: u32,
    /// The fingerprint of the last call's name and arguments.
    pub last_call: u64,
    /// How often in a row it was made.
    pub repeats: u32,
    /// How often it had been made when the model was told.
    pub told_at: Option<u32>,
}
