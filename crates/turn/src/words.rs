//! All texts that the model reads from agentd, in one place.

use crate::planning::Plan;
use crate::tree::delegate::Ended;
use agentd_protocol::{
    ApprovalDecided, Decision, EndReason, LimitKind, PermissionMode, PlanStatus, Planning, Seq, SessionId,
    Unmade, UnmadeCall, Verdict,
};

/// Note after an answer with neither text nor a call.
pub(crate) const SAY_SOMETHING: &str =
    "Your last answer was empty. Answer in words; if the work is done, say what the result is.";
/// Note after a person raised the used-up budget of a turn.
pub(crate) const BUDGET_RAISED: &str = "The budget was raised. Go on where you stopped.";

/// Result of a call that a rule denied.
pub(crate) fn denied_by_rule(verdict: &Verdict) -> String {
    format!(
        "Denied by the permission rule `{}`: {}. The call was not run. Do not try to get around the rule; choose \
         another way or say what you need.",
        verdict.rule, verdict.reason
    )
}

/// Result of a call that a person denied, or whose approval expired.
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

/// Result of a question without an answer.
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

/// Result of a call in an answer that filled the context window.
pub(crate) const CUT_OFF: &str = "Not run: the answer that asked for this call was cut off.";
/// Result of a call in an answer that reached the output limit.
pub(crate) const CUT_AT_LIMIT: &str = "Not run: your answer reached the output limit, so this call may be incomplete. Make the call again \
     with less in it: give a long file in several parts, each in a call and an answer of its own, and write few words before the call.";

/// Note after an answer with a call in its text that was not made.
pub(crate) fn unmade(call: &UnmadeCall) -> String {
    let problem = &call.problem;
    match call.kind {
        Unmade::Broken => format!(
            "The tool call at the end of your last answer was not run, because it cannot be read: {problem}. Make the call \
             again, complete and valid, with nothing after it."
        ),
        Unmade::Cut => format!(
            "Your last answer reached the output limit, so the tool call in it was cut off and not run ({problem}). Make the \
             call again with less in it: give a long file in several parts, each in a call and an answer of its own."
        ),
        Unmade::Unclear => format!(
            "No tool was run: {problem}. If you want the call, make it now, with nothing after it. If it is only an example, \
             give your answer again and end it with a sentence in plain words."
        ),
    }
}
/// Result of a call in an answer that the provider stopped.
pub(crate) const REFUSED: &str = "Not run: the provider stopped the answer that asked for this call.";
/// Result of a call after the step limit.
pub(crate) const TOOLS_OFF: &str = "Not run: the step limit is reached and tools are off.";
/// Result of a call that was repeated too often.
pub(crate) const REPEATED: &str =
    "Not run: the same call with the same arguments was made too often in a row.";
/// Result of a call that the server could not parse.
pub(crate) fn miscalled(message: &str) -> String {
    format!(
        "Not run: the model server could not read this call ({message}). Call the tool again by its name, with \
         arguments that are one JSON object and match its schema."
    )
}

/// Result of an open call when a denial stopped the turn.
pub(crate) const STOPPED_BY_DENIAL: &str =
    "Not finished: another call was denied, and denials stop the turn.";
/// Result of an open call when the turn was cancelled.
pub(crate) const CANCELLED: &str = "Not finished: the turn was cancelled.";
/// Why a background job is lost.
pub(crate) const JOBS_KILLED: &str = "a person killed it";
pub(crate) const JOB_LOST: &str = "agentd went down or the session was stopped while it ran";
/// Appended if the call was already running.
pub(crate) const WAS_RUNNING: &str = "It was running; what it had done until then may remain.";
/// Result of a running call that was closed after a crash.
pub(crate) const OUTCOME_UNKNOWN: &str = "Interrupted, outcome unknown: the daemon stopped while this ran. Check what it did before you do it again.";

/// Note after the same call was made too often.
pub(crate) fn repeating(times: u32) -> String {
    format!(
        "You have made the same tool call with the same arguments {times} times in a row. Its result will not change. \
         Do something else, or say what keeps you."
    )
}

