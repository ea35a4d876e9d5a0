//! One-line summaries of events.

use crate::amount::count;
use crate::amount::{span, tokens, word};
use crate::entries::{input_text, model_failed, turn_finished};
use crate::live::text_of;
use agentd_protocol::{
    EventBody, HookFinished, InputCancelled, IntentClassified, IntentSource, JobFinished, PlanStatus,
    PlanStep, SessionImported, SessionMoved, SessionRecovered, SessionUpdated, SideCallFinished,
    SubagentFinished, TodoItem, TodoStatus, Workspace, WorkspaceCheckpointed, WorkspacePrepared,
    WorkspaceRestored,
};

/// The event in one line.
pub fn summary(body: &EventBody) -> String {
    match body {
        EventBody::SessionCreated(e) => format!("created: {} ({}, {})", e.title, e.model, e.workdir),
        EventBody::SessionUpdated(e) => updated(e),
        EventBody::SideCallFinished(e) => side_call(e),
        EventBody::SessionPaused(e) => format!("paused: {}", e.reason),
        EventBody::SessionResumed(e) => format!("resumed: {}", e.reason),
        EventBody::SessionClosed(e) => format!("closed: {}", e.reason),
        EventBody::SessionRecovered(e) => recovered(e),
        EventBody::SessionMoved(e) => moved(e),
        EventBody::SessionImported(e) => imported(e),
        EventBody::ImportedEvent(e) => {
            let told = e.event.hearsay();
            format!("imported {}: {}", told.body.kind(), summary(&told.body))
        }
        EventBody::InputAccepted(e) => input_text(&e.content),
        EventBody::InputCancelled(e) => taken_back(e),
        EventBody::NoteInjected(e) => format!("{}: {}", word(&e.kind), e.text),
        body @ (EventBody::ContextCompacted(_)
        | EventBody::ContextTruncated(_)
        | EventBody::ContextPruned(_)
        | EventBody::ContextTrimmed(_)
        | EventBody::CompactionAsked(_)
        | EventBody::ContextKept(_)) => context(body),
        EventBody::LimitReached(e) => format!("{} at {}: {}", word(&e.limit), e.value, e.action),
        EventBody::HookFinished(e) => hook(e),
        EventBody::TodoUpdated(e) => format!("to do: {}", todo(&e.items)),
        EventBody::ModeChanged(e) => format!("mode {}, previously {}", word(&e.to), word(&e.from)),
        EventBody::IntentClassified(e) => intent(e),
        EventBody::PlanUpdated(e) => plan(&e.steps),
        body @ (EventBody::JobStarted(_) | EventBody::JobFinished(_) | EventBody::JobLost(_)) => job(body),
        EventBody::SubagentStarted(e) => format!("{} started: {}", e.child.short(), e.purpose),
        EventBody::SubagentFinished(e) => subagent_finished(e),
        EventBody::WorkspaceCheckpointed(e) => checkpoint(e),
        EventBody::WorkspaceCreated(e) => works_in(&e.workspace),
        EventBody::WorkspaceRestored(e) => restored(e),
        EventBody::WorkspacePrepared(e) => prepared(e),
        EventBody::WarningRaised(e) => format!("{}: {}", e.code, e.message),
        EventBody::HistoryStarted(_)
        | EventBody::HistoryFailed(_)
        | EventBody::UndoApplied(_)
        | EventBody::SessionRewound(_)
        | EventBody::SessionForked(_) => history(body),
        body @ (EventBody::TransferStarted(_) | EventBody::TransferFinished(_)) => transfer(body),
        EventBody::ApprovalEscalated(e) => {
            format!("no answer to {} in time (level {})", e.approval.short(), e.level)
        }
        body @ (EventBody::RuleAdded(_) | EventBody::RuleRemoved(_)) => rule(body),
        body @ (EventBody::TurnStarted(_)
        | EventBody::ModelStarted(_)
        | EventBody::ModelFinished(_)
        | EventBody::ModelFailed(_)
        | EventBody::ToolProposed(_)
        | EventBody::VerdictGiven(_)
        | EventBody::ApprovalAsked(_)
        | EventBody::ApprovalDecided(_)
        | EventBody::ToolStarted(_)
        | EventBody::ToolFinished(_)
        | EventBody::TurnFinished(_)
        | EventBody::Unknown) => in_turn(body),
    }
}

