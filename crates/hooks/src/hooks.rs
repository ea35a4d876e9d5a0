//! The hooks of a node, and how a single hook runs.

use crate::answer::{HookAnswer, read};
use crate::launch::{Ended, Launch};
use agentd_protocol::{HookEvent, HookFinished, InputId, ToolCallId, VerdictKind};
use agentd_settings::{HookConfig, HooksConfig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// How long a hook waits for its turn among the hooks of its session.
const PLACE_WITHIN: Duration = Duration::from_secs(600);

/// The hooks configured by the operator.
#[derive(Debug, Clone)]
pub struct Hooks {
    pub(crate) run: Arc<[HookConfig]>,
    max_concurrent: usize,
    launch: Arc<dyn Launch>,
}

/// The input of a hook.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subject {
    pub(crate) tool_call: Option<ToolCallId>,
    pub(crate) prompt: Option<InputId>,
    pub(crate) workdir: PathBuf,
    /// A JSON object; the name of the event is added to it.
    pub(crate) told: Value,
}

impl Hooks {
    /// Creates the hooks; `launch` starts them.
    #[must_use]
    pub fn new(config: &HooksConfig, launch: Arc<dyn Launch>) -> Self {
        Self {
            run: config.run.clone().into(),
            max_concurrent: usize::try_from(config.max_concurrent).unwrap_or(1),
            launch,
        }
    }

    /// Whether any hook listens to this event.
    #[must_use]
    pub fn hears(&self, event: HookEvent, tool: &str) -> bool {
        self.run.iter().any(|hook| hook.hears(event, tool))
    }

    /// The semaphore shared by a session's hooks; it limits how many run at the same time.
    #[must_use]
    pub fn places(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.max_concurrent))
    }

    /// Runs the hooks one after the other, until one denies.
    pub(crate) async fn in_turn(
        &self,
        event: HookEvent,
        tool: &str,
        subject: &Subject,
        places: &Semaphore,
    ) -> Vec<HookFinished> {
        let mut records = Vec::new();
        for hook in self.run.iter().filter(|hook| hook.hears(event, tool)) {
            let record = self.ask(hook, subject, places).await;
            let denied = record.decision == Some(VerdictKind::Deny);
            records.push(record);
            if denied {
                break;
            }
        }
        records
    }

    /// Runs all hooks at the same time; the records are in the order of the configuration.
    pub(crate) async fn at_once(
        &self,
        event: HookEvent,
        tool: &str,
        subject: Subject,
        places: Arc<Semaphore>,
    ) -> Vec<HookFinished> {
        let lost = (subject.tool_call, subject.prompt);
        let subject = Arc::new(subject);
        let mut asked = JoinSet::new();
        for (n, hook) in self.run.iter().enumerate() {
            if hook.hears(event, tool) {
                let (hooks, hook) = (self.clone(), hook.clone());
                let (subject, places) = (Arc::clone(&subject), Arc::clone(&places));
                asked.spawn(async move { (n, hooks.ask(&hook, &subject, &places).await) });
            }
        }
        let mut records = BTreeMap::new();
        while let Some(record) = asked.join_next().await {
            records.extend(record);
        }
        let hears = |(_, hook): &(usize, &HookConfig)| hook.hears(event, tool);
        let heard = self.run.iter().enumerate().filter(hears);
        heard
            .map(|(n, hook)| records.remove(&n).unwrap_or_else(|| panicked(hook, &lost)))
            .collect()
    }

    pub(crate) async fn ask(&self, hook: &HookConfig, subject: &Subject, places: &Semaphore) -> HookFinished {
        let place = timeout(PLACE_WITHIN, places.acquire()).await;
        let begun = Instant::now();
        let ended = match place {
            Ok(Ok(_place)) => {
                let told = line(hook.event, &subject.told);
                self.launch.launch(hook, &subject.workdir, told).await
            }
            Ok(Err(_)) => Ended::Failed("the session is ending".to_owned()),
            Err(_) => Ended::Failed("it waited too long for other hooks of the session".to_owned()),
        };
        let HookAnswer {
            status,
            decision,
            reason,
            input,
            context,
            output,
        } = read(hook, ended);
        HookFinished {
            tool_call: subject.tool_call,
            prompt: subject.prompt,
            hook: hook.name.clone(),
            event: hook.event,
            status,
            decision,
            reason,
            input,
            context,
            output,
            replaced: None,
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The record of a hook whose task panicked.
fn panicked(hook: &HookConfig, (tool_call, prompt): &(Option<ToolCallId>, Option<InputId>)) -> HookFinished {
    HookFinished {
        tool_call: *tool_call,
        prompt: *prompt,
        hook: hook.name.clone(),
        ..HookFinished::lost(hook.event, "its task panicked")
    }
}

/// The line of JSON that a hook reads on its standard input.
fn line(event: HookEvent, told: &Value) -> Vec<u8> {
    let mut told = told.clone();
    if let Some(fields) = told.as_object_mut() {
        fields.insert("event".to_owned(), serde_json::json!(event));
    }
    let mut line = told.to_string().into_bytes();
    line.push(b'\n');
    line
}
