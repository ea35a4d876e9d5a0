//! Grants: rules that a person adds with an answer, and how far they reach.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a granted rule holds, and with which files. Without a reach, a rule holds in every directory and for every
/// content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reach {
    /// The project: a working directory, or the directory or URL that workspaces are made from.
    pub place: String,
    /// The files that the command runs, as it names them, each with the SHA-256 of its content in hexadecimal digits, or
    /// with the reason why it has none (`absent`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// The state of a file that does not exist.
pub const ABSENT: &str = "absent";

/// The beginning of the state of a file that is too large to be read: a hash of its version follows.
pub const VERSION: &str = "version ";

/// The name of the rule that asks again about a call whose files changed since it was allowed.
pub const CHANGED_RULE: &str = "gate:changed";

impl Reach {
    /// The files whose content is known, with its hash.
    pub fn contents(&self) -> impl Iterator<Item = (&String, &String)> {
        let hash = |state: &str| state.len() == 64 && state.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.files.iter().filter(move |(_, state)| hash(state))
    }

    /// The files outside of the project, and very large ones: they count by path, size and times.
    pub fn versions(&self) -> impl Iterator<Item = &String> {
        let version = |state: &str| state.starts_with('/') || state.starts_with(VERSION);
        let found = self.files.iter().filter(move |(_, state)| version(state));
        found.map(|(name, _)| name)
    }

    /// Where it holds, in one line for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut names: Vec<&str> = self.contents().map(|(name, _)| name.as_str()).collect();
        names.extend(self.versions().map(String::as_str));
        match names.as_slice() {
            [] => format!("in {}", self.place),
            names => format!("in {}, while unchanged: {}", self.place, names.join(", ")),
        }
    }
}

/// A rule that a person granted, with its reach.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(from = "Written", into = "Written")]
pub struct Grant {
    /// The rule: `Bash(cargo test)`, `deny Bash(rm x)`.
    pub rule: String,
    /// How far it reaches; absent: everywhere.
    pub reach: Option<Reach>,
}

impl Grant {
    /// A rule that holds everywhere.
    #[must_use]
    pub fn everywhere(rule: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            reach: None,
        }
    }

    /// The same rule as text in another form, with the same reach.
    #[must_use]
    pub fn written(&self, rule: String) -> Self {
        Self {
            rule,
            reach: self.reach.clone(),
        }
    }
}

/// How a grant is written: its text alone, as all grants once were, or with its reach.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Everywhere(String),
    Within { rule: String, reach: Reach },
}

impl From<Written> for Grant {
    fn from(written: Written) -> Self {
        match written {
            Written::Everywhere(rule) => Self { rule, reach: None },
            Written::Within { rule, reach } => Self {
                rule,
                reach: Some(reach),
            },
        }
    }
}

impl From<Grant> for Written {
    fn from(Grant { rule, reach }: Grant) -> Self {
        match reach {
            None => Self::Everywhere(rule),
            Some(reach) => Self::Within { rule, reach },
        }
    }
}

/// The directory of a session that works for another one in its workspace, and the project that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharedPlace {
    /// The working directory.
    pub dir: String,
    /// The directory or URL that the workspace was made from.
    pub place: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_of_an_earlier_version_is_a_text_and_holds_everywhere() {
        let old: Grant = serde_json::from_str(r#""Bash(sh x)""#).unwrap();
        assert_eq!(old, Grant::everywhere("Bash(sh x)"));
        assert_eq!(serde_json::to_string(&old).unwrap(), r#""Bash(sh x)""#);
        let bound = Grant {
            rule: "Bash(sh x)".into(),
            reach: Some(Reach {
                place: "/a".into(),
                files: [("x".to_owned(), "00".to_owned())].into(),
            }),
        };
        let text = serde_json::to_string(&bound).unwrap();
        assert_eq!(
            text,
            r#"{"rule":"Bash(sh x)","reach":{"place":"/a","files":{"x":"00"}}}"#
        );
        assert_eq!(serde_json::from_str::<Grant>(&text).unwrap(), bound);
        assert!(
            serde_json::from_str::<Grant>(r#"{"rule":"Bash(sh x)"}"#).is_err(),
            "no reach is not a wide one"
        );
    }
}
