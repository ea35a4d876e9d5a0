//! What the model is told, in one place.

use agentd_protocol::{ApprovalDecided, Decision, LimitKind, Verdict};

/// A rule denied the call.
pub(crate) fn denied_by_rule(verdict: &Verdict) -> String {
    format!(
        "Denied by the permission rule `{}`: {}. The call was not run. Do not try to get around the rule; choose \
         another way or say what you need.",
        verdict.rule, verdict.reason
    )
}

/// A person, or time, denied the call.
pub(crate) fn denied_by_person(decided: &ApprovalDecided) -> String {
    let who = match decided.decision {
        Decision::Expired => "Nobody answered the request for approval in time",
        Decision::Allow | Decision::Deny | Decision::Answer | Decision::Withdrawn => "This call was denied",
    };
    match decided
        .message
        .as_deref()
        .map(str::trim)
        .filter(|words| !words.is_empty())
    {
        Some(words) => format!("{who}: {words}\nThe call was not run."),
        None => format!("{who}. The call was not run; choose another way or ask what to do."),
    }
}

/// Nobody answered the model's question.
pub(crate) fn unanswered(decided: &ApprovalDecided) -> String {
    let why = match decided.decision {
        Decision::Expired => "nobody answered in time",
        Decision::Allow | Decision::Deny | Decision::Answer | Decision::Withdrawn => "it is not answered",
    };
    let words = decided.message.as_deref().map(str::trim).unwrap_or_default();
    let colon = if words.is_empty() { "" } else { ": " };
    format!(
        "There is no answer to the question; {why}{colon}{words}. Go on by your own judgement and say what you assumed, or stop and say \
         what you need."
    )
}

/// Why a requested call was not run.
pub(crate) const CUT_OFF: &str = "Not run: the answer that asked for this call was cut off.";
/// Why a requested call was not run.
pub(crate) const REFUSED: &str = "Not run: the provider stopped the answer that asked for this call.";
/// Why a requested call was not run.
pub(crate) const TOOLS_OFF: &str = "Not run: the step limit is reached and tools are off.";
/// Why a requested call was not run.
pub(crate) const REPEATED: &str =
    "Not run: the same call with the same arguments was made too often in a row.";
/// Why an open call was closed.
pub(crate) const STOPPED_BY_DENIAL: &str =
    "Not finished: another call was denied, and denials stop the turn.";
/// Why an open call was closed.
pub(crate) const CANCELLED: &str = "Not finished: the turn was cancelled.";
/// Why a background job is lost.
pub(crate) const JOBS_KILLED: &str = "a person killed it";
pub(crate) const JOB_LOST: &str = "agentd went down or the session was stopped while it ran";
/// What is added when the call had been running.
pub(crate) const WAS_RUNNING: &str = "It was running; what it had done until then may remain.";
/// Why a running call was closed after a crash.
pub(crate) const OUTCOME_UNKNOWN: &str = "Interrupted, outcome unknown: the daemon stopped while this ran. Check what it did before you do it again.";

/// The note after the same call was made too often.
pub(crate) fn repeating(times: u32) -> String {
    format!(
        "You have made the same tool call with the same arguments {times} times in a row. Its result will not change. \
         Do something else, or say what keeps you."
    )
}

/// The note after steps in which every call failed.
pub(crate) fn failing(steps: u32) -> String {
    format!(
        "Every tool call of the last {steps} steps failed. Stop, explain what goes wrong and what you need, and go on \
         only with a different approach."
    )
}

/// The nudge after an announced action that was not taken.
pub(crate) const fn nudge(cjk: bool) -> &'static str {
    if cjk {
        "请直接执行你提到的操作,不要只是描述。"
    } else {
        "Do what you announced now, with a tool call; do not only describe it."
    }
}

/// The note before the summary at the step limit.
pub(crate) fn sum_up(cap: u32) -> String {
    format!(
        "The limit of {cap} steps is reached and tools are off now. Sum up what is done, what is not, and what should \
         happen next."
    )
}

/// The note when a budget nears its end.
pub(crate) fn near_the_end(limit: LimitKind) -> String {
    let what = limit_name(limit);
    format!("At least 90 % of this session's {what} budget is used. Bring the work to a good end soon.")
}

/// The most files that a note names.
const NAMED: usize = 20;

/// The note after a person put files back, or the conversation.
pub(crate) fn put_back(files: &[String], rewound: bool) -> String {
    let mut words = String::new();
    if rewound {
        words.push_str(
            "The person took the conversation back to this point; what came after it is not shown. ",
        );
    }
    if files.is_empty() {
        words.push_str("Files and whatever commands did were left as they are.");
    } else {
        let named: Vec<&str> = files.iter().take(NAMED).map(String::as_str).collect();
        let more = match files.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = named.join(", ");
        words.push_str(&format!(
            "The person undid changes of these files: {named}{more}. What commands did was not undone."
        ));
    }
    words.push_str(" Read a file again before you rely on what it holds.");
    words
}

/// A limit's name in a sentence.
pub(crate) const fn limit_name(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Steps => "step",
        LimitKind::Tokens => "token",
        LimitKind::Cost => "money",
        LimitKind::Time => "time",
        LimitKind::Depth => "depth",
    }
}
