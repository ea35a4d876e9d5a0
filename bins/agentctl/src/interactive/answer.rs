//! Interprets a typed line.

use crate::render::choices_line;
use agentd_protocol::{ApprovalKind, Choice, DecideParams, Decision, OpenApproval, Scope};

/// Help for the commands that `attach` itself handles.
pub(crate) const HELP: &str = "\
a line is sent to the session; start it with // to send a leading /
/approve [once|session|always|everywhere]  /deny [reason]  /answer TEXT   the open approval
/cancel   cancel the turn     /resume  resume after a pause, or retry a parked call now
/compact  replace the beginning of the conversation with a summary
/detach   detach; the session continues";

/// A line answers the question that was shown when the person began to type it.
const NONE: &str =
    "there was no question when you began to type; send messages with `agentctl attach` or `agentctl send`";

/// The meaning of a typed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Answer the open approval.
    Decide(ApprovalAnswer),
    /// Send it to the session.
    Send(String),
    /// End the turn.
    Cancel,
    /// Resume a paused or parked session.
    Resume,
    /// Compact the conversation.
    Compact,
    /// Leave; the session continues.
    Detach,
    /// Show the help.
    Help,
    /// An empty line.
    Nothing,
    /// The line is invalid; show this message.
    Unclear(String),
}

/// The answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalAnswer {
    pub(crate) decision: Decision,
    pub(crate) scope: Scope,
    pub(crate) answer: Option<String>,
    pub(crate) message: Option<String>,
}

impl ApprovalAnswer {
    const fn allow(scope: Scope) -> Self {
        Self {
            decision: Decision::Allow,
            scope,
            answer: None,
            message: None,
        }
    }

    fn deny(reason: &str) -> Self {
        let message = (!reason.is_empty()).then(|| reason.to_owned());
        Self {
            decision: Decision::Deny,
            scope: Scope::Once,
            answer: None,
            message,
        }
    }

    fn words(text: &str) -> Self {
        Self {
            decision: Decision::Answer,
            scope: Scope::Once,
            answer: Some(text.to_owned()),
            message: None,
        }
    }

    /// The parameters of the request that submits the answer to the question with this hash.
    pub(crate) fn params(self, approval: &OpenApproval, seen: Option<&str>) -> DecideParams {
        DecideParams {
            approval: approval.approval.to_string(),
            decision: Some(self.decision),
            scope: self.scope,
            answer: self.answer,
            message: self.message,
            shown: seen.map(str::to_owned),
            policy: false,
        }
    }
}

/// Interprets a typed line. With `sends`, a line that is neither an answer nor a command is a message to the session.
pub(crate) fn read(line: &str, open: Option<&OpenApproval>, sends: bool) -> Typed {
    let line = line.trim();
    if line.is_empty() {
        return Typed::Nothing;
    }
    if let Some(rest) = line.strip_prefix('/') {
        return match rest.strip_prefix('/') {
            // The daemon removes the second slash.
            Some(_) if sends => Typed::Send(line.to_owned()),
            Some(_) | None => command(rest, open, sends),
        };
    }
    match open.and_then(|approval| answer(line, approval)) {
        Some(typed) => typed,
        None if sends => Typed::Send(line.to_owned()),
        None => Typed::Unclear(open.map_or_else(|| NONE.to_owned(), choices_line)),
    }
}

