//! The scope of an approval: exactly this call, here, with these files.

use crate::grant::Reach;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The subject of a question to a person. It is recorded with the question and computed again before the call runs; if
/// the two differ, the answer is void. Hashes are SHA-256 in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Binding {
    /// The hash of the tool's name and its arguments.
    pub input: String,
    /// The real path of the working directory.
    pub cwd: String,
    /// The hash of the names and values of a command's environment; absent if the call runs no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The hash of the tool's description and schema as its tool server gives them; absent for other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The files that the call concerns, each with its hash, or with the reason why it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// The directories that the call runs code from, each with a hash over the versions of its files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trees: BTreeMap<String, String>,
}

/// Context for the person who decides on a call: our own text, separate from that of others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct About {
    /// The risks of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// The rule that requires the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The rule's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The directory in which the call runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The model's own description of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The call runs code from these places: a change there voids the approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<String>,
    /// How far an `allow` with scope `session` or `always` reaches; absent in logs of earlier versions, where it reached
    /// everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
    /// The hash of the whole binding: questions with equal hashes are about the same call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likeness: Option<String>,
}

impl About {
    /// Whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Binding {
    /// The differences, for people; empty if there are none.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut differs = |different: bool, what: &str| {
            if different {
                changes.push(what.to_owned());
            }
        };
        differs(self.input != now.input, "the arguments of the call");
        differs(self.cwd != now.cwd, "the working directory");
        differs(self.environment != now.environment, "the environment of commands");
        differs(self.tool != now.tool, "the description or schema of the tool");
        let names = self.files.keys().chain(now.files.keys());
        let mut names: Vec<&String> = names
            .filter(|name| self.files.get(*name) != now.files.get(*name))
            .collect();
        names.sort_unstable();
        names.dedup();
        changes.extend(names.into_iter().map(|name| format!("the file {name}")));
        for (name, before) in &self.trees {
            if now.trees.get(name).is_none_or(|now| now != before) {
                changes.push(format!("a file in {name}, a directory that it runs code from"));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_named_once() {
        let files = |files: &[(&str, &str)]| {
            files
                .iter()
                .map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned()))
                .collect()
        };
        let asked = Binding {
            input: "a".into(),
            cwd: "/w".into(),
            environment: Some("e".into()),
            tool: Some("t".into()),
            files: files(&[("x.sh", "1"), ("y", "2"), ("gone", "3")]),
            trees: files(&[("/w", "5"), ("/same", "6")]),
        };
        assert_eq!(asked.changes(&asked.clone()), Vec::<String>::new());
        let now = Binding {
            input: "b".into(),
            cwd: "/v".into(),
            environment: None,
            tool: Some("u".into()),
            files: files(&[("x.sh", "9"), ("y", "2"), ("new", "4")]),
            trees: files(&[("/w", "7"), ("/same", "6")]),
        };
        assert_eq!(
            asked.changes(&now),
            [
                "the arguments of the call",
                "the working directory",
                "the environment of commands",
                "the description or schema of the tool",
                "the file gone",
                "the file new",
                "the file x.sh",
                "a file in /w, a directory that it runs code from",
            ]
        );
    }
}
