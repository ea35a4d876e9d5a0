//! Permission rules in the form of the configuration.

use agentd_protocol::VerdictKind;
use serde::{Deserialize, Serialize};

/// One permission rule: `{ deny = "Bash(sudo:*)" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct RuleConfig {
    /// The verdict for the calls that it matches.
    pub kind: VerdictKind,
    /// The calls that it matches: `Bash(sudo:*)`.
    pub rule: String,
    /// Calls that show its meaning; agentd checks the rule against them when it loads.
    pub examples: RuleExamples,
}

/// Commands, paths or addresses that show what a rule means.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleExamples {
    /// The rule must match these.
    #[serde(rename = "match")]
    pub matches: Vec<String>,
    /// The rule must not match these.
    pub no_match: Vec<String>,
}

/// The rule as written in a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deny: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    examples: Option<RuleExamples>,
}

impl TryFrom<Written> for RuleConfig {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let (kind, rule) = match (written.allow, written.ask, written.deny) {
            (Some(rule), None, None) => (VerdictKind::Allow, rule),
            (None, Some(rule), None) => (VerdictKind::Ask, rule),
            (None, None, Some(rule)) => (VerdictKind::Deny, rule),
            _ => return Err("a rule must have exactly one of `allow`, `ask` and `deny`"),
        };
        Ok(Self {
            kind,
            rule,
            examples: written.examples.unwrap_or_default(),
        })
    }
}

impl From<RuleConfig> for Written {
    fn from(config: RuleConfig) -> Self {
        let of = |kind| (config.kind == kind).then(|| config.rule.clone());
        Self {
            allow: of(VerdictKind::Allow),
            ask: of(VerdictKind::Ask),
            deny: of(VerdictKind::Deny),
            examples: (config.examples != RuleExamples::default()).then_some(config.examples),
        }
    }
}

impl RuleConfig {
    /// A rule without examples.
    #[must_use]
    pub fn new(kind: VerdictKind, rule: &str) -> Self {
        Self {
            kind,
            rule: rule.to_owned(),
            examples: RuleExamples::default(),
        }
    }

    /// The rule in the form of sessions and the log: `deny Bash(sudo:*)`.
    #[must_use]
    pub fn text(&self) -> String {
        let kind = match self.kind {
            VerdictKind::Allow => "allow",
            VerdictKind::Ask => "ask",
            VerdictKind::Deny => "deny",
        };
        format!("{kind} {}", self.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rule: &str) -> Result<RuleConfig, String> {
        let table: toml::Table = format!("rule = {rule}").parse().unwrap();
        let rule = table.get("rule").unwrap().clone();
        rule.try_into()
            .map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn a_rule_may_have_examples() {
        let rule = read(
            r#"{ allow = "Bash(cargo test:*)", examples = { match = ["cargo test -p x"], no_match = ["cargo test; rm x"] } }"#,
        );
        let examples = RuleExamples {
            matches: vec!["cargo test -p x".into()],
            no_match: vec!["cargo test; rm x".into()],
        };
        let expected = RuleConfig {
            examples,
            ..RuleConfig::new(VerdictKind::Allow, "Bash(cargo test:*)")
        };
        assert_eq!(rule, Ok(expected.clone()));
        let written = toml::Value::try_from(&expected).unwrap();
        assert_eq!(written.try_into(), Ok(expected));
    }

    #[test]
    fn a_rule_has_one_kind_and_no_other_keys() {
        for bad in [
            "{}",
            r#"{ allow = "Read", deny = "Read" }"#,
            r#"{ forbid = "Read" }"#,
            r#"{ deny = "Read", examples = { matches = [] } }"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