fn command(text: &str, open: Option<&OpenApproval>, sends: bool) -> Typed {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match (word, open) {
        ("cancel", _) => Typed::Cancel,
        ("resume", _) => Typed::Resume,
        ("compact", _) => Typed::Compact,
        ("detach" | "quit" | "exit", _) => Typed::Detach,
        ("help", _) if !sends => Typed::Help,
        ("approve" | "deny" | "answer", None) => Typed::Unclear(NONE.to_owned()),
        ("approve", Some(approval)) => match rest {
            "" | "once" => Typed::Decide(ApprovalAnswer::allow(Scope::Once)),
            "session" => scoped(Scope::Session, approval),
            "always" => scoped(Scope::Always, approval),
            "everywhere" => scoped(Scope::Everywhere, approval),
            other => Typed::Unclear(format!(
                "unknown scope {other:?}; expected once, session, always or everywhere"
            )),
        },
        ("deny", Some(_)) => Typed::Decide(ApprovalAnswer::deny(rest)),
        ("answer", Some(_)) if rest.is_empty() => Typed::Unclear("usage: /answer TEXT".to_owned()),
        ("answer", Some(_)) => Typed::Decide(ApprovalAnswer::words(rest)),
        // The daemon has more commands, and lists them if this one is unknown.
        (_, _) if sends => Typed::Send(format!("/{text}")),
        (other, _) => Typed::Unclear(format!("unknown command /{other}; /help lists the commands")),
    }
}

/// The line as an answer to the open approval, if it is one.
fn answer(line: &str, approval: &OpenApproval) -> Option<Typed> {
    match choice_of(line, &approval.choices) {
        Ok(Some(choice)) => return Some(Typed::Decide(ApprovalAnswer::words(choice))),
        Ok(None) => {}
        Err(why) => return Some(Typed::Unclear(format!("{why}; /answer TEXT sends text"))),
    }
    if approval.kind == ApprovalKind::Question {
        return Some(Typed::Decide(ApprovalAnswer::words(line)));
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word.to_lowercase().as_str(), rest.trim()) {
        ("y" | "yes", "") => Some(Typed::Decide(ApprovalAnswer::allow(Scope::Once))),
        ("s", "") => Some(scoped(Scope::Session, approval)),
        ("a", "") => Some(scoped(Scope::Always, approval)),
        ("e", "") => Some(scoped(Scope::Everywhere, approval)),
        ("n", reason) => Some(Typed::Decide(ApprovalAnswer::deny(reason))),
        ("no", "") => Some(Typed::Decide(ApprovalAnswer::deny(""))),
        _ => None,
    }
}

/// The choice that a number, a name or an unambiguous prefix selects. The error says why a number or a prefix
/// selects none.
pub(crate) fn choice_of<'a>(line: &str, choices: &'a [Choice]) -> Result<Option<&'a str>, String> {
    let line = line.trim();
    if line.is_empty() || choices.is_empty() {
        return Ok(None);
    }
    let named = choices
        .iter()
        .find(|choice| choice.id == line || choice.label == line);
    let number = line.parse::<usize>().ok();
    let counted = number.and_then(|number| choices.get(number.checked_sub(1)?));
    let id = |choice: &'a Choice| Ok(Some(choice.id.as_str()));
    match (counted, named) {
        (Some(one), Some(other)) if one.id != other.id => {
            return Err(format!(
                "{line} is the number of one choice and the name of another"
            ));
        }
        (Some(one), _) | (None, Some(one)) => return id(one),
        (None, None) => {}
    }
    if let Some(number) = number {
        return Err(format!(
            "there is no choice {number}: the choices are 1 to {}",
            choices.len()
        ));
    }
    let lower = line.to_lowercase();
    let begins = |choice: &&Choice| {
        [&choice.id, &choice.label]
            .iter()
            .any(|name| name.to_lowercase().starts_with(&lower))
    };
    match choices.iter().filter(begins).collect::<Vec<_>>().as_slice() {
        [] => Ok(None),
        [one] => id(one),
        several => Err(format!("{line:?} matches {} choices", several.len())),
    }
}

fn scoped(scope: Scope, approval: &OpenApproval) -> Typed {
    if approval.offers(scope) {
        Typed::Decide(ApprovalAnswer::allow(scope))
    } else {
        Typed::Unclear(format!(
            "this call cannot be allowed that far; {}",
            choices_line(approval)
        ))
    }
}
