//! Logged calls judged again by other rules.

use super::*;
use agentd_policy::Rule;
use agentd_protocol::*;
use agentd_settings::ToolsConfig;
use agentd_tools::Registry;
use serde_json::{Value, json};

struct Log {
    stamp: Stamp,
    events: Vec<Event>,
}

impl Log {
    fn new(rules: &[&str]) -> Self {
        let created: SessionCreated = serde_json::from_value(json!({
            "title": "t", "project": "w", "workdir": "/w", "model": "m", "mode": "default",
            "limits": LoopLimits::default(), "budget": Budget::default(), "rules": rules
        }))
        .unwrap();
        let mut log = Self {
            stamp: Stamp::new(Timestamp(1_763_629_200_123), 1),
            events: Vec::new(),
        };
        log.push(created);
        log
    }

    fn push(&mut self, body: impl Into<EventBody>) {
        self.events.push(Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq: u64::try_from(self.events.len()).unwrap() + 1,
            at: self.stamp.at,
            by: Principal::user("ana"),
            turn: None,
            body: body.into(),
        });
    }

    fn call(&mut self, name: &str, input: Value, kind: VerdictKind, rule: &str) -> ToolCallId {
        let tool_call = self.stamp.tool_call();
        self.push(ToolProposed {
            tool_call,
            name: name.into(),
            input,
            index: 0,
        });
        self.push(VerdictGiven {
            tool_call,
            verdict: Verdict {
                kind,
                rule: rule.into(),
                reason: String::new(),
            },
        });
        tool_call
    }

    fn bash(&mut self, command: &str, kind: VerdictKind, rule: &str) -> ToolCallId {
        self.call("Bash", json!({ "command": command }), kind, rule)
    }

    /// (judged, passed over, title: before -> after)
    fn replay(&self, rules: &[&str]) -> (u64, u64, Vec<String>) {
        let rules = rules
            .iter()
            .map(|rule| Rule::parse(rule, Source::Operator).unwrap());
        let base = Policy::new(None).with(rules.collect());
        let mut replay = Replay::new(&base);
        // What the program agentd answers, page by page.
        let tools = Registry::builtin(&ToolsConfig::default());
        for page in self.events.chunks(2) {
            let questions = replay.questions(page);
            let answers = questions.iter().map(|question| tools.answer(question)).collect();
            replay.take(page, answers);
        }
        let changes = replay.changes.iter().map(|change| {
            format!(
                "{}: {} -> {}",
                change.title,
                word(change.before),
                word(change.after)
            )
        });
        (replay.judged, replay.passed_over, changes.collect())
    }
}

#[test]
fn only_calls_whose_verdict_changes_are_listed() {
    let mut log = Log::new(&[]);
    log.bash("make", VerdictKind::Ask, "mode:default");
    log.bash("cargo test", VerdictKind::Allow, "Bash(cargo test:*)");
    log.call(
        "Write",
        json!({"file_path": "/w/a", "content": "x"}),
        VerdictKind::Ask,
        "mode:default",
    );
    assert_eq!(
        log.replay(&["allow Bash(make)", "deny Write(a)"]),
        (
            3,
            0,
            vec![
                "Bash make: ask -> allow".to_owned(),
                "Bash cargo test: allow -> ask".to_owned(),
                "Write /w/a: ask -> deny".to_owned(),
            ]
        )
    );
}

#[test]
fn rules_grants_and_mode_apply_from_their_events_on() {
    let mut log = Log::new(&["allow Bash(ls:*)"]);
    log.bash("ls -l", VerdictKind::Allow, "Bash(ls:*)");
    let make = log.bash("make", VerdictKind::Ask, "mode:default");
    let approval = log.stamp.approval();
    log.push(ApprovalAsked {
        approval,
        kind: ApprovalKind::Tool,
        tool_call: Some(make),
        title: String::new(),
        detail: String::new(),
        choices: Vec::new(),
        scopes: vec![Scope::Once, Scope::Session],
        expires_at: None,
        grant: Some("Bash(make)".into()),
        binding: None,
        about: agentd_protocol::About::default(),
    });
    log.push(ApprovalDecided {
        approval,
        decision: Decision::Allow,
        answer: None,
        scope: Scope::Session,
        everywhere: false,
        message: None,
        basis: None,
    });
    log.bash("make", VerdictKind::Allow, "Bash(make)");
    log.push(SessionUpdated {
        title: None,
        model: None,
        mode: Some(PermissionMode::Yolo),
        labels: None,
        budget: None,
        summary: None,
    });
    log.bash("npm i", VerdictKind::Allow, "mode:yolo");
    assert_eq!(log.replay(&[]), (4, 0, vec![]));
}

#[test]
fn calls_that_cannot_be_judged_again_are_counted() {
    let mut log = Log::new(&[]);
    log.call("mcp__x", json!({}), VerdictKind::Ask, "mode:default");
    log.bash("make", VerdictKind::Deny, "gate:timeout");
    assert_eq!(log.replay(&["allow Bash(make)"]), (0, 2, vec![]));
}
