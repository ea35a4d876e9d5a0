//! Judging by what people granted for a project: a rule holds in its place, and while the files stay as they were.

use crate::policy::Policy;
use crate::request::{Judgement, Request, Subject};
use crate::rule::Rule;
use crate::runs::moves;
use agentd_protocol::{ABSENT, CHANGED_RULE, Reach, VerdictKind};
use std::collections::BTreeMap;

/// How many changed files a reason lists.
const TOLD: usize = 4;

/// Where a call would run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Here {
    /// The session's project.
    pub place: String,
    /// The present state of the files that a command runs; `None`: unknown, so nothing that depends on files holds.
    pub files: Option<BTreeMap<String, String>>,
}

/// A rule that a person granted for a project.
#[derive(Debug, Clone)]
pub struct Bound {
    /// The allow rule.
    pub rule: Rule,
    /// Where, and with which files.
    pub reach: Reach,
}

/// The function that judges by rules that hold everywhere.
pub type JudgeFn = fn(&Policy, &Request<'_>) -> Judgement;

/// Judges a call by the policy, and if that asks, by the grants that hold here. A grant never forbids and never weakens
/// a rule: it is one more allow rule.
#[must_use]
pub fn judge_with<'a>(
    judge: JudgeFn,
    policy: &Policy,
    request: &Request<'_>,
    (here, grants): (&Here, impl IntoIterator<Item = &'a Bound>),
) -> Judgement {
    let asked = judge(policy, request);
    if asked.verdict.kind != VerdictKind::Ask || elsewhere(request) {
        return asked;
    }
    let (mut holding, mut stale) = (Vec::new(), Vec::new());
    for grant in grants.into_iter().filter(|grant| grant.reach.place == here.place) {
        match grant.changes(here).as_slice() {
            [] => holding.push(grant),
            _ => stale.push(grant),
        }
    }
    let rules = |grants: &[&Bound]| grants.iter().map(|grant| grant.rule.clone()).collect::<Vec<_>>();
    let held = policy.with(rules(&holding));
    if !holding.is_empty() {
        let mut judgement = judge(&held, request);
        if judgement.verdict.kind == VerdictKind::Allow {
            judgement.by_content = true;
            return judgement;
        }
    }
    if stale.is_empty() {
        return asked;
    }
    let allowed = judge(&held.with(rules(&stale)), request);
    match allowed.verdict.kind {
        VerdictKind::Allow => again(asked, here, &stale, &allowed.verdict.rule),
        VerdictKind::Ask | VerdictKind::Deny => asked,
    }
}

/// Whether a part of the call runs in another directory than the session's.
fn elsewhere(request: &Request<'_>) -> bool {
    matches!(request.subject, Subject::Command { command } if moves(command, request.workdir))
}

/// The same question, with the reason why an earlier answer does not hold.
fn again(mut asked: Judgement, here: &Here, stale: &[&Bound], rule: &str) -> Judgement {
    let named = stale.iter().rev().find(|grant| grant.rule.text == rule);
    let changes = named.or(stale.last()).map(|grant| grant.changes(here));
    let changes = changes.unwrap_or_default();
    let mut told: Vec<&str> = changes.iter().take(TOLD).map(String::as_str).collect();
    if changes.len() > TOLD {
        told.push("and more");
    }
    CHANGED_RULE.clone_into(&mut asked.verdict.rule);
    asked.verdict.reason = format!("{} since it was allowed", told.join(", "));
    asked
}

impl Bound {
    /// How the files differ from those of the grant, for people. Empty: the grant holds.
    fn changes(&self, here: &Here) -> Vec<String> {
        let Some(files) = &here.files else {
            let unknown = self.reach.files.keys();
            return unknown
                .map(|name| format!("{name} could not be compared and may have changed"))
                .collect();
        };
        let differ = self
            .reach
            .files
            .iter()
            .filter(|(name, state)| files.get(*name) != Some(state));
        differ
            .map(
                |(name, state)| match (state.as_str(), files.get(name).map(String::as_str)) {
                    (ABSENT, Some(_)) => format!("{name} was created"),
                    (_, Some(ABSENT)) => format!("{name} was removed"),
                    _ => format!("{name} has changed"),
                },
            )
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::judge;
    use crate::rule::Source;
    use agentd_protocol::{EffectClass, PermissionMode, Scope};

    fn files(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter()
            .map(|(name, state)| ((*name).to_owned(), (*state).to_owned()))
            .collect()
    }

    fn bound(rule: &str, place: &str, of: &[(&str, &str)]) -> Bound {
        Bound {
            rule: Rule::parse(rule, Source::Always).unwrap(),
            reach: Reach {
                place: place.to_owned(),
                files: files(of),
            },
        }
    }

    fn judged(command: &str, here: &Here, grants: &[Bound]) -> Judgement {
        let subject = Subject::Command {
            command: command.to_owned(),
        };
        let request = Request {
            tool: "Bash",
            subject: &subject,
            effect: EffectClass::Exec,
            mode: PermissionMode::Default,
            workdir: "/a",
        };
        judge_with(judge, &Policy::new(None), &request, (here, grants))
    }

    fn here(place: &str, of: &[(&str, &str)]) -> Here {
        Here {
            place: place.to_owned(),
            files: Some(files(of)),
        }
    }

    #[test]
    fn redteam_60_i7_a_grant_holds_in_its_place_with_its_files_only() {
        let grants = [bound("Bash(sh build.sh)", "/a", &[("build.sh", "11")])];
        let kind = |command: &str, here: &Here| judged(command, here, &grants).verdict.kind;
        let same = here("/a", &[("build.sh", "11")]);
        assert_eq!(kind("sh build.sh", &same), VerdictKind::Allow, "control");
        assert!(judged("sh build.sh", &same, &grants).by_content);
        for (why, elsewhere) in [
            ("another directory", here("/b", &[("build.sh", "11")])),
            ("another content", here("/a", &[("build.sh", "22")])),
            ("removed", here("/a", &[("build.sh", ABSENT)])),
            ("not read", here("/a", &[])),
            (
                "unknown",
                Here {
                    place: "/a".to_owned(),
                    files: None,
                },
            ),
        ] {
            assert_eq!(kind("sh build.sh", &elsewhere), VerdictKind::Ask, "{why}");
        }
    }

    #[test]
    fn redteam_60_i7_a_grant_does_not_follow_a_command_into_another_directory() {
        let mut grants = vec![bound("Bash(sh build.sh)", "/a", &[("build.sh", "11")])];
        grants.push(bound("Bash(cd sub)", "/a", &[]));
        grants.push(bound("Bash(cd /a)", "/a", &[]));
        let same = here("/a", &[("build.sh", "11"), ("sub/build.sh", "22")]);
        let kind = |command: &str| judged(command, &same, &grants).verdict.kind;
        assert_eq!(kind("cd /a && sh build.sh"), VerdictKind::Allow, "control");
        assert_eq!(kind("cd sub && sh build.sh"), VerdictKind::Ask);
        assert_eq!(kind("pushd sub && sh build.sh"), VerdictKind::Ask);
        assert_eq!(kind("sh sub/build.sh"), VerdictKind::Ask);
        assert_eq!(kind("FOO=1 sh build.sh"), VerdictKind::Ask);
        assert_eq!(kind("bash -c 'sh build.sh'"), VerdictKind::Ask);
        assert_eq!(kind("X=build.sh; sh $X"), VerdictKind::Ask);
    }

    #[test]
    fn redteam_60_i7_a_file_that_appears_counts_as_a_change() {
        let grants = [bound(
            "Bash(make)",
            "/a",
            &[("Makefile", "11"), ("GNUmakefile", ABSENT)],
        )];
        let found = judged(
            "make",
            &here("/a", &[("Makefile", "11"), ("GNUmakefile", "22")]),
            &grants,
        );
        assert_eq!(found.verdict.kind, VerdictKind::Ask);
        assert_eq!(
            found.verdict.reason,
            "GNUmakefile was created since it was allowed"
        );
    }

    #[test]
    fn the_question_says_why_it_is_asked_again_and_can_be_granted_again() {
        let grants = [bound("Bash(sh build.sh)", "/a", &[("build.sh", "11")])];
        let found = judged("sh build.sh", &here("/a", &[("build.sh", "22")]), &grants);
        assert_eq!(found.verdict.rule, CHANGED_RULE);
        assert_eq!(found.verdict.reason, "build.sh has changed since it was allowed");
        assert_eq!(found.grant.as_deref(), Some("Bash(sh build.sh)"));
        assert!(found.scopes.contains(&Scope::Always));
        let other = judged("sh other.sh", &here("/a", &[("other.sh", "22")]), &grants);
        assert_eq!(other.verdict.rule, "mode:default", "nothing was allowed before");
    }

    #[test]
    fn i7_a_grant_weakens_no_rule() {
        let grants = [bound("Bash(sh build.sh)", "/a", &[])];
        let subject = Subject::Command {
            command: "sh build.sh".to_owned(),
        };
        for rule in ["deny Bash(sh:*)", "ask Bash(sh:*)"] {
            let policy = Policy::new(None).with(vec![Rule::parse(rule, Source::Operator).unwrap()]);
            let request = Request {
                tool: "Bash",
                subject: &subject,
                effect: EffectClass::Exec,
                mode: PermissionMode::Default,
                workdir: "/a",
            };
            let found = judge_with(judge, &policy, &request, (&here("/a", &[]), &grants));
            assert_ne!(found.verdict.kind, VerdictKind::Allow, "{rule}");
        }
    }
}
