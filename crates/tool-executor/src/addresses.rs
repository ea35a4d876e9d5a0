//! Judges by the rules what turns up while a call runs: addresses to which a server redirects it, and files that a
//! search finds.

use agentd_actor_kit::{GateMsg, Handle, JudgeRequest};
use agentd_policy::{Judgement, Subject};
use agentd_protocol::{EffectClass, VerdictKind};
use agentd_tools::{AddressGate, FileGate, Hop};
use std::time::Duration;

/// The timeout of the gate; a missing answer is a denial.
const JUDGED_WITHIN: Duration = Duration::from_secs(5);

/// The gate for a running call.
pub(crate) fn gate(judge: Option<(Handle<GateMsg>, Box<JudgeRequest>)>) -> AddressGate {
    let Some((gate, request)) = judge else {
        return AddressGate::nobody();
    };
    AddressGate::new(move |url| {
        let gate = gate.clone();
        let request = Box::new(JudgeRequest {
            subject: Subject::Url(url),
            ..(*request).clone()
        });
        async move {
            let judged = gate
                .call(JUDGED_WITHIN, |done| GateMsg::Judge { request, done })
                .await;
            judged.map_or_else(
                |error| Hop::Denied(error.to_string()),
                |judgement| hop(&judgement),
            )
        }
    })
}

/// Shows a found file only if reading it needs no approval and no rule denies it to the tool.
pub(crate) fn files(judge: Option<(Handle<GateMsg>, Box<JudgeRequest>)>) -> FileGate {
    let Some((gate, request)) = judge else {
        return FileGate::closed();
    };
    FileGate::new(move |path| {
        let gate = gate.clone();
        let as_found = JudgeRequest {
            effect: EffectClass::Read,
            subject: Subject::Path { write: false, path },
            ..(*request).clone()
        };
        async move {
            let as_read = JudgeRequest {
                tool: agentd_policy::READ.to_owned(),
                ..as_found.clone()
            };
            if kind(&gate, as_read).await != Some(VerdictKind::Allow) {
                return false;
            }
            // Any question about the search itself was settled before it ran, so only its denials count.
            let found = kind(&gate, as_found).await;
            matches!(found, Some(VerdictKind::Allow | VerdictKind::Ask))
        }
    })
}

pub(crate) async fn kind(gate: &Handle<GateMsg>, request: JudgeRequest) -> Option<VerdictKind> {
    let request = Box::new(request);
    let judged = gate
        .call(JUDGED_WITHIN, |done| GateMsg::Judge { request, done })
        .await;
    judged.ok().map(|judgement| judgement.verdict.kind)
}

fn hop(judgement: &Judgement) -> Hop {
    let verdict = &judgement.verdict;
    match verdict.kind {
        VerdictKind::Allow => Hop::Allowed,
        VerdictKind::Ask if verdict.rule.starts_with("mode:") => Hop::Unjudged,
        VerdictKind::Ask => Hop::Asked,
        VerdictKind::Deny => Hop::Denied(verdict.reason.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::Verdict;

    #[test]
    fn i7_only_an_allow_verdict_allows() {
        for (kind, rule, expected) in [
            (VerdictKind::Allow, "WebFetch(domain:docs.rs)", Hop::Allowed),
            (VerdictKind::Ask, "mode:default", Hop::Unjudged),
            (VerdictKind::Ask, "WebFetch(*)", Hop::Asked),
            (VerdictKind::Deny, "gate:error", Hop::Denied("so it is".into())),
        ] {
            let verdict = Verdict {
                kind,
                rule: rule.into(),
                reason: "so it is".into(),
            };
            let judgement = Judgement {
                verdict,
                ..Judgement::denied("", "")
            };
            assert_eq!(hop(&judgement), expected, "{rule}");
        }
    }
}
