//! Hooks around a tool call: before it, instead of a person, after it.

use crate::hooks::{Hooks, Subject};
use agentd_protocol::{HookEvent, HookFinished, SessionId, ToolCallId, ToolOutcome, ToolStatus, VerdictKind};
use agentd_settings::{HOOK_ROUNDS, HookConfig};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The call that hooks are told of.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    /// Whose.
    pub session: SessionId,
    /// Which.
    pub tool_call: ToolCallId,
    /// The canonical name of its tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// The session's working directory.
    pub workdir: PathBuf,
}

/// What hooks want of a call beyond what rules decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    /// At least this.
    pub kind: VerdictKind,
    /// Which hook: `hook:NAME`.
    pub rule: String,
    /// Why.
    pub reason: String,
}

/// What came of the hooks of one call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ran {
    /// One for each hook that was asked.
    pub records: Vec<HookFinished>,
    /// What they want.
    pub narrowing: Option<Narrowing>,
    /// The input that they put in the place of the model's.
    pub input: Option<Value>,
    /// What the model is told beside the result.
    pub context: Option<String>,
    /// What the model reads in the place of the result.
    pub output: Option<String>,
    /// The hook that answers a person's question with yes, as the operator lets it.
    pub permit: Option<Narrowing>,
}

impl Ran {
    /// Nobody knows what the hooks would have said: the call is denied (I7).
    #[must_use]
    pub fn lost(why: &str) -> Self {
        Self {
            narrowing: Some(Narrowing {
                kind: VerdictKind::Deny,
                rule: "hook:error".to_owned(),
                reason: format!("the hooks could not be asked: {why}"),
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
            .unwrap_or_else(|| "a hook decided so".to_owned()),
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
    /// Asks the hooks before a call, one after the other: each sees what the one before made of the input, and the first
    /// that denies is the last that is asked. Who has not seen the input as another left it is asked again; when that has
    /// no end, the call is denied.
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
            reason: "the hooks change each other's input without an end".to_owned(),
        });
        ran
    }

    /// Asks the hooks about a question before a person is asked. They may deny; one that the operator lets answer for the
    /// person may allow, unless another wants the person.
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
                let why = "it may not allow: the operator did not write may_allow";
                record.reason.get_or_insert_with(|| why.to_owned());
            }
        }
        if ran.narrowing.is_some() {
            ran.permit = None;
        }
        ran.records = records;
        ran
    }

    /// Tells the hooks of a result, side by side. What they add is in the order of the configuration; of several that
    /// change the result the last counts.
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

    /// What a result is for hooks.
    #[must_use]
    pub fn event_of(outcome: &ToolOutcome) -> HookEvent {
        if outcome.status == ToolStatus::Ok {
            HookEvent::PostToolUse
        } else {
            HookEvent::PostToolUseFailure
        }
    }
}
