//! Command lines: no rule ever allows what the parser does not understand, and parsing always terminates.

use agentd_policy::{Policy, Request, Rule, Source, Subject, decides, explain};
use agentd_protocol::{EffectClass, PermissionMode, VerdictKind};
use std::sync::OnceLock;

fn policy() -> &'static Policy {
    static POLICY: OnceLock<Policy> = OnceLock::new();
    POLICY.get_or_init(|| {
        let allow = Rule::new(VerdictKind::Allow, "Bash(echo:*)", Source::Operator);
        Policy::new(Some("/home/ana")).with(vec![allow.expect("a rule")])
    })
}

pub(crate) fn holds(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let subject = Subject::Command {
        command: text.clone().into_owned(),
    };
    let request = Request {
        tool: "Bash",
        subject: &subject,
        effect: EffectClass::Exec,
        mode: PermissionMode::Default,
        workdir: "/work",
    };
    let explained = explain(policy(), &request);
    let allowed = explained.judgement.verdict.kind == VerdictKind::Allow;
    if allowed {
        assert_eq!(
            explained.not_understood, None,
            "I7: what is not understood is not allowed: {text:?}"
        );
        assert!(
            explained.writes.is_empty(),
            "I7: a rule for echo lets it write nothing: {text:?}"
        );
        let others = explained
            .parts
            .iter()
            .filter(|part| part.verdict.kind != VerdictKind::Allow);
        assert_eq!(others.count(), 0, "I7: each command is allowed alone: {text:?}");
    }
    let _ = decides(&text);
}
