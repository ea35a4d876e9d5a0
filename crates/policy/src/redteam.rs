//! Known attacks on agents: no rule for the harmless variant of a command may allow one.
//! `rows_tests` has the rows of the red-team list that the verdict can decide; the other files have variations of them.

mod families_tests;
mod help_tests;
mod options_tests;
mod protected_tests;
mod rows_tests;
mod shell_tests;
mod words_tests;
mod yolo_tests;

use crate::{Policy, Request, Rule, Source, Subject, judge};
use agentd_protocol::{EffectClass, PermissionMode, Verdict, VerdictKind};

fn policy(rules: &[&str]) -> Policy {
    Policy::new(Some("/home/ana")).with(
        rules
            .iter()
            .map(|rule| Rule::parse(rule, Source::Operator).unwrap())
            .collect(),
    )
}

pub(super) fn verdict(rules: &[&str], mode: PermissionMode, command: &str) -> VerdictKind {
    judged(rules, mode, command).kind
}

/// The rule that decides in mode default.
pub(super) fn reason(rules: &[&str], command: &str) -> String {
    judged(rules, PermissionMode::Default, command).rule
}

fn judged(rules: &[&str], mode: PermissionMode, command: &str) -> Verdict {
    judged_by(&policy(rules), mode, command)
}

fn judged_by(policy: &Policy, mode: PermissionMode, command: &str) -> Verdict {
    let subject = Subject::Command {
        command: command.to_owned(),
    };
    let request = Request {
        tool: "Bash",
        subject: &subject,
        effect: EffectClass::Exec,
        mode,
        workdir: "/w",
    };
    judge(policy, &request).verdict
}

/// With the rule, the harmless command is allowed and no attack is.
#[track_caller]
pub(super) fn check(rule: &str, harmless: &str, attacks: &[&str]) {
    let rule = format!("allow Bash({rule})");
    let control = verdict(&[&rule], PermissionMode::Default, harmless);
    assert_eq!(
        control,
        VerdictKind::Allow,
        "positive control: {rule}: {harmless}"
    );
    for attack in attacks {
        for rules in [
            &[rule.as_str()][..],
            &[rule.as_str(), "allow Bash(*)"],
            &[rule.as_str(), "allow Bash"],
        ] {
            assert_eq!(
                verdict(rules, PermissionMode::Default, attack),
                VerdictKind::Ask,
                "{rules:?}: {attack:?}"
            );
        }
    }
}

/// These rules allow the control; each attack needs an approval, even where everything else is allowed.
#[track_caller]
pub(super) fn asked(rules: &[&str], control: &str, attacks: &[&str]) {
    let default = |command| verdict(rules, PermissionMode::Default, command);
    assert_eq!(
        default(control),
        VerdictKind::Allow,
        "positive control: {control}"
    );
    for attack in attacks {
        assert_eq!(default(attack), VerdictKind::Ask, "{attack:?}");
    }
}