fn rule(body: &EventBody) -> String {
    match body {
        EventBody::RuleAdded(e) => format!("rule added: {}", e.rule),
        EventBody::RuleRemoved(e) => format!("rule removed: {}", e.rule),
        _ => String::new(),
    }
}

/// Changes of files that are brought elsewhere.
fn transfer(body: &EventBody) -> String {
    match body {
        EventBody::TransferStarted(e) => match &e.branch {
            Some(branch) => format!("bringing the changes as branch {branch} to {}", e.to),
            None => format!("bringing the changes to {}", e.to),
        },
        EventBody::TransferFinished(e) => match &e.error {
            Some(error) => format!("could not bring the changes there: {error}"),
            None => format!("brought {} there", count(e.files, "changed file")),
        },
        _ => String::new(),
    }
}

fn moved(event: &SessionMoved) -> String {
    match &event.workdir {
        Some(workdir) => format!("moved to {workdir} on node {}", event.node),
        None => format!("moved to node {}", event.node),
    }
}

/// The source of an imported log, and how to read its lines.
fn imported(event: &SessionImported) -> String {
    let sum = event.sum.get(..12).unwrap_or_default();
    let what = match event.source.as_str() {
        "" => String::new(),
        source => format!("imported from {source}: "),
    };
    let lines = count(event.events, "line");
    let session = event.from.short();
    let open = match event.closed.len() {
        0 => String::new(),
        open => format!(", closed {open} open items"),
    };
    format!(
        "{what}{lines} of session {session} (sha256 {sum}){open}; imported lines are marked with ¦ and have no effect here"
    )
}

fn updated(event: &SessionUpdated) -> String {
    let pairs = |pairs: &mut dyn Iterator<Item = String>| match pairs.collect::<Vec<_>>().join(" ") {
        none if none.is_empty() => "none".to_owned(),
        pairs => pairs,
    };
    let labels = event.labels.as_ref();
    let labels = labels.map(|labels| pairs(&mut labels.iter().map(|(key, value)| format!("{key}={value}"))));
    let budget = event.budget.as_ref().map(|budget| {
        let limits = [
            ("tokens", budget.tokens > 0, budget.tokens.to_string()),
            ("usd", budget.usd > 0.0, budget.usd.to_string()),
            ("time", budget.time_ms > 0, span(budget.time_ms)),
            ("steps", budget.steps > 0, budget.steps.to_string()),
        ];
        let limits = limits.into_iter().filter(|(_, limited, _)| *limited);
        pairs(&mut limits.map(|(name, _, limit)| format!("{name}={limit}")))
    });
    let changes = [
        ("title", event.title.clone()),
        ("model", event.model.clone()),
        ("mode", event.mode.map(|mode| word(&mode))),
        ("labels", labels),
        ("budget", budget),
        ("summary", event.summary.clone()),
    ];
    let changes = changes.into_iter();
    let changes = changes.filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    changes.collect::<Vec<_>>().join(", ")
}

fn subagent_finished(event: &SubagentFinished) -> String {
    let how = event
        .reason
        .map_or_else(|| "had no turn".to_owned(), |reason| word(&reason));
    let (child, steps) = (event.child.short(), count(event.spent.steps, "step"));
    let spent = format!("{steps}, {} tokens", tokens(event.spent.tokens));
    let result = event.result.lines().next().unwrap_or_default();
    let colon = if result.is_empty() { "" } else { ": " };
    format!("{child} {how} ({spent}){colon}{result}")
}

/// A model call outside the turns (such as a title), and its cost.
fn side_call(event: &SideCallFinished) -> String {
    let (what, cost) = (event.purpose.as_str(), tokens(event.usage.total()));
    match &event.error {
        Some(error) => format!("{what} by {} failed: {error}, {cost} tokens", event.model),
        None => format!("{what} by {}, {cost} tokens", event.model),
    }
}

fn intent(event: &IntentClassified) -> String {
    let who = match event.source {
        IntentSource::Heuristics => "",
        IntentSource::Model => " (by a model)",
    };
    format!("intent {}{who}: {}", word(&event.label), event.reason)
}

