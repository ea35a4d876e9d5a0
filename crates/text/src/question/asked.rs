//! The question of an open approval.

use super::{Content, DIGITS, Question};
use agentd_protocol::{ApprovalKind, OpenApproval, QuestionLine, Scope};

/// The lines of an open approval: all that a person must see before they allow it.
#[must_use]
pub fn question_lines(open: &OpenApproval) -> Vec<QuestionLine> {
    let kind = content_of(open);
    let heading = heading(open, kind);
    let facts = facts(open);
    let choices: Vec<String> = open.choices.iter().map(|choice| choice.label.clone()).collect();
    let content = if open.detail.is_empty() {
        &open.title
    } else {
        &open.detail
    };
    Question {
        heading: &heading,
        risks: &open.about.risks,
        facts: &facts,
        content,
        kind,
        said: open.about.said.as_deref(),
        choices: &choices,
    }
    .lines()
}

fn content_of(open: &OpenApproval) -> Content {
    match (open.kind, open.tool.as_deref()) {
        (ApprovalKind::Plan, _) => Content::Plan,
        (ApprovalKind::Question, _) => Content::Words,
        (ApprovalKind::Tool, Some(tool)) => Content::of_tool(tool),
        (ApprovalKind::Tool | ApprovalKind::Limit, _) => Content::Arguments,
    }
}

fn heading(open: &OpenApproval, kind: Content) -> String {
    let id = open.approval.short();
    let tool = open.tool.as_deref().unwrap_or("a tool");
    let what = match (open.kind, kind) {
        (ApprovalKind::Plan, _) => "the agent proposes a plan".to_owned(),
        (ApprovalKind::Question, _) => "the agent has a question".to_owned(),
        (ApprovalKind::Limit, _) => "a limit was reached".to_owned(),
        (ApprovalKind::Tool, Content::Command) => format!("{tool} wants to run a command"),
        (ApprovalKind::Tool, Content::Change) => format!("{tool} wants to change files"),
        (ApprovalKind::Tool, _) => format!("{tool} wants to run"),
    };
    format!("approval {id}: {what}")
}

fn facts(open: &OpenApproval) -> Vec<(&'static str, String)> {
    let about = &open.about;
    let mut facts = Vec::new();
    if !open.path.is_empty() {
        facts.push(("from", format!("the sub-agent {}", open.path.join(" > "))));
    }
    facts.extend(
        about
            .directory
            .iter()
            .map(|directory| ("where", directory.clone())),
    );
    if let Some(rule) = &about.rule {
        let reason = about.reason.as_ref().map(|reason| format!(": {reason}"));
        facts.push(("rule", format!("{rule}{}", reason.unwrap_or_default())));
    }
    for tree in &about.watches {
        let text = format!(
            "runs code from {tree}, which may change; your answer is void if it changes before the call runs"
        );
        facts.push(("note", text));
    }
    facts.extend(reach(open));
    facts
}

/// The calls beyond this one that each wider answer would allow, and where.
fn reach(open: &OpenApproval) -> Vec<(&'static str, String)> {
    let Some(grant) = &open.grant else {
        return Vec::new();
    };
    let mut facts = Vec::new();
    let narrow = [(Scope::Session, "session"), (Scope::Always, "always")];
    let narrow = narrow.into_iter().filter(|(scope, _)| open.offers(*scope));
    let narrow: Vec<&str> = narrow.map(|(_, word)| word).collect();
    if let Some(reach) = open.about.reach.as_ref().filter(|_| !narrow.is_empty()) {
        facts.push((
            "scope",
            format!("{} would also allow: {grant}", narrow.join(" or ")),
        ));
        facts.push(("within", format!("only in the project {}", reach.place)));
        for (name, sum) in reach.contents() {
            let sum: String = sum.chars().take(DIGITS).collect();
            facts.push(("while", format!("{name} stays as it is, sha256 {sum}")));
        }
        for name in reach.versions() {
            facts.push(("while", format!("{name} stays as it is (size and times)")));
        }
        if reach.contents().next().is_none()
            && reach.versions().next().is_none()
            && content_of(open) == Content::Command
        {
            let text = "every future content: the command names no file that it runs";
            facts.push(("covers", text.to_owned()));
        }
    }
    if open.offers(Scope::Everywhere) {
        let text = "would also allow it in every directory, whatever its files contain then";
        facts.push(("everywhere", format!("{text}: {grant}")));
    }
    facts
}