/// Note after the same few steps were made too often.
pub(crate) fn cycling(length: usize, times: usize) -> String {
    let what = match length {
        1 => "the same calls".to_owned(),
        length => format!("the same {length} steps in turn"),
    };
    format!(
        "You have made {what} {times} times in a row, with the same results. They will not change. Do something else, or \
         say what keeps you."
    )
}

/// Note after steps in which every call failed.
pub(crate) fn failing(steps: u32) -> String {
    format!(
        "Every tool call of the last {steps} steps failed. Stop, explain what goes wrong and what you need, and go on \
         only with a different approach."
    )
}

/// Nudge after an announced action that was not taken.
pub(crate) const fn nudge(cjk: bool) -> &'static str {
    if cjk {
        "请直接执行你提到的操作,不要只是描述。"
    } else {
        "Do what you announced now, with a tool call; do not only describe it."
    }
}

/// Note before the summary at the step limit.
pub(crate) fn sum_up(cap: u32) -> String {
    format!(
        "The limit of {cap} steps is reached and tools are off now. Sum up what is done, what is not, and what should \
         happen next."
    )
}

/// Note when a budget is nearly used up.
pub(crate) fn near_the_end(limit: LimitKind) -> String {
    let what = limit_name(limit);
    format!("At least 90 % of this session's {what} budget is used. Finish the work soon.")
}

/// The most files that a note lists.
const NAMED: usize = 20;

/// Note after a person restored files or the conversation.
pub(crate) fn put_back(files: &[String], rewound: bool, recorded: bool) -> String {
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
            "The person undid changes of these files: {named}{more}. "
        ));
        words.push_str(if recorded {
            "What commands did elsewhere was not undone."
        } else {
            "What commands did was not undone."
        });
    }
    words.push_str(" Read a file again before you rely on what it holds.");
    words
}

/// The name of a limit within a sentence.
pub(crate) const fn limit_name(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Steps => "step",
        LimitKind::Tokens => "token",
        LimitKind::Cost => "money",
        LimitKind::Time => "time",
        LimitKind::Depth => "depth",
    }
}

/// The tool that shows a plan for approval.
pub(crate) const EXIT_PLAN_MODE: &str = "ExitPlanMode";
/// The tool that makes a plan of steps.
pub(crate) const PLAN: &str = "Plan";

/// The reminder with each input in plan mode. Sub-agents cannot show a plan: they answer with it.
pub(crate) fn plan_mode(can_show: bool) -> String {
    let show = if can_show {
        format!("call {EXIT_PLAN_MODE} with the plan")
    } else {
        "answer with the plan".to_owned()
    };
    format!(
        "Plan mode is on: only reading is allowed, and calls that write, run commands or reach the network are denied. \
         Explore, then {show} (summary, current state, steps, tests, risks)."
    )
}
/// Note after a person ended plan mode.
pub(crate) const PLAN_MODE_IS_OVER: &str =
    "Plan mode is over: you may act now, as the permission rules allow.";
/// Result of a request to leave plan mode when it is off.
pub(crate) const NOT_IN_PLAN_MODE: &str = "Plan mode is not on, so there is nothing to leave: do the work.";

/// Result of a plan that a person approved.
pub(crate) fn plan_approved(to: PermissionMode, decided: &ApprovalDecided) -> String {
    let mode = match to {
        PermissionMode::Default => "default",
        PermissionMode::AcceptEdits => "accept-edits",
        PermissionMode::Plan => "plan",
        PermissionMode::Yolo => "yolo",
    };
    let said = decided
        .message
        .as_deref()
        .map(str::trim)
        .filter(|said| !said.is_empty());
    let said = said
        .map(|said| format!(" The person adds: {said}"))
        .unwrap_or_default();
    format!(
        "The plan is approved. Plan mode is over, the mode is {mode} now: carry the plan out, step by step.{said}"
    )
}

/// Result of a plan that was not approved.
pub(crate) fn plan_refused(decided: &ApprovalDecided) -> String {
    let who = match decided.decision {
        Decision::Expired => "Nobody answered in time",
        Decision::Allow | Decision::Deny | Decision::Answer | Decision::Withdrawn => {
            "The plan is not approved"
        }
    };
    let said = decided
        .message
        .as_deref()
        .map(str::trim)
        .filter(|said| !said.is_empty());
    match said {
        Some(said) => format!(
            "{who}: {said}\nPlan mode stays on. Fix the plan, or give it as your answer if nobody can approve it."
        ),
        None => {
            format!("{who}. Plan mode stays on: ask what is to be changed, or give the plan as your answer.")
        }
    }
}

