//! `node.list` and `node.place`.

use crate::Timestamp;
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
