//! How a viewer presents a question: its rows in colour, and the ways to answer.

use crate::paint::Paint;
use agentd_protocol::{ApprovalKind, OpenApproval, Scope};
use agentd_text::{Line, Mark};

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
    if approval.offers(Scope::Session) {
        words.push("s for this session");
    }
    if approval.offers(Scope::Always) {
        words.push("a always in this project");
    }
    if approval.offers(Scope::Everywhere) {
        words.push("e always, everywhere");
    }
    words.push("n [reason] deny");
    words.join(", ")
}
