//! The gate's rules: the real ones, as shipped with the program.

use crate::world::World;
use agentd_permission_gate::configured_rules;
use agentd_policy::{Policy, PolicyError, Rule, Source};
use agentd_protocol::Grant;
use agentd_settings::PermissionConfig;

/// The rules in force.
#[derive(Debug, Clone)]
pub(crate) struct Rules(Policy);

impl Rules {
    pub(crate) fn new() -> Result<Self, String> {
        let rules = configured_rules(&PermissionConfig::default()).map_err(|error| error.to_string())?;
        Ok(Self(Policy::new(Some("/home/ana")).with(rules)))
    }

    /// The rules plus a session's grants.
    pub(crate) fn with(&self, grants: &[Grant]) -> Result<Policy, PolicyError> {
        let rules = grants.iter().map(|rule| Rule::parse(&rule.rule, Source::Grant));
        Ok(self.0.with(rules.collect::<Result<_, _>>()?))
    }
}

impl World {
    /// Adds a rule that a person granted permanently.
    pub(crate) fn add_rule(&mut self, rule: &str) {
        if let Ok(rule) = Rule::parse(rule, Source::Always) {
            self.rules = Rules(self.rules.0.with(vec![rule]));
        }
    }
}
