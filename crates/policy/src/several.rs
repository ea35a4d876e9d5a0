//! A call on several files: each is judged separately.

use crate::judge::judge;
use crate::policy::Policy;
use crate::request::{Judgement, Request, Subject};
use crate::rule::{Rule, Source};
use agentd_protocol::{Scope, VerdictKind};

/// The strictest verdict over all paths, with the path that it concerns.
pub(crate) fn several(policy: &Policy, request: &Request<'_>, write: bool, paths: &[String]) -> Judgement {
    let judgements: Vec<Judgement> = paths
        .iter()
        .map(|path| one(policy, request, write, path))
        .collect();
    let worst = judgements.iter().map(|judgement| judgement.verdict.kind).max();
    let decided = judgements
        .iter()
        .zip(paths)
        .find(|(judgement, _)| Some(judgement.verdict.kind) == worst);
    let Some((decided, path)) = decided else {
        return Judgement::denied("gate:error", "the call names no path");
    };
    if judgements.len() == 1 {
        return decided.clone();
    }
    let mut verdict = decided.verdict.clone();
    verdict.reason = format!("{path}: {}", verdict.reason);
    let grant = grant(policy, request, write, paths, &judgements);
    let scopes = match (verdict.kind, &grant) {
        (VerdictKind::Ask, Some(_)) => vec![Scope::Once, Scope::Session, Scope::Always],
        (VerdictKind::Ask, None) => vec![Scope::Once],
        (VerdictKind::Allow | VerdictKind::Deny, _) => Vec::new(),
    };
    let risks = judgements
        .iter()
        .zip(paths)
        .flat_map(|(judgement, path)| judgement.risks.iter().map(move |risk| format!("{path}: {risk}")));
    Judgement {
        verdict,
        grant,
        scopes,
        title: format!("Change {} files", paths.len()),
        detail: paths.join("\n"),
        risks: risks.collect(),
        by_content: false,
    }
}

fn one(policy: &Policy, request: &Request<'_>, write: bool, path: &str) -> Judgement {
    let subject = Subject::Path {
        write,
        path: path.to_owned(),
    };
    judge(
        policy,
        &Request {
            subject: &subject,
            ..*request
        },
    )
}

/// One rule that allows exactly the paths in question, if it can be expressed safely.
fn grant(
    policy: &Policy,
    request: &Request<'_>,
    write: bool,
    paths: &[String],
    judgements: &[Judgement],
) -> Option<String> {
    let asked = judgements
        .iter()
        .filter(|judgement| judgement.verdict.kind == VerdictKind::Ask);
    let mut patterns = Vec::new();
    for judgement in asked {
        let inner = judgement
            .grant
            .as_deref()?
            .strip_prefix(request.tool)?
            .strip_prefix("(/")?
            .strip_suffix(')')?;
        // In a list of alternatives a comma is not part of a path.
        if inner.contains(',') {
            return None;
        }
        if !patterns.contains(&inner) {
            patterns.push(inner);
        }
    }
    let text = match patterns.as_slice() {
        [] => return None,
        [one] => format!("{}(/{one})", request.tool),
        all => format!("{}(/{{{}}})", request.tool, all.join(",")),
    };
    let rule = Rule::new(VerdictKind::Allow, &text, Source::Always).ok()?;
    let with_it = policy.with(vec![rule]);
    let suffices = paths
        .iter()
        .all(|path| one(&with_it, request, write, path).verdict.kind == VerdictKind::Allow);
    suffices.then_some(text)
}
