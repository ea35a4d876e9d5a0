//! Time and entropy as values, so that pure code stays pure.

use crate::ids::{AppendId, ApprovalId, CallId, InputId, SessionId, ToolCallId, TurnId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// A point in time: milliseconds since the Unix epoch. RFC 3339 UTC with milliseconds in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(value_type = String, format = DateTime))]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Milliseconds from `earlier` to this time; zero when `earlier` is later.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time `ms` milliseconds later.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

/// The last time that RFC 3339 with four-digit years can express: 9999-12-31T23:59:59.999Z.
const MAX_MS: u64 = 253_402_300_799_999;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + Duration::from_millis(self.0.min(MAX_MS));
        write!(f, "{}", humantime::format_rfc3339_millis(time))
    }
}

impl std::str::FromStr for Timestamp {
    type Err = humantime::TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = humantime::parse_rfc3339(text)?;
        let ms = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Ok(Self(u64::try_from(ms).unwrap_or(MAX_MS)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// The time of a decision and the entropy for the ids it creates. Each decision uses its own stamp.
#[derive(Debug, Clone)]
pub struct Stamp {
    /// When the decision is made.
    pub at: Timestamp,
    state: u64,
}

impl Stamp {
    /// A stamp with this time and 64 random bits.
    #[must_use]
    pub const fn new(at: Timestamp, entropy: u64) -> Self {
        Self { at, state: entropy }
    }

    /// The next 64 pseudo-random bits (splitmix64, Steele et al. 2014). Not for secrets.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn random(&mut self) -> [u8; 10] {
        let [a, b, c, d, e, f, g, h] = self.next_u64().to_le_bytes();
        let [i, j, ..] = self.next_u64().to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j]
    }
}

macro_rules! makers {
    ($($(#[$doc:meta])* $name:ident -> $id:ident),* $(,)?) => {
        impl Stamp {
            $($(#[$doc])* pub fn $name(&mut self) -> $id { let random = self.random(); $id::from_parts(self.at.0, random) })*
        }
    };
}

makers! {
    /// A new session id.
    session -> SessionId,
    /// A new turn id.
    turn -> TurnId,
    /// A new input id.
    input -> InputId,
    /// A new model call id.
    call -> CallId,
    /// A new tool call id.
    tool_call -> ToolCallId,
    /// A new approval id.
    approval -> ApprovalId,
    /// A new append id.
    append -> AppendId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_rfc3339_with_milliseconds() {
        let at = Timestamp(1_763_629_200_123);
        assert_eq!(
            serde_json::to_string(&at).unwrap(),
            "\"2025-11-20T09:00:00.123Z\""
        );
        assert_eq!(
            serde_json::from_str::<Timestamp>("\"2025-11-20T09:00:00.123Z\"").unwrap(),
            at
        );
        assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
    }

    #[test]
    fn one_stamp_never_makes_the_same_id_twice() {
        let mut stamp = Stamp::new(Timestamp(5), 7);
        let (a, b) = (stamp.session(), stamp.session());
        assert_ne!(a, b);
        assert_eq!(a, Stamp::new(Timestamp(5), 7).session());
    }
}
