//! The rules in force, and judging by them. Performs no I/O except to read git's configuration.

use crate::error::GateError;
use agentd_actor_kit::JudgeRequest;
use agentd_file_work::{Failed, FileWork};
use agentd_policy::{
    Bound, JudgeFn, Judgement, Policy, PolicyError, Request, Rule, Source, Subject, judge_with,
    wholly_denied, written_paths,
};
use agentd_protected::{Named, Places, named_by_git};
use agentd_protocol::{Grant, VerdictKind};
use agentd_settings::{PermissionConfig, RuleConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time limit for reading git's configuration.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// The maximum number of permanent rules that people may have added.
const MAX_ALWAYS: usize = 10_000;

/// The configured rules: agentd's own and the operator's.
///
/// # Errors
/// A rule cannot be parsed; the error has the position and an example of a rule.
pub fn configured_rules(config: &PermissionConfig) -> Result<Vec<Rule>, PolicyError> {
    let builtin = config.builtin.iter().map(|rule| (rule, Source::Builtin));
    let operator = config.rules.iter().map(|rule| (rule, Source::Operator));
    builtin
        .chain(operator)
        .map(|(rule, source)| Rule::parse(&RuleConfig::text(rule), source))
        .collect()
}

/// An error in a configured rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// The key: `permission.rules[3]`.
    pub key: String,
    /// A description of the error.
    pub what: String,
}

/// All configured rules that cannot be parsed or that contradict their examples.
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

/// Parses a stored rule. An older version may have accepted a rule that this one refuses: such a rule no longer allows
/// anything, and where it asks or forbids, it does so for every call of its tool.
fn stored(text: &str) -> Result<Option<Rule>, PolicyError> {
    let error = match Rule::parse(text, Source::Always) {
        Ok(rule) => return Ok(Some(rule)),
        Err(error) => error,
    };
    tracing::warn!(rule = text, %error, "cannot read a stored rule");
    let head = text.split('(').next().unwrap_or_default();
    let (kind, tool) = match head.split_once(' ') {
        Some(("deny", tool)) => (VerdictKind::Deny, tool),
        Some(("ask", tool)) => (VerdictKind::Ask, tool),
        _ => return Ok(None),
    };
    Rule::new(kind, tool.trim(), Source::Always).map(Some)
}

/// The gate's rules.
#[derive(Debug)]
pub(crate) struct Rules {
    configured: Policy,
    always: BTreeMap<Grant, Rule>,
    /// Judges by both kinds of rules.
    judge: Judge,
}

/// A snapshot of the rules that can judge by them. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Judge {
    policy: Policy,
    judge: JudgeFn,
    /// Always-rules that were removed: sessions that still have them among their grants must not use them.
    revoked: Arc<BTreeSet<Grant>>,
    /// The always-rules that hold in one project, by its name.
    bound: Arc<BTreeMap<String, Vec<Bound>>>,
}

impl Rules {
    pub(crate) fn new(
        config: &PermissionConfig,
        home: Option<&str>,
        places: Places,
        judge: JudgeFn,
    ) -> Result<Self, GateError> {
        let configured = Policy::new(home)
            .with(configured_rules(config)?)
            .protecting(config.protected()?.with_places(places));
        let policy = configured.clone();
        Ok(Self {
            configured,
            always: BTreeMap::new(),
            judge: Judge {
                policy,
                judge,
                revoked: Arc::default(),
                bound: Arc::default(),
            },
        })
    }

    /// Replaces the configured rules; keeps those that people added.
    pub(crate) fn configure(&mut self, config: &PermissionConfig) -> Result<(), GateError> {
        let places = self.configured.protected().places().clone();
        self.configured = Policy::new(self.configured.home())
            .with(configured_rules(config)?)
            .protecting(config.protected()?.with_places(places));
        self.change([])
    }

    /// Checks a rule and normalizes it to its form in the stream.
    pub(crate) fn normal(grant: &Grant) -> Result<Grant, GateError> {
        Ok(grant.written(Rule::parse(&grant.rule, Source::Always)?.line()))
    }

    /// Whether a rule of the stream is in force.
    pub(crate) fn has(&self, grant: &Grant) -> bool {
        self.always.contains_key(grant)
    }

    /// Checks that there is room for another rule.
    pub(crate) fn room(&self) -> Result<(), GateError> {
        if self.always.len() < MAX_ALWAYS {
            Ok(())
        } else {
            Err(GateError::TooMany("always-rules; remove some first"))
        }
    }

    /// Applies changes from the stream: rules come into force or are removed.
    pub(crate) fn change(
        &mut self,
        changes: impl IntoIterator<Item = (Grant, bool)>,
    ) -> Result<(), GateError> {
        let revoked = Arc::make_mut(&mut self.judge.revoked);
        for (grant, in_force) in changes {
            let Some(rule) = stored(&grant.rule)? else {
                continue;
            };
            if in_force {
                revoked.remove(&grant);
                self.always.insert(grant, rule);
            } else {
                self.always.remove(&grant);
                revoked.insert(grant);
            }
        }
        let (everywhere, bound) = parted(self.always.iter().map(|(grant, rule)| (grant, rule.clone())));
        let mut places = BTreeMap::<String, Vec<Bound>>::new();
        for one in bound {
            places.entry(one.reach.place.clone()).or_default().push(one);
        }
        self.judge.policy = self.configured.with(everywhere);
        self.judge.bound = Arc::new(places);
        Ok(())
    }

