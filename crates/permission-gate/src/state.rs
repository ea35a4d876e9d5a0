//! The rules in force, and judging by them. Pure.

use crate::error::GateError;
use agentd_actor_kit::JudgeRequest;
use agentd_policy::{Judgement, Policy, PolicyError, Request, Rule, Source, wholly_denied};
use agentd_settings::{PermissionConfig, RuleConfig};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most rules that people may have made for good.
const MAX_ALWAYS: usize = 10_000;

/// The function that judges; tests put others in its place.
pub(crate) type JudgeFn = fn(&Policy, &Request<'_>) -> Judgement;

/// The rules of the configuration: agentd's own and the operator's.
///
/// # Errors
/// A rule cannot be read; the error says where and what a rule looks like.
pub fn configured_rules(config: &PermissionConfig) -> Result<Vec<Rule>, PolicyError> {
    let builtin = config.builtin.iter().map(|rule| (rule, Source::Builtin));
    let operator = config.rules.iter().map(|rule| (rule, Source::Operator));
    builtin
        .chain(operator)
        .map(|(rule, source)| Rule::parse(&RuleConfig::text(rule), source))
        .collect()
}

/// What is wrong with a configured rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// The key: `permission.rules[3]`.
    pub key: String,
    /// What.
    pub what: String,
}

/// Every configured rule that cannot be read or contradicts its examples.
#[must_use]
pub fn check_rules(config: &PermissionConfig, home: Option<&str>) -> Vec<RuleProblem> {
    let builtin = config.builtin.iter().enumerate();
    let operator = config.rules.iter().enumerate();
    builtin
        .map(|(at, rule)| (format!("permission.builtin[{at}]"), rule))
        .chain(operator.map(|(at, rule)| (format!("permission.rules[{at}]"), rule)))
        .filter_map(|(key, config)| {
            let what = match Rule::parse(&config.text(), Source::Operator) {
                Ok(rule) => {
                    let examples = &config.examples;
                    let error = rule.prove(home, &examples.matches, &examples.no_match).err()?;
                    format!("{}: {error}", config.text())
                }
                Err(error) => error.to_string(),
            };
            Some(RuleProblem { key, what })
        })
        .collect()
}

/// The gate's rules.
#[derive(Debug)]
pub(crate) struct Rules {
    configured: Policy,
    always: BTreeMap<String, Rule>,
    /// The two together.
    policy: Policy,
    judge: JudgeFn,
}

impl Rules {
    pub(crate) fn new(
        config: &PermissionConfig,
        home: Option<&str>,
        judge: JudgeFn,
    ) -> Result<Self, GateError> {
        let configured = Policy::new(home).with(configured_rules(config)?);
        Ok(Self {
            policy: configured.clone(),
            configured,
            always: BTreeMap::new(),
            judge,
        })
    }

    /// A rule as the stream writes it, checked.
    pub(crate) fn normal(text: &str) -> Result<String, GateError> {
        Ok(Rule::parse(text, Source::Always)?.line())
    }

    /// Whether a rule of the stream is in force.
    pub(crate) fn has(&self, line: &str) -> bool {
        self.always.contains_key(line)
    }

    /// Whether there is room for one more.
    pub(crate) fn room(&self) -> Result<(), GateError> {
        if self.always.len() < MAX_ALWAYS {
            Ok(())
        } else {
            Err(GateError::TooMany("always-rules"))
        }
    }

    /// What the stream says: rules come into force or go out of it.
    pub(crate) fn change(
        &mut self,
        changes: impl IntoIterator<Item = (String, bool)>,
    ) -> Result<(), GateError> {
        for (text, in_force) in changes {
            let rule = Rule::parse(&text, Source::Always)?;
            if in_force {
                self.always.insert(rule.line(), rule);
            } else {
                self.always.remove(&rule.line());
            }
        }
        self.policy = self.configured.with(self.always.values().cloned().collect());
        Ok(())
    }

    /// Judges a call. Whatever goes wrong is a denial.
    pub(crate) fn judge(&self, request: &JudgeRequest) -> Judgement {
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let policy = self.with_session(&request.rules, &request.grants)?;
            let request = Request {
                tool: &request.tool,
                subject: &request.subject,
                effect: request.effect,
                mode: request.mode,
                workdir: &request.workdir,
            };
            Ok::<_, PolicyError>((self.judge)(&policy, &request))
        }));
        match judged {
            Ok(Ok(judgement)) => judgement,
            Ok(Err(error)) => Judgement::denied(
                "gate:error",
                &format!("a rule of the session cannot be read: {error}"),
            ),
            Err(_) => Judgement::denied("gate:error", "judging this call failed"),
        }
    }

    /// The tools that no call of is allowed. Rules that cannot be read deny all.
    pub(crate) fn wholly_denied(&self, tools: Vec<String>, rules: &[String]) -> Vec<String> {
        match self.with_session(rules, &[]) {
            Ok(policy) => wholly_denied(&policy, &tools),
            Err(_) => tools,
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.policy.lines()
    }

    fn with_session(&self, rules: &[String], grants: &[String]) -> Result<Policy, PolicyError> {
        let rules = rules.iter().map(|rule| Rule::parse(rule, Source::Session));
        let grants = grants.iter().map(|rule| Rule::parse(rule, Source::Grant));
        Ok(self.policy.with(rules.chain(grants).collect::<Result<_, _>>()?))
    }
}
