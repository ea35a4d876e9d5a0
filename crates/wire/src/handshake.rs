//! The first frames: who speaks, in which version, within which limits.

use agentd_protocol::{Fault, PROTOCOL_VERSIONS, Principal};
use serde::{Deserialize, Serialize};

/// The lowest and highest version somebody speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    /// The lowest.
    pub min: u32,
    /// The highest.
    pub max: u32,
}

impl VersionRange {
    /// What this build speaks.
    pub const OURS: Self = Self {
        min: PROTOCOL_VERSIONS.0,
        max: PROTOCOL_VERSIONS.1,
    };
}

/// The first frame of a client.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The versions it speaks.
    pub protocol: VersionRange,
    /// The program and its version, for logs: `agentctl/0.1.0`.
    pub client: String,
    /// Proof of who it is, where the socket alone is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl std::fmt::Debug for Hello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hello")
            .field("protocol", &self.protocol)
            .field("client", &self.client)
            .field("token", &self.token.as_ref().map(|_| "..."))
            .finish()
    }
}

/// The daemon's answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version from now on.
    pub protocol: u32,
    /// The node's name.
    pub node: String,
    /// Who the daemon takes the client for.
    pub principal: Principal,
    /// What it may do: `read`, `steer`, `approve`, `admin`.
    pub scopes: Vec<String>,
    /// What it must keep to.
    pub limits: Limits,
}

/// The limits a client must keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of a frame.
    pub max_frame_bytes: u64,
    /// Bytes of an input.
    pub max_input_bytes: u64,
    /// Requests without an answer yet, on one connection.
    pub max_in_flight: u32,
}

/// The version that both speak.
///
/// # Errors
/// A `version` fault when there is none.
pub fn negotiate(offered: VersionRange) -> Result<u32, Fault> {
    let ours = VersionRange::OURS;
    let best = offered.max.min(ours.max);
    if best >= offered.min.max(ours.min) {
        return Ok(best);
    }
    let who = if offered.max < ours.min {
        "the client"
    } else {
        "agentd"
    };
    Err(Fault::version(
        "protocol_version",
        format!(
            "the client speaks protocol {} to {}, agentd speaks {} to {}",
            offered.min, offered.max, ours.min, ours.max
        ),
    )
    .hint(format!("upgrade {who}")))
}
