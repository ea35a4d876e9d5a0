//! What turns up while a call runs, addresses to which a server sends it on and files that a search finds: the rules
//! judge each.

use agentd_actor_kit::{GateMsg, Handle, JudgeRequest};
use agentd_policy::{Judgement, Subject};
use agentd_protocol::{EffectClass, VerdictKind};
use agentd_tools::{AddressGate, FileGate, Hop};
use std::time::Duration;

/// How long the gate may take; without an answer it is a denial.
const JUDGED_WITHIN: Duration = Duration::from_secs(5);

/// The gate as a running call sees it.
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

/// A file that is found is shown only where reading it would need no question, and no rule keeps the tool from it.
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
            // Whether the search itself had to be asked about was settled before it ran, so only its denials count.
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
    fn i7_only_an_allow_is_an_allow() {
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
