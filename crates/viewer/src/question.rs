//! The full text of an open approval. `agentd_text::Question` does the layout.

use crate::paint::Paint;
use agentd_protocol::{ApprovalKind, OpenApproval, Scope};
use agentd_text::{Content, Line, Mark, Question};

/// The full text of a question, in lines of the given width.
pub fn question_lines(open: &OpenApproval, width: usize) -> Vec<Line> {
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
    .lines(width)
}

/// The line as coloured text.
pub fn painted(line: &Line, paint: Paint) -> String {
    let spans = line.spans.iter().map(|span| match span.mark {
        Mark::Plain => span.text.clone(),
        Mark::Label | Mark::Gutter => paint.dim(&span.text),
        Mark::Risk | Mark::Removed => paint.bad(&span.text),
        Mark::Hidden => paint.warn(&span.text),
        Mark::Added => paint.good(&span.text),
    });
    spans.collect()
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
    let scopes = scopes(open);
    if let Some(grant) = open.grant.as_ref().filter(|_| !scopes.is_empty()) {
        facts.push((
            "scope",
            format!("{} would also allow: {grant}", scopes.join(" or ")),
        ));
    }
    facts
}

fn scopes(approval: &OpenApproval) -> Vec<&'static str> {
    [(Scope::Session, "session"), (Scope::Always, "always")]
        .into_iter()
        .filter(|(scope, _)| approval.scopes.contains(scope))
        .map(|(_, word)| word)
        .collect()
}

/// A hint that lists what the person may type.
pub fn choices_line(approval: &OpenApproval) -> String {
    if !approval.choices.is_empty() {
        let free = if approval.kind == ApprovalKind::Question {
            ", or your own answer"
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