fn files_of(number: usize) -> String {
    count(u64::try_from(number).unwrap_or(u64::MAX), "file")
}

/// Recorded files.
fn checkpoint(e: &WorkspaceCheckpointed) -> String {
    let tree: String = e.tree.chars().take(12).collect();
    let mut text = format!("files recorded as {tree}");
    if !e.left_out.is_empty() {
        text.push_str(&format!(", without {}", e.left_out.join(", ")));
    }
    if let Some(why) = &e.not_kept {
        text.push_str(&format!("; the store has no copy: {why}"));
    }
    text
}

/// Events about background jobs.
#[expect(clippy::wildcard_enum_match_arm, reason = "the caller sends no other event")]
fn job(body: &EventBody) -> String {
    match body {
        EventBody::JobStarted(e) => format!("background job {}: {}", e.job, e.command),
        EventBody::JobFinished(e) => job_finished(e),
        EventBody::JobLost(e) => format!("background job {} was lost: {}", e.job, e.reason),
        _ => String::new(),
    }
}

fn restored(e: &WorkspaceRestored) -> String {
    format!(
        "made again with the files of event {}: {}",
        e.as_of,
        works_in(&e.workspace)
    )
}

fn works_in(workspace: &Workspace) -> String {
    format!(
        "works in {}, a {} of {}",
        workspace.path, workspace.kind, workspace.source
    )
}

/// Setup commands.
fn prepared(e: &WorkspacePrepared) -> String {
    let number = u64::try_from(e.commands.len()).unwrap_or(u64::MAX);
    match &e.error {
        None => format!("workspace set up by {}", count(number, "command")),
        Some(error) => error.clone(),
    }
}

/// Events about undo, rewind and fork.
#[expect(clippy::wildcard_enum_match_arm, reason = "the caller sends no other event")]
fn history(body: &EventBody) -> String {
    match body {
        EventBody::HistoryStarted(e) => match (e.files.len(), e.rewind_to) {
            (_, Some(to)) if !e.trees.is_empty() => format!("rewinding to {to}, with the files"),
            (_, None) if !e.trees.is_empty() => "undoing changes of the working directory".to_owned(),
            (0, Some(to)) => format!("rewinding to {to}"),
            (files, Some(to)) => format!("rewinding to {to}, with {}", files_of(files)),
            (files, None) => format!("undoing changes of {}", files_of(files)),
        },
        EventBody::HistoryFailed(e) => format!("not restored: {}", e.message),
        EventBody::UndoApplied(e) => {
            let files = e.changes.iter().map(|change| change.path.as_str());
            let files: Vec<&str> = files.chain(e.paths.iter().map(String::as_str)).collect();
            match files.as_slice() {
                [] => "undone: the files already had that content".to_owned(),
                files => format!("undone: {} (undo id {})", files.join(", "), e.undo_id),
            }
        }
        EventBody::SessionRewound(e) => format!("the conversation was rewound to {}", e.to_seq),
        EventBody::SessionForked(e) => format!("forked from {} at {}", e.from, e.at_seq),
        _ => String::new(),
    }
}

/// Events that changed the size of a conversation's context.
fn context(body: &EventBody) -> String {
    let from_to = |before, after| format!("{} to {} tokens", tokens(before), tokens(after));
    match body {
        EventBody::ContextCompacted(e) => {
            let by = e.summarised_by.as_ref();
            let by = by.map_or_else(String::new, |by| format!(", summary by {by}"));
            let why = e.retold_because.as_ref();
            let why = why.map_or_else(String::new, |why| format!(", not read from the cache: {why}"));
            let size = from_to(e.tokens_before, e.tokens_after);
            format!("compacted ({}): {size}{by}{why}", e.cause.as_str())
        }
        EventBody::ContextTruncated(e) => {
            let size = from_to(e.tokens_before, e.tokens_after);
            format!("{} long tool results cut: {size}", e.results)
        }
        EventBody::ContextPruned(e) => {
            let size = from_to(e.tokens_before, e.tokens_after);
            format!("{} old tool results cleared: {size}", e.results)
        }
        EventBody::ContextTrimmed(e) => {
            let size = from_to(e.tokens_before, e.tokens_after);
            format!("{} old messages omitted: {size}", e.messages)
        }
        EventBody::CompactionAsked(_) => "requested: before the next model call".to_owned(),
        EventBody::ContextKept(e) => format!("not compacted: {}", e.reason),
        _ => String::new(),
    }
}

