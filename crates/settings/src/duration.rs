//! Durations as users write them: `30m`, `0s`, `never`.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use std::time::Duration;

fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{text:?} is not a duration such as \"30s\" or \"5m\": {error}"))
}

/// Serde for a [`Duration`].
pub(crate) mod plain {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(*value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Serde for an optional [`Duration`], where `never` is `None`.
pub(crate) mod or_never {
    use super::*;

    #[expect(clippy::ref_option, reason = "serde's `with` gives a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => plain::serialize(value, serializer),
            None => serializer.serialize_str("never"),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "never" {
            return Ok(None);
        }
        parse(&text)
            .map(Some)
            .map_err(|error| D::Error::custom(format!("{error}, or \"never\"")))
    }
}
