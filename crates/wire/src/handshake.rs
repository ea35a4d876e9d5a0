//! The first frames: the identity of the client, the protocol version, the limits.

use agentd_protocol::{Fault, PROTOCOL_VERSIONS, Principal};
use serde::{Deserialize, Serialize};

/// The lowest and highest version that one side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    /// The lowest.
    pub min: u32,
    /// The highest.
    pub max: u32,
}

impl VersionRange {
    /// The versions that this build speaks.
    pub const OURS: Self = Self {
        min: PROTOCOL_VERSIONS.0,
        max: PROTOCOL_VERSIONS.1,
    };
}

/// The first frame of a client.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The versions that the client speaks.
    pub protocol: VersionRange,
    /// The program and its version, for logs: `agentctl/0.1.0`.
    pub client: String,
    /// Proof of identity, if the socket alone is not enough.
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
    /// The negotiated version.
    pub protocol: u32,
    /// The node's name.
    pub node: String,
    /// The principal that the daemon assigns to the client.
    pub principal: Principal,
    /// The client's permissions: `read`, `steer`, `approve`, `admin`.
    pub scopes: Vec<String>,
    /// The limits that the client must respect.
    pub limits: Limits,
}

/// The limits that a client must respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The maximum size of a frame in bytes.
    pub max_frame_bytes: u64,
    /// The maximum size of an input in bytes.
    pub max_input_bytes: u64,
    /// The maximum number of unanswered requests on one connection.
    pub max_in_flight: u32,
}

/// The highest version that both sides speak.
///
/// # Errors
/// A `version` fault if there is none.
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
            "the client supports protocol versions {} to {}, agentd supports {} to {}",
            offered.min, offered.max, ours.min, ours.max
        ),
    )
    .hint(format!("upgrade {who}")))
}
