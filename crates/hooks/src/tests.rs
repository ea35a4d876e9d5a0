//! What answers mean and how they are put together, with hooks that say what the test wants.

use crate::{Ended, HookCall, Hooks, Launch, Narrowing, Ran};
use agentd_protocol::{HookEvent, HookStatus, SessionId, ToolCallId, ToolOutcome, ToolStatus, VerdictKind};
use agentd_settings::{HookConfig, HookFallback, HooksConfig};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;

#[derive(Debug, Default)]
struct Scripted {
    ends: BTreeMap<String, Ended>,
    told: Mutex<Vec<(String, Value)>>,
}

#[async_trait]
impl Launch for Scripted {
    async fn launch(&self, hook: &HookConfig, _: &HookCall, input: Vec<u8>) -> Ended {
        let told = serde_json::from_slice(&input).unwrap();
        self.told.lock().unwrap().push((hook.name.clone(), told));
        self.ends[&hook.name].clone()
    }
}

fn says(stdout: &str) -> Ended {
    exits(0, stdout, "")
}

fn exits(code: i32, stdout: &str, stderr: &str) -> Ended {
    Ended::Exited {
        code: Some(code),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

fn hook(name: &str, event: HookEvent) -> HookConfig {
    HookConfig {
        name: name.to_owned(),
        event,
        tools: Vec::new(),
        command: vec!["/hook".to_owned()],
        timeout: Duration::from_secs(60),
        on_failure: None,
        on_timeout: None,
    }
}

fn config(run: Vec<HookConfig>) -> HooksConfig {
    HooksConfig {
        run,
        ..HooksConfig::default()
    }
}

fn call() -> HookCall {
    HookCall {
        session: SessionId::NIL,
        tool_call: ToolCallId::NIL,
        tool: "Bash".to_owned(),
        input: json!({ "command": "make" }),
        workdir: "/w".into(),
    }
}

async fn before(ends: &[(&str, Ended)], change: impl Fn(&mut HookConfig)) -> (Ran, Vec<(String, Value)>) {
    let run = ends.iter().map(|(name, _)| {
        let mut hook = hook(name, HookEvent::PreToolUse);
        change(&mut hook);
        hook
    });
    let config = config(run.collect());
    let launch = Arc::new(Scripted {
        ends: ends
            .iter()
            .map(|(name, end)| ((*name).to_owned(), end.clone()))
            .collect(),
        ..Scripted::default()
    });
    let hooks = Hooks::new(&config, Arc::clone(&launch) as Arc<dyn Launch>);
    let ran = hooks.before(call(), &hooks.places()).await;
    let told = std::mem::take(&mut *launch.told.lock().unwrap());
    (ran, told)
}

fn narrowing(kind: VerdictKind, rule: &str, reason: &str) -> Option<Narrowing> {
    Some(Narrowing {
        kind,
        rule: rule.to_owned(),
        reason: reason.to_owned(),
    })
}

#[tokio::test]
async fn hooks_before_a_call_are_asked_in_order_and_each_sees_the_input_as_it_is_by_then() {
    let ends = [
        ("a", says(r#"{"input": {"command": "make -n"}}"#)),
        ("b", says("")),
        ("c", says(r#"{"decision": "ask", "reason": "look at it"}"#)),
        ("d", says(r#"{"decision": "allow"}"#)),
    ];
    let (ran, told) = before(&ends, |_| {}).await;
    assert_eq!(ran.input, Some(json!({ "command": "make -n" })));
    assert_eq!(ran.narrowing, narrowing(VerdictKind::Ask, "hook:c", "look at it"));
    let inputs: Vec<_> = told
        .iter()
        .map(|(name, told)| (name.as_str(), told["input"]["command"].clone()))
        .collect();
    let changed = json!("make -n");
    assert_eq!(
        inputs,
        [
            ("a", json!("make")),
            ("b", changed.clone()),
            ("c", changed.clone()),
            ("d", changed)
        ]
    );
    assert_eq!(
        told[0].1,
        json!({
            "event": "PreToolUse",
            "session": SessionId::NIL,
            "tool_call": ToolCallId::NIL,
            "tool": "Bash",
            "input": { "command": "make" },
            "workdir": "/w",
        })
    );
}

#[tokio::test]
async fn the_first_hook_that_denies_is_the_last_that_is_asked() {
    let ends = [("a", exits(2, "", "not on a Friday\n")), ("b", says(""))];
    let (ran, told) = before(&ends, |_| {}).await;
    assert_eq!(
        ran.narrowing,
        narrowing(VerdictKind::Deny, "hook:a", "not on a Friday")
    );
    assert_eq!(
        ran.records.iter().map(|record| record.status).collect::<Vec<_>>(),
        [HookStatus::Blocked]
    );
    assert_eq!(told.len(), 1);
}

#[tokio::test]
async fn i7_a_hook_that_fails_denies() {
    for (end, status) in [
        (exits(1, "", "Traceback"), HookStatus::Failed),
        (exits(127, "", "not found"), HookStatus::Failed),
        (exits(1, r#"{"decision": "allow"}"#, ""), HookStatus::Failed),
        (says("fine"), HookStatus::Failed),
        (says(r#"{"decison": "deny"}"#), HookStatus::Failed),
        (says(r#"{"decision": "maybe"}"#), HookStatus::Failed),
        (says(r#"{"input": "make"}"#), HookStatus::Failed),
        (exits(124, "", ""), HookStatus::Timeout),
        (Ended::TimedOut, HookStatus::Timeout),
        (Ended::Failed("no walls".to_owned()), HookStatus::Failed),
        (
            Ended::Exited {
                code: None,
                stdout: String::new(),
                stderr: String::new(),
            },
            HookStatus::Failed,
        ),
    ] {
        let (ran, _) = before(&[("a", end.clone())], |_| {}).await;
        assert_eq!(
            ran.narrowing.map(|narrowing| narrowing.kind),
            Some(VerdictKind::Deny),
            "{end:?}"
        );
        assert_eq!(ran.records[0].status, status, "{end:?}");
    }
    assert_eq!(
        Ran::lost("a panic").narrowing.map(|narrowing| narrowing.kind),
        Some(VerdictKind::Deny)
    );
}

#[tokio::test]
async fn the_operator_may_let_failures_and_time_outs_pass_or_ask() {
    let change = |hook: &mut HookConfig| {
        hook.on_failure = Some(HookFallback::Ignore);
        hook.on_timeout = Some(HookFallback::Ask);
    };
    let (ran, _) = before(&[("a", exits(1, "", "oh"))], change).await;
    assert_eq!(ran.narrowing, None);
    assert_eq!(
        ran.records[0].reason.as_deref(),
        Some("it ended with exit code 1: oh")
    );
    let (ran, _) = before(&[("a", exits(124, "", ""))], change).await;
    assert_eq!(
        ran.narrowing,
        narrowing(VerdictKind::Ask, "hook:a", "it took too long")
    );
    let (ran, _) = before(&[("a", exits(2, "", ""))], change).await;
    assert_eq!(
        ran.narrowing.map(|narrowing| narrowing.kind),
        Some(VerdictKind::Deny)
    );
}

#[tokio::test]
async fn i8_a_known_credential_in_an_answer_is_not_passed_on() {
    agentd_text::register_secret("hook-secret-value-1");
    let end = says(
        r#"{"decision": "ask", "reason": "hook-secret-value-1", "input": {"command": "echo hook-secret-value-1"}}"#,
    );
    let (ran, _) = before(&[("a", end)], |_| {}).await;
    assert_eq!(ran.input, Some(json!({ "command": "echo [redacted]" })));
    assert_eq!(ran.narrowing, narrowing(VerdictKind::Ask, "hook:a", "[redacted]"));
}

/// Ends a hook only when so many run at the same time.
#[derive(Debug)]
struct Together {
    barrier: Barrier,
    running: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl Launch for Together {
    async fn launch(&self, hook: &HookConfig, _: &HookCall, _: Vec<u8>) -> Ended {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.barrier.wait().await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        says(&json!({ "context": hook.name }).to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_after_a_call_run_side_by_side_up_to_the_limit_and_speak_in_order() {
    let launch = Arc::new(Together {
        barrier: Barrier::new(5),
        running: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    });
    let names: Vec<String> = (0..10).map(|n| format!("h{n}")).collect();
    let mut run: Vec<_> = names
        .iter()
        .map(|name| hook(name, HookEvent::PostToolUse))
        .collect();
    run.push(hook("other", HookEvent::PostToolUseFailure));
    let hooks = Hooks::new(&config(run), Arc::clone(&launch) as Arc<dyn Launch>);
    let outcome = ToolOutcome::text(ToolStatus::Ok, "built");
    let ran = hooks.after(call(), outcome, hooks.places()).await;
    let lines: Vec<_> = names.iter().map(|name| format!("[hook {name}] {name}")).collect();
    assert_eq!(ran.context, Some(lines.join("\n")));
    assert_eq!(launch.most.load(Ordering::SeqCst), 5);
    assert_eq!(ran.narrowing, None);
}

#[tokio::test]
async fn a_hook_after_a_call_that_failed_hears_how_and_cannot_change_what_is_done() {
    let launch = Arc::new(Scripted {
        ends: BTreeMap::from([
            ("a".to_owned(), exits(2, "", "see the wiki")),
            ("b".to_owned(), says("junk")),
        ]),
        ..Scripted::default()
    });
    let run = ["a", "b"]
        .map(|name| hook(name, HookEvent::PostToolUseFailure))
        .to_vec();
    let hooks = Hooks::new(&config(run), Arc::clone(&launch) as Arc<dyn Launch>);
    let outcome = ToolOutcome::text(ToolStatus::Timeout, "too slow");
    let ran = hooks.after(call(), outcome, hooks.places()).await;
    assert_eq!(ran.context.as_deref(), Some("[hook a] see the wiki"));
    assert_eq!((ran.narrowing, ran.input), (None, None));
    let told = launch.told.lock().unwrap();
    assert_eq!(
        (&told[0].1["status"], &told[0].1["result"]),
        (&json!("timeout"), &json!("too slow"))
    );
}