/// Note at the start of a turn that begins with a plan.
pub(crate) fn make_a_plan(plan: &Plan, limits: &Planning) -> String {
    let open = plan.open();
    if !open.is_empty() {
        return format!(
            "Steps {} of your plan are open. Go on with them, or change the plan with the tool {PLAN} if the task has changed.",
            numbers(&open)
        );
    }
    format!(
        "Begin with a plan: look as far as you need to, then call the tool {PLAN} with at most {} steps, each with how it is \
         checked. Do one step after the other, do its check, and report it done with what the check gave.",
        limits.max_steps
    )
}

/// Reminder of open steps before the end of a turn.
pub(crate) fn steps_are_open(open: &[usize]) -> String {
    format!(
        "Steps {} of your plan are not reported done. Do them and their checks now; if they cannot be done, say why and end.",
        numbers(open)
    )
}

/// Result of a call that changed the plan.
pub(crate) fn plan_kept(plan: &Plan) -> String {
    let done = plan
        .steps
        .iter()
        .filter(|step| step.status == PlanStatus::Done)
        .count();
    let next = plan
        .steps
        .iter()
        .zip(1..)
        .find(|(step, _)| step.status == PlanStatus::Pending);
    let next = match next {
        Some((step, number)) => format!(" Next is step {number}: {} (check: {}).", step.title, step.check),
        None => " All steps are done and checked.".to_owned(),
    };
    format!(
        "The plan is kept: {done} of {} steps are done.{next}",
        plan.steps.len()
    )
}

fn numbers(open: &[usize]) -> String {
    let numbers: Vec<String> = open.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

/// Why a sub-agent is paused, resumed or told to end.
pub(crate) const PAUSED_WITH_PARENT: &str = "the session that it works for is paused";
pub(crate) const RESUMED_WITH_PARENT: &str = "the session that it works for goes on";
pub(crate) const NOT_WANTED: &str = "its parent does not wait for it any more";

/// Result of a delegation below the maximum depth.
pub(crate) fn too_deep(deepest: u32) -> String {
    format!(
        "Sub-agents go at most {deepest} deep, and this is the deepest. Do the task yourself, step by step."
    )
}

/// Result of a delegated call: how the sub-agent ended.
pub(crate) fn of_child(child: SessionId, ended: &Ended) -> String {
    let said = ended.text.trim();
    if ended.reason == Some(EndReason::Completed) && ended.error.is_none() {
        return if said.is_empty() {
            "The sub-agent completed its task and said nothing.".to_owned()
        } else {
            said.to_owned()
        };
    }
    let why = ended
        .error
        .as_ref()
        .map_or("it did nothing", |error| error.message.as_str());
    let mut text = format!(
        "The sub-agent {} did not complete its task: {why}.",
        child.short()
    );
    if !said.is_empty() {
        text.push_str(" Its last words were:\n");
        text.push_str(said);
    }
    text
}

/// The session works in another directory.
pub(crate) fn moved(workdir: &str) -> String {
    format!("The working directory is now {workdir}. It has the files of the earlier one; use the new path.")
}

/// A person moved the session to another directory.
pub(crate) fn moved_by_person(workdir: &str) -> String {
    format!(
        "The working directory is now {workdir}, because a person moved the session; use the new path. Files of the earlier directory may be missing or different: look before you go on."
    )
}

/// A working directory that was made again with the files that the store kept.
pub(crate) fn restored(workdir: &str, as_of: Seq, missing: &[String]) -> String {
    let mut text = format!(
        "The working directory was lost and made again. It is now {workdir}; use the new path. Its files are as of event {as_of} of this session."
    );
    if !missing.is_empty() {
        text.push_str(" Missing in them: ");
        text.push_str(&missing.join("; "));
        text.push_str(". Look before you go on: repeat what is needed.");
    }
    text
}

/// The note for an item that a provider refused and that is no longer sent.
pub(crate) fn left_out(items: &str, model: &str) -> String {
    format!(
        "the provider of {model} refuses {items}: the session goes on without, and the log keeps everything"
    )
}
