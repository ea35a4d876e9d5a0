//! What is shown of an open approval.

use crate::render::{clean, one_line};
use agentd_protocol::{ApprovalId, ApprovalKind, OpenApproval, Scope};

/// Lines of detail that are shown at a prompt.
const DETAIL_LINES: usize = 40;
/// A plan is what is approved, so all of it is shown; no model may send a longer one.
const PLAN_LINES: usize = 1_000;

/// The question, what exactly will happen, and what a wider allow would add.
pub(crate) fn approval_lines(approval: &OpenApproval) -> Vec<String> {
    let mut lines = vec![one_line(&approval.title, 200)];
    if !approval.path.is_empty() {
        lines.push(format!(
            "  asked by the sub-agent {}",
            one_line(&approval.path.join(" > "), 200)
        ));
    }
    if approval.kind == ApprovalKind::Plan {
        lines.extend(plan_lines(approval.approval, &approval.detail));
    } else if approval.detail.trim() != approval.title.trim() {
        lines.extend(bounded(approval.approval, &approval.detail, DETAIL_LINES));
    }
    if let Some(grant) = &approval.grant {
        let scopes = scopes(approval);
        if !scopes.is_empty() {
            lines.push(format!(
                "  {} would also allow: {}",
                scopes.join(" or "),
                one_line(grant, 200)
            ));
        }
    }
    for (number, choice) in approval.choices.iter().enumerate() {
        lines.push(format!("  {}) {}", number + 1, one_line(&choice.label, 200)));
    }
    lines
}

/// A plan, to be read by the person who approves it.
pub(crate) fn plan_lines(approval: ApprovalId, plan: &str) -> Vec<String> {
    bounded(approval, plan, PLAN_LINES)
}

fn bounded(approval: ApprovalId, text: &str, most: usize) -> Vec<String> {
    let text = clean(text);
    let all: Vec<&str> = text.lines().collect();
    let mut lines: Vec<String> = all.iter().take(most).map(|line| format!("  {line}")).collect();
    if all.len() > most {
        let (more, id) = (all.len() - most, approval.short());
        lines.push(format!(
            "  … {more} more lines: agentctl approvals -o yaml, at {id}"
        ));
    }
    lines
}

fn scopes(approval: &OpenApproval) -> Vec<&'static str> {
    [(Scope::Session, "session"), (Scope::Always, "always")]
        .into_iter()
        .filter(|(scope, _)| approval.scopes.contains(scope))
        .map(|(_, word)| word)
        .collect()
}

/// What may be typed.
pub(crate) fn choices_line(approval: &OpenApproval) -> String {
    if !approval.choices.is_empty() {
        let free = if approval.kind == ApprovalKind::Question {
            ", or your own words"
        } else {
            ""
        };
        return format!("type 1 to {}{free}", approval.choices.len());
    }
    if approval.kind == ApprovalKind::Question {
        return "type your answer".to_owned();
    }
    let mut words = vec!["y allow"];
    if approval.scopes.contains(&Scope::Session) {
        words.push("s for this session");
    }
    if approval.scopes.contains(&Scope::Always) {
        words.push("a always");
    }
    words.push("n [reason] deny");
    words.join(", ")
}
