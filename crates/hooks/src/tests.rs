//! The meaning and the combination of answers, with scripted hooks.

use crate::{Ended, HookCall, Hooks, Launch, LifecycleCall, Narrowing, Ran};
use agentd_protocol::{
    HookEvent, HookFinished, HookStatus, SessionId, ToolCallId, ToolOutcome, ToolStatus, VerdictKind,
};
use agentd_settings::{HookConfig, HookFallback, HooksConfig};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Barrier;

#[derive(Debug, Default)]
struct Scripted {
    ends: BTreeMap<String, Ended>,
    told: Mutex<Vec<(String, Value)>>,
}

#[async_trait]
impl Launch for Scripted {
    async fn launch(&self, hook: &HookConfig, _: &Path, input: Vec<u8>) -> Ended {
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
    HookConfig::new(name, event, &["/hook"])
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
async fn hooks_before_a_call_run_in_order_and_see_earlier_changes() {
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
async fn no_hook_runs_after_one_that_denies() {
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
async fn the_operator_can_make_failures_and_timeouts_pass_or_ask() {
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

/// Ends a hook only once this many run at the same time.
#[derive(Debug)]
struct Together {
    barrier: Barrier,
    running: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl Launch for Together {
    async fn launch(&self, hook: &HookConfig, _: &Path, _: Vec<u8>) -> Ended {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.barrier.wait().await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        says(&json!({ "context": hook.name }).to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_after_a_call_run_in_parallel_and_their_texts_stay_in_order() {
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
async fn a_hook_after_a_failed_call_gets_the_error_and_cannot_change_it() {
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

/// Hooks that change the input until it is what they want.
#[derive(Debug)]
struct Stubborn;

#[async_trait]
impl Launch for Stubborn {
    async fn launch(&self, hook: &HookConfig, _: &Path, told: Vec<u8>) -> Ended {
        let told: Value = serde_json::from_slice(&told).unwrap();
        let command = told["input"]["command"].as_str().unwrap();
        let wanted = match hook.name.as_str() {
            "judge" if command.contains("rm") => return exits(2, "", "no rm"),
            "judge" => return says(""),
            "cleaner" => format!("rm x; {command}"),
            _ if command.starts_with(&hook.name) => return says(""),
            name => format!("{name} {command}"),
        };
        says(&json!({ "input": { "command": wanted } }).to_string())
    }
}

async fn changed_by(names: &[&str]) -> Ran {
    let run = names
        .iter()
        .map(|name| hook(name, HookEvent::PreToolUse))
        .collect();
    let hooks = Hooks::new(&config(run), Arc::new(Stubborn));
    hooks.before(call(), &hooks.places()).await
}

#[tokio::test]
async fn i7_a_hook_runs_again_if_a_later_hook_changed_the_input() {
    let ran = changed_by(&["judge", "cleaner"]).await;
    assert_eq!(ran.narrowing, narrowing(VerdictKind::Deny, "hook:judge", "no rm"));
    assert_eq!(ran.records.len(), 3);
}

#[tokio::test]
async fn i6_hooks_that_keep_changing_each_others_input_deny() {
    let ran = changed_by(&["nice", "time"]).await;
    assert_eq!(ran.narrowing.unwrap().rule, "hook:changed");
    assert_eq!(ran.records.len(), 6);
    let ran = changed_by(&["nice"]).await;
    assert_eq!(
        (ran.narrowing, ran.records.len()),
        (None, 1),
        "its own change it has seen"
    );
}

#[tokio::test]
async fn i7_an_answer_that_its_event_does_not_support_is_a_failure() {
    for (event, odd) in [
        (HookEvent::PreToolUse, json!({ "context": "x" })),
        (HookEvent::PermissionRequest, json!({ "input": {} })),
        (HookEvent::PostToolUse, json!({ "decision": "deny" })),
        (HookEvent::UserPromptSubmit, json!({ "decision": "ask" })),
        (HookEvent::SessionStart, json!({ "decision": "allow" })),
        (HookEvent::SessionEnd, json!({ "context": "x" })),
        (HookEvent::Stop, json!({ "decision": "deny" })),
        (HookEvent::SubagentStop, json!({ "context": "x" })),
        (HookEvent::Notification, json!({ "reason": "x" })),
        (HookEvent::Compaction, json!({ "decision": "ask" })),
    ] {
        let launch = Arc::new(Scripted {
            ends: BTreeMap::from([("a".to_owned(), says(&odd.to_string()))]),
            ..Scripted::default()
        });
        let hooks = Hooks::new(&config(vec![hook("a", event)]), launch);
        let call = LifecycleCall {
            event,
            session: SessionId::NIL,
            workdir: "/w".into(),
            prompt: None,
            details: Vec::new(),
        };
        let records = hooks.tell(call, hooks.places()).await;
        assert_eq!(records[0].status, HookStatus::Failed, "{event:?}");
        assert_eq!(
            records[0].decision,
            HookFinished::lost(event, "").decision,
            "{event:?}"
        );
    }
}

#[tokio::test]
async fn the_last_hook_that_changes_a_result_wins_and_records_the_original() {
    let launch = Arc::new(Scripted {
        ends: BTreeMap::from([
            ("a".to_owned(), says(r#"{"output": "from a"}"#)),
            ("b".to_owned(), says(r#"{"output": "from b"}"#)),
        ]),
        ..Scripted::default()
    });
    let run = ["a", "b"].map(|name| hook(name, HookEvent::PostToolUse)).to_vec();
    let hooks = Hooks::new(&config(run), launch);
    let outcome = ToolOutcome::text(ToolStatus::Ok, "built");
    let ran = hooks.after(call(), outcome, hooks.places()).await;
    assert_eq!(ran.output.as_deref(), Some("from b"));
    let replaced: Vec<_> = ran.records.into_iter().map(|record| record.replaced).collect();
    assert_eq!(replaced, [None, Some("built".to_owned())]);
}
