//! The hooks of a node: who is asked, in which order, and what comes of it.

use crate::answer::{Answer, read};
use crate::launch::{Ended, Launch};
use agentd_protocol::{HookEvent, HookFinished, SessionId, ToolCallId, ToolOutcome, ToolStatus, VerdictKind};
use agentd_settings::{HookConfig, HooksConfig};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The hooks that the operator configured.
#[derive(Debug, Clone)]
pub struct Hooks {
    run: Arc<[HookConfig]>,
    max_concurrent: usize,
    launch: Arc<dyn Launch>,
}

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
}

impl Hooks {
    /// These hooks, started by `launch`.
    #[must_use]
    pub fn new(config: &HooksConfig, launch: Arc<dyn Launch>) -> Self {
        Self {
            run: config.run.clone().into(),
            max_concurrent: usize::try_from(config.max_concurrent).unwrap_or(1),
            launch,
        }
    }

    /// Whether a hook is told of this.
    #[must_use]
    pub fn hears(&self, event: HookEvent, tool: &str) -> bool {
        self.run.iter().any(|hook| hook.hears(event, tool))
    }

    /// What a session's hooks share, so that not too many run at the same time.
    #[must_use]
    pub fn places(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.max_concurrent))
    }

    /// Asks the hooks before a call, one after the other: each sees what the one before made of the input, and the first
    /// that denies is the last that is asked.
    pub async fn before(&self, mut call: HookCall, places: &Semaphore) -> Ran {
        let mut ran = Ran::default();
        for hook in self
            .run
            .iter()
            .filter(|hook| hook.hears(HookEvent::PreToolUse, &call.tool))
        {
            let record = self.ask(hook, &call, None, places).await;
            if let Some(kind) = record.decision
                && ran
                    .narrowing
                    .as_ref()
                    .is_none_or(|narrowing| narrowing.kind < kind)
            {
                ran.narrowing = Some(Narrowing {
                    kind,
                    rule: format!("hook:{}", hook.name),
                    reason: record
                        .reason
                        .clone()
                        .unwrap_or_else(|| "a hook decided so".to_owned()),
                });
            }
            if let Some(input) = &record.input {
                call.input = input.clone();
                ran.input = Some(input.clone());
            }
            let denied = record.decision == Some(VerdictKind::Deny);
            ran.records.push(record);
            if denied {
                break;
            }
        }
        ran
    }

    /// Tells the hooks of a result, side by side. What they add is in the order of the configuration.
    pub async fn after(&self, call: HookCall, outcome: ToolOutcome, places: Arc<Semaphore>) -> Ran {
        let event = Self::event_of(&outcome);
        let (call, outcome) = (Arc::new(call), Arc::new(outcome));
        let mut asked = JoinSet::new();
        for (n, hook) in self.run.iter().enumerate() {
            if hook.hears(event, &call.tool) {
                let (hooks, hook, places) = (self.clone(), hook.clone(), Arc::clone(&places));
                let (call, outcome) = (Arc::clone(&call), Arc::clone(&outcome));
                asked.spawn(async move { (n, hooks.ask(&hook, &call, Some(&outcome), &places).await) });
            }
        }
        let mut records = Vec::new();
        while let Some(record) = asked.join_next().await {
            records.extend(record);
        }
        records.sort_by_key(|(n, _)| *n);
        let records: Vec<_> = records.into_iter().map(|(_, record)| record).collect();
        let said: Vec<_> = records
            .iter()
            .filter_map(|record| Some(format!("[hook {}] {}", record.hook, record.context.as_ref()?)))
            .collect();
        Ran {
            context: (!said.is_empty()).then(|| said.join("\n")),
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

    async fn ask(
        &self,
        hook: &HookConfig,
        call: &HookCall,
        outcome: Option<&ToolOutcome>,
        places: &Semaphore,
    ) -> HookFinished {
        let place = places.acquire().await;
        let begun = Instant::now();
        let ended = match place {
            Ok(_place) => self.launch.launch(hook, call, told(hook, call, outcome)).await,
            Err(_) => Ended::Failed("the session ends".to_owned()),
        };
        let Answer {
            status,
            decision,
            reason,
            input,
            context,
        } = read(hook, ended);
        HookFinished {
            tool_call: call.tool_call,
            hook: hook.name.clone(),
            event: hook.event,
            status,
            decision,
            reason,
            input,
            context,
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// What a hook reads.
fn told(hook: &HookConfig, call: &HookCall, outcome: Option<&ToolOutcome>) -> Vec<u8> {
    let mut told = json!({
        "event": hook.event,
        "session": call.session,
        "tool_call": call.tool_call,
        "tool": call.tool,
        "input": call.input,
        "workdir": call.workdir,
    });
    if let (Some(outcome), Some(fields)) = (outcome, told.as_object_mut()) {
        fields.insert("status".to_owned(), json!(outcome.status));
        fields.insert("result".to_owned(), json!(outcome.llm_text));
    }
    let mut line = told.to_string().into_bytes();
    line.push(b'\n');
    line
}