    pub(crate) fn now(&self) -> Judge {
        self.judge.clone()
    }

    /// The tools of which no call is allowed. If the session's rules cannot be parsed, all of them.
    pub(crate) fn wholly_denied(&self, tools: Vec<String>, rules: &[String]) -> Vec<String> {
        match self.judge.with_session(rules, Vec::new()) {
            Ok(policy) => wholly_denied(&policy, &tools),
            Err(_) => tools,
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = self.judge.policy.lines();
        for Bound { rule, reach } in self.judge.bound.values().flatten() {
            lines.push(format!("{}: {} in {}", rule.source(), rule.line(), reach.place));
        }
        lines
    }
}

/// The paths near which git's configuration must be read before a call is judged, relative to the working directory;
/// `None` for a call whose judgement does not depend on it. Most commands name no path that they write, and reading on
/// another thread would cost them more than the rest of the judgement.
pub(crate) fn written(subject: &Subject) -> Option<Vec<PathBuf>> {
    match subject {
        Subject::Path { write: true, path } => Some(vec![path.into()]),
        Subject::Paths { write: true, paths } => Some(paths.iter().map(PathBuf::from).collect()),
        Subject::Command { command } => {
            // Judging turns a parser panic into a denial.
            let Ok(paths) = catch_unwind(|| written_paths(command)) else {
                return Some(Vec::new());
            };
            (!paths.is_empty()).then(|| paths.into_iter().map(PathBuf::from).collect())
        }
        Subject::Path { .. }
        | Subject::Paths { .. }
        | Subject::Url(_)
        | Subject::Remote { .. }
        | Subject::Nothing => None,
    }
}

/// Parts grants into rules that hold everywhere, and those of a project. What restricts holds everywhere (I7).
fn parted<'a>(grants: impl Iterator<Item = (&'a Grant, Rule)>) -> (Vec<Rule>, Vec<Bound>) {
    let (mut everywhere, mut bound) = (Vec::new(), Vec::new());
    for (grant, rule) in grants {
        match &grant.reach {
            Some(reach) if rule.allows() => bound.push(Bound {
                rule,
                reach: reach.clone(),
            }),
            Some(_) | None => everywhere.push(rule),
        }
    }
    (everywhere, bound)
}

impl Judge {
    /// Judges a call that writes, including the paths that git's configuration names.
    pub(crate) async fn judge_writing(self, request: &JudgeRequest, near: Vec<PathBuf>) -> Judgement {
        let home = self.policy.home().map(PathBuf::from);
        let workdir = PathBuf::from(&request.workdir);
        let dir = workdir.clone();
        let files = FileWork::of_session(&request.session.to_string());
        let read = move || named_by_git(&dir, home.as_deref(), &near);
        self.judge_with(request, files.run(&workdir, READ_WITHIN, read).await)
    }

    /// Judges a call that writes. Without an answer from the file system the call is denied (I7) and not asked about:
    /// it could not run now, and a session must not wait for a person because a disk was slow for a moment.
    pub(crate) fn judge_with(mut self, request: &JudgeRequest, named: Result<Named, Failed>) -> Judgement {
        let named = match named {
            Ok(named) => named,
            Err(failed) => {
                let reason = format!("could not read the git configuration: {failed}; try again later");
                return Judgement::denied("gate:error", &reason);
            }
        };
        let protected = self.policy.protected().clone().with_named(named);
        self.policy = self.policy.protecting(protected);
        self.judge(request)
    }

    /// Judges a call. Any failure is a denial.
    pub(crate) fn judge(&self, request: &JudgeRequest) -> Judgement {
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let granted = self.in_force(request)?;
            let (everywhere, mut bound) = parted(granted.into_iter());
            bound.extend(self.bound.get(&request.here.place).into_iter().flatten().cloned());
            let policy = self.with_session(&request.rules, everywhere)?;
            let here = &request.here;
            let request = Request {
                tool: &request.tool,
                subject: &request.subject,
                effect: request.effect,
                mode: request.mode,
                workdir: &request.workdir,
            };
            Ok::<_, PolicyError>(judge_with(self.judge, &policy, &request, (here, &bound)))
        }));
        match judged {
            Ok(Ok(judgement)) => judgement,
            Ok(Err(error)) => Judgement::denied(
                "gate:error",
                &format!("cannot read a rule of the session: {error}"),
            ),
            Err(_) => Judgement::denied("gate:error", "agentd could not judge this call"),
        }
    }

    /// The rules that people granted the session, except removed ones.
    fn in_force<'a>(&self, request: &'a JudgeRequest) -> Result<Vec<(&'a Grant, Rule)>, PolicyError> {
        let mut grants = Vec::new();
        for grant in &request.grants {
            let rule = Rule::parse(&grant.rule, Source::Grant)?;
            let line = || grant.written(rule.line());
            let revoked = || request.always.contains(grant) && self.revoked.contains(&line());
            if !revoked() {
                grants.push((grant, rule));
            }
        }
        Ok(grants)
    }

    fn with_session(&self, rules: &[String], grants: Vec<Rule>) -> Result<Policy, PolicyError> {
        let rules = rules.iter().map(|rule| Rule::parse(rule, Source::Session));
        let all: Result<Vec<Rule>, PolicyError> = rules.chain(grants.into_iter().map(Ok)).collect();
        Ok(self.policy.with(all?))
    }
}