/// Why an input was removed from the queue.
pub(crate) fn taken_back(event: &InputCancelled) -> String {
    match &event.reason {
        Some(reason) => format!("input {} was rejected: {reason}", event.input.short()),
        None => format!("withdrawn: {}", event.input.short()),
    }
}

fn hook(said: &HookFinished) -> String {
    let mut line = format!("hook {} ({:?}): {}", said.hook, said.event, word(&said.status));
    if let Some(decision) = &said.decision {
        line.push_str(&format!(", {}", word(decision)));
    }
    if said.input.is_some() {
        line.push_str(", changed the input");
    }
    if said.output.is_some() {
        line.push_str(", changed the result");
    }
    if let Some(reason) = &said.reason {
        line.push_str(&format!(": {reason}"));
    }
    line
}

/// Events inside a turn.
fn in_turn(body: &EventBody) -> String {
    if let EventBody::ModelStarted(e) = body {
        format!(
            "step {} of {}, attempt {}: {}",
            e.step, e.max_steps, e.attempt, e.model
        )
    } else if let EventBody::ModelFinished(e) = body {
        text_of(&e.content)
    } else if let EventBody::ModelFailed(e) = body {
        model_failed(e, None).text
    } else if let EventBody::ToolProposed(e) = body {
        format!("{} {}", e.name, e.input)
    } else if let EventBody::VerdictGiven(e) = body {
        format!(
            "{} by {}: {}",
            word(&e.verdict.kind),
            e.verdict.rule,
            e.verdict.reason
        )
    } else if let EventBody::ApprovalAsked(e) = body {
        e.title.clone()
    } else if let EventBody::ApprovalDecided(e) = body {
        word(&e.decision)
    } else if let EventBody::ToolStarted(e) = body {
        e.title.clone()
    } else if let EventBody::ToolFinished(e) = body {
        format!("{} ({})", word(&e.outcome.status), span(e.outcome.duration_ms))
    } else if let EventBody::TurnFinished(e) = body {
        turn_finished(e).text
    } else if let EventBody::TurnStarted(_) = body {
        "started".to_owned()
    } else {
        "from a newer version".to_owned()
    }
}

fn job_finished(event: &JobFinished) -> String {
    let job = event.job;
    match (&event.stopped, event.exit_code, event.signal) {
        (Some(why), ..) => format!("background job {job} was stopped: {why}"),
        (None, Some(code), _) => format!("background job {job} ended with exit code {code}"),
        (None, None, Some(signal)) => format!("background job {job} was ended by signal {signal}"),
        (None, None, None) => format!("background job {job} ended"),
    }
}

/// The number of finished steps, and the next step.
fn plan(steps: &[PlanStep]) -> String {
    let done = steps
        .iter()
        .filter(|step| step.status == PlanStatus::Done)
        .count();
    let next = steps.iter().find(|step| step.status == PlanStatus::Pending);
    let next = next
        .map(|step| format!("; next: {}", step.title))
        .unwrap_or_default();
    format!("plan: {done} of {} done{next}", steps.len())
}

fn todo(items: &[TodoItem]) -> String {
    let done = items.iter().filter(|item| item.status == TodoStatus::Completed);
    let count = format!("{} of {} done", done.count(), items.len());
    let current = items.iter().find(|item| item.status == TodoStatus::InProgress);
    current.map_or_else(|| count.clone(), |item| format!("{count}; now: {}", item.content))
}

fn recovered(event: &SessionRecovered) -> String {
    if event.closed.is_empty() {
        return "recovered after a restart; nothing was open".to_owned();
    }
    let closed: Vec<String> = event
        .closed
        .iter()
        .map(|one| format!("{} {}", one.what, one.how))
        .collect();
    format!("recovered after a restart: {}", closed.join(", "))
}
