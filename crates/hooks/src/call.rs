//! Tool call hooks: before a call, in place of a person's approval, and after a call.

use crate::hooks::{Hooks, Subject};
use agentd_protocol::{HookEvent, HookFinished, SessionId, ToolCallId, ToolOutcome, ToolStatus, VerdictKind};
use agentd_settings::{HOOK_ROUNDS, HookConfig};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The tool call that hooks hear of.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    /// The session of the call.
    pub session: SessionId,
    /// The id of the call.
    pub tool_call: ToolCallId,
    /// The canonical name of its tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// The session's working directory.
    pub workdir: PathBuf,
}

/// A restriction that hooks add to the decision of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    /// The minimum verdict.
    pub kind: VerdictKind,
    /// The hook that demands it: `hook:NAME`.
    pub rule: String,
    /// The reason.
    pub reason: String,
}

/// The combined outcome of a call's hooks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ran {
    /// One record per hook that ran.
    pub records: Vec<HookFinished>,
    /// The restriction that they demand.
    pub narrowing: Option<Narrowing>,
    /// The input with which they replace the model's.
    pub input: Option<Value>,
    /// Text for the model in addition to the result.
    pub context: Option<String>,
    /// Text for the model in place of the result.
    pub output: Option<String>,
    /// The hook that approves in place of a person, if the operator permits that.
    pub permit: Option<Narrowing>,
}

impl Ran {
    /// The outcome of hooks that could not run: the call is denied (I7).
    #[must_use]
    pub fn lost(why: &str) -> Self {
        Self {
            narrowing: Some(Narrowing {
                kind: VerdictKind::Deny,
                rule: "hook:error".to_owned(),
                reason: format!("could not run the hooks: {why}"),
            }),
            ..Self::default()
        }
    }

    fn narrow(&mut self, record: &HookFinished) {
        let Some(kind) = record.decision else { return };
        if self
            .narrowing
            .as_ref()
            .is_none_or(|narrowing| narrowing.kind < kind)
        {
            self.narrowing = Some(wish(record, kind));
        }
    }
}

fn wish(record: &HookFinished, kind: VerdictKind) -> Narrowing {
    Narrowing {
        kind,
        rule: format!("hook:{}", record.hook),
        reason: record
            .reason
            .clone()
            .unwrap_or_else(|| "a hook decided this".to_owned()),
    }
}

impl HookCall {
    fn subject(&self) -> Subject {
        Subject {
            tool_call: Some(self.tool_call),
            prompt: None,
            workdir: self.workdir.clone(),
            told: json!({
                "session": self.session,
                "tool_call": self.tool_call,
                "tool": self.tool,
                "input": self.input,
                "workdir": self.workdir,
            }),
        }
    }
}

impl Hooks {
    /// Runs the hooks before a call, one after the other: each sees the input as the previous one left it, and the first
    /// denial stops the sequence. A hook that has not seen a later change of the input runs again; if that never ends,
    /// the call is denied.
    pub async fn before(&self, mut call: HookCall, places: &Semaphore) -> Ran {
        let hears = |hook: &&HookConfig| hook.hears(HookEvent::PreToolUse, &call.tool);
        let hooks: Vec<&HookConfig> = self.run.iter().filter(hears).collect();
        let mut unseen = vec![true; hooks.len()];
        let mut ran = Ran::default();
        for _ in 0..HOOK_ROUNDS {
            for (n, hook) in hooks.iter().enumerate() {
                if unseen.get_mut(n).is_none_or(|unseen| !std::mem::take(unseen)) {
                    continue;
                }
                let record = self.ask(hook, &call.subject(), places).await;
                ran.narrow(&record);
                if let Some(input) = record.input.as_ref().filter(|input| **input != call.input) {
                    call.input = input.clone();
                    ran.input = Some(input.clone());
                    unseen.iter_mut().for_each(|unseen| *unseen = true);
                    unseen.get_mut(n).into_iter().for_each(|unseen| *unseen = false);
                }
                let denied = record.decision == Some(VerdictKind::Deny);
                ran.records.push(record);
                if denied {
                    return ran;
                }
            }
            if !unseen.contains(&true) {
                return ran;
            }
        }
        ran.narrowing = Some(Narrowing {
            kind: VerdictKind::Deny,
            rule: "hook:changed".to_owned(),
            reason: "the hooks keep changing each other's input".to_owned(),
        });
        ran
    }

    /// Runs the hooks for an approval before a person is asked. They may deny; a hook with `may_allow` may approve in
    /// place of the person, unless another hook demands the person.
    pub async fn instead(&self, call: HookCall, (rule, reason): (String, String), places: &Semaphore) -> Ran {
        let event = HookEvent::PermissionRequest;
        let mut subject = call.subject();
        if let Some(fields) = subject.told.as_object_mut() {
            fields.insert("rule".to_owned(), json!(rule));
            fields.insert("reason".to_owned(), json!(reason));
        }
        let mut records = self.in_turn(event, &call.tool, &subject, places).await;
        let mut ran = Ran::default();
        for record in &mut records {
            let may_allow = |hook: &HookConfig| hook.name == record.hook && hook.may_allow;
            if record.decision != Some(VerdictKind::Allow) {
                ran.narrow(record);
            } else if self.run.iter().any(may_allow) {
                ran.permit.get_or_insert_with(|| wish(record, VerdictKind::Allow));
            } else {
                record.decision = None;
                let why = "it may not allow: the operator did not set may_allow";
                record.reason.get_or_insert_with(|| why.to_owned());
            }
        }
        if ran.narrowing.is_some() {
            ran.permit = None;
        }
        ran.records = records;
        ran
    }

    /// Runs the hooks after a result, in parallel. Their additions are in the order of the configuration; if several
    /// replace the result, the last one counts.
    pub async fn after(&self, call: HookCall, outcome: ToolOutcome, places: Arc<Semaphore>) -> Ran {
        let event = Self::event_of(&outcome);
        let mut subject = call.subject();
        if let Some(fields) = subject.told.as_object_mut() {
            fields.insert("status".to_owned(), json!(outcome.status));
            fields.insert("result".to_owned(), json!(outcome.llm_text));
        }
        let mut records = self.at_once(event, &call.tool, subject, places).await;
        let mut output = None;
        if let Some(last) = records.iter_mut().rfind(|record| record.output.is_some()) {
            output.clone_from(&last.output);
            last.replaced = Some(outcome.llm_text);
        }
        Ran {
            context: HookFinished::words(&records),
            output,
            records,
            ..Ran::default()
        }
    }

    /// The hook event of a result.
    #[must_use]
    pub fn event_of(outcome: &ToolOutcome) -> HookEvent {
        if outcome.status == ToolStatus::Ok {
            HookEvent::PostToolUse
        } else {
            HookEvent::PostToolUseFailure
        }
    }
}
