//! The only error that crosses the socket.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The closed list of fault classes. Each has an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// The request itself is wrong.
    Invalid,
    /// The named object does not exist.
    NotFound,
    /// The client lacks the permission.
    Denied,
    /// It is too late, or another client was first.
    Conflict,
    /// Too much at once; try again later.
    Busy,
    /// A limit or budget is reached.
    Limit,
    /// The daemon, or something that it needs, is not available.
    Unavailable,
    /// The versions are incompatible.
    Version,
    /// The operation took too long.
    Timeout,
    /// The store failed.
    Storage,
    /// A bug.
    #[serde(other)]
    Internal,
}

impl FaultClass {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Invalid,
        Self::NotFound,
        Self::Denied,
        Self::Conflict,
        Self::Busy,
        Self::Limit,
        Self::Unavailable,
        Self::Version,
        Self::Timeout,
        Self::Storage,
        Self::Internal,
    ];

    /// The exit code of a command that ends with this fault.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Invalid => 2,
            Self::NotFound => 3,
            Self::Denied => 4,
            Self::Conflict => 5,
            Self::Busy => 7,
            Self::Limit => 9,
            Self::Unavailable => 69,
            Self::Version => 76,
            Self::Timeout => 124,
            Self::Storage | Self::Internal => 1,
        }
    }
}

/// What failed, why, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fault {
    /// The class, which determines the exit code.
    pub class: FaultClass,
    /// A stable code for programs: `unknown_session`, `approval_decided`, ….
    pub code: String,
    /// What failed, and on what object. Lower case, no full stop, no secret.
    pub message: String,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    #[must_use]
    pub fn new(class: FaultClass, code: &str, message: impl Into<String>) -> Self {
        Self {
            class,
            code: code.to_owned(),
            message: message.into(),
            hint: None,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident $class:ident),* $(,)?) => {
        impl Fault {
            $($(#[$doc])* #[must_use] pub fn $name(code: &str, message: impl Into<String>) -> Self { Self::new(FaultClass::$class, code, message) })*
        }
    };
}

constructors! {
    /// An `invalid` fault.
    invalid Invalid,
    /// A `not_found` fault.
    not_found NotFound,
    /// A `denied` fault.
    denied Denied,
    /// A `conflict` fault.
    conflict Conflict,
    /// A `busy` fault.
    busy Busy,
    /// A `limit` fault.
    limit Limit,
    /// An `unavailable` fault.
    unavailable Unavailable,
    /// A `version` fault.
    version Version,
    /// A `timeout` fault.
    timeout Timeout,
    /// A `storage` fault.
    storage Storage,
    /// An `internal` fault.
    internal Internal,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
