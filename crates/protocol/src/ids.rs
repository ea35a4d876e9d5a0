//! Ids: one newtype per kind of thing. All are UUIDv7, made from a [`Stamp`](crate::Stamp).

use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The text is not an id: an id has 32 hex digits, with or without dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseIdError(String);

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid id {:?}: expected a UUID", self.0)
    }
}

impl std::error::Error for ParseIdError {}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(value_type = String, format = Uuid))]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The all-zero id.
            pub const NIL: Self = Self(Uuid::nil());

            /// A version 7 id from a time (milliseconds since the epoch) and 10 random bytes.
            #[must_use]
            pub fn from_parts(at_ms: u64, random: [u8; 10]) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(at_ms, &random).into_uuid())
            }

            /// The last 12 hex digits, which people see, since the first ones are time.
            #[must_use]
            pub fn short(&self) -> String {
                let full = self.0.simple().to_string();
                full.get(20..).unwrap_or_default().to_owned()
            }

            /// The 16 bytes of the id.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id with these 16 bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self).map_err(|_| ParseIdError(text.chars().take(64).collect()))
            }
        }
    };
}

id!(
    /// A session: one conversation with one agent. [`SessionId::NIL`] names the fleet-wide stream (always-rules).
    SessionId
);
impl SessionId {
    /// The time at which the id was made. A log that begins with a copy of another one has events before it.
    #[must_use]
    pub const fn made_at(&self) -> Timestamp {
        let [a, b, c, d, e, f, ..] = *self.as_bytes();
        Timestamp(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }
}

id!(
    /// A turn; also the trace id of its logs and traces.
    TurnId
);
id!(
    /// One accepted input.
    InputId
);
id!(
    /// One logical model call; its attempts share it.
    CallId
);
id!(
    /// One tool call. The id is ours, never the provider's: providers reuse their ids.
    ToolCallId
);
id!(
    /// One approval: a question to a person.
    ApprovalId
);
id!(
    /// One append to the store; makes a lost acknowledgement harmless.
    AppendId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_what_they_print_and_show_their_random_end() {
        let id = SessionId::from_parts(1_763_629_200_123, [0xab; 10]);
        assert_eq!(id.to_string().parse::<SessionId>(), Ok(id));
        assert_eq!(id.short(), "abababababab");
        assert!(id.to_string().ends_with(&id.short()));
    }

    #[test]
    fn ids_of_a_later_moment_sort_later() {
        assert!(TurnId::from_parts(1, [0xff; 10]) < TurnId::from_parts(2, [0; 10]));
    }

    #[test]
    fn an_id_knows_when_it_was_made() {
        let id = SessionId::from_parts(1_763_629_200_123, [0xff; 10]);
        assert_eq!(id.made_at(), Timestamp(1_763_629_200_123));
    }

    #[test]
    fn a_bad_id_says_what_it_got() {
        let error = "nope".parse::<SessionId>().unwrap_err();
        assert_eq!(error.to_string(), "invalid id \"nope\": expected a UUID");
    }
}
