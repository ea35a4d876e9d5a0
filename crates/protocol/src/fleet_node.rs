//! `node.list`, `node.place`, keys of nodes, and `session.resume`, which can move a session.

use crate::{Labels, Timestamp};
use serde::{Deserialize, Serialize};

/// Which sessions a node may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Placing {
    /// It gets new sessions, and takes over those of nodes that are gone.
    #[default]
    Open,
    /// It keeps its sessions, and gets no others.
    Cordoned,
    /// It gives up its sessions at their next boundary, and stops.
    Draining,
}

impl Placing {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Cordoned => "cordoned",
            Self::Draining => "draining",
        }
    }

    /// Parses a name. An unknown one, of a newer version, takes over nothing.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name {
            "open" => Self::Open,
            "draining" => Self::Draining,
            _ => Self::Cordoned,
        }
    }
}

/// A node of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetNode {
    /// Its name.
    pub name: String,
    /// Whether it gave a sign of life in time.
    pub alive: bool,
    /// Which sessions it may have.
    pub placing: Placing,
    /// Its sessions that are not closed.
    pub sessions: u64,
    /// The URL at which other nodes reach it; empty: they cannot.
    pub address: String,
    /// The version of its program.
    pub version: String,
    /// When it joined.
    pub joined_at: Timestamp,
    /// What sessions may require of it.
    #[serde(default)]
    pub labels: Labels,
    /// How much it has to do: its sessions in memory, its tool calls and the memory of its machine, each in thousandths of the
    /// limit, added up. It is up to a second old.
    #[serde(default)]
    pub load: u32,
}

/// Parameters of `node.place`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PlaceParams {
    /// The node's name.
    pub node: String,
    /// Which sessions it may have from now on.
    pub placing: Placing,
}

/// Parameters of `node.remove_key` and `node.admit_key`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NodeKeyParams {
    /// The node's name.
    pub node: String,
}

/// The new key of a node: the answer of `node.rotate_key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeKeyRow {
    /// The node's name.
    pub node: String,
    /// Its public key, as hexadecimal digits.
    pub key: String,
}

/// Parameters of `session.resume`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ResumeParams {
    /// The session.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The reason.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub reason: Option<String>,
    /// Goes on in `workdir` even if it is a protected place, such as `~/.ssh`. Refused to tokens.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub force: bool,
    /// The session works in this directory of the node that gets the request from now on.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub workdir: Option<String>,
}
