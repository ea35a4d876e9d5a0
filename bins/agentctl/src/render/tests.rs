//! Events to lines, amounts to words, rows to tables and JSON shapes.

use super::*;
use crate::output::Row as _;
use agentd_protocol::*;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_763_629_200_123);
const PLAIN: Paint = Paint::new(false);

fn stamp() -> Stamp {
    Stamp::new(NOW, 1)
}

fn event(body: impl Into<EventBody>) -> Event {
    Event {
        v: EVENT_VERSION,
        session: SessionId::NIL,
        seq: 1,
        at: NOW,
        by: Principal::user("ana"),
        turn: None,
        body: body.into(),
    }
}

fn printed(transcript: &mut Transcript, body: impl Into<EventBody>) -> String {
    transcript
        .lines(&event(body))
        .iter()
        .map(|line| line.print(PLAIN))
        .collect()
}

#[test]
fn ages_and_spans_have_one_unit_or_two() {
    let ages = [
        0,
        59_999,
        60_000,
        3_599_000,
        3_600_000,
        86_399_000,
        86_400_000,
        864_000_000,
    ];
    let ages = ages.map(|ms| age(Timestamp(NOW.0 - ms), NOW));
    assert_eq!(ages, ["0s", "59s", "1m", "59m", "1h", "23h", "1d", "10d"]);
    assert_eq!(age(NOW.plus_ms(5_000), NOW), "0s");
    let spans = [0, 999, 1_000, 59_999, 60_000, 185_000, 3_600_000, 7_800_000].map(span);
    assert_eq!(
        spans,
        [
            "0ms", "999ms", "1.0s", "59.9s", "1m00s", "3m05s", "1h00m", "2h10m"
        ]
    );
    let days = [172_799_999, 172_800_000, 2_592_000_000].map(span);
    assert_eq!(days, ["47h59m", "2d00h", "30d00h"]);
}

#[test]
fn changed_settings_are_named_with_their_new_values() {
    let mut transcript = Transcript::new(10);
    let mut update = SessionUpdated {
        title: None,
        model: Some("opus".into()),
        mode: Some(PermissionMode::Plan),
        labels: Some([("team".to_owned(), "a".to_owned())].into()),
        budget: Some(Budget {
            usd: 2.5,
            ..Budget::default()
        }),
        summary: None,
    };
    let line = printed(&mut transcript, update.clone());
    assert!(
        line.contains("model: opus, mode: plan, labels: team=a, budget: usd=2.5"),
        "{line}"
    );
    update.labels = Some([].into());
    update.budget = Some(Budget::default());
    let line = printed(&mut transcript, update);
    assert!(line.contains("labels: none, budget: none"), "{line}");
}

#[test]
fn tokens_and_dollars_are_short() {
    let counts = [0, 999, 1_000, 9_999, 10_000, 999_999, 1_000_000, 12_345_678].map(tokens);
    assert_eq!(
        counts,
        ["0", "999", "1.0k", "9.9k", "10k", "999k", "1.0M", "12.3M"]
    );
    let sums = [0.0, 0.000_4, 0.009_9, 0.01, 1.255, 1234.5].map(dollars);
    assert_eq!(tidy_usd(0.004_671 * 3.0).to_string(), "0.014013");
    assert_eq!(tidy_usd(0.000_000_123).to_string(), "0.000000123");
    assert_eq!(tidy_usd(1234.5), 1234.5);
    assert_eq!(sums, ["$0", "$0.0004", "$0.0099", "$0.01", "$1.25", "$1234.50"]);
}

#[test]
fn no_terminal_control_sequence_is_printed() {
    let nasty = "a\x1b[31mred\x07\u{9b}2J\r\u{202e}evil\u{200b}\u{e0041}\tb\nc";
    let shown = clean(nasty);
    for letter in ['\x1b', '\x07', '\u{9b}', '\r', '\u{202e}', '\u{e0041}'] {
        assert!(!shown.contains(letter), "{shown:?} holds {letter:?}");
    }
    assert!(shown.contains("evil") && shown.contains('\n') && shown.contains('\t'));
    assert!(matches!(
        clean("plain text\nwith lines"),
        std::borrow::Cow::Borrowed(_)
    ));
    assert!(!one_line(nasty, 80).contains('\n'));
    assert_eq!(one_line("a  long\n line", 6), "a lon…");
}

#[test]
fn json_for_a_terminal_is_the_same_value() {
    let value = json!({ "text": "x\u{9b}2J\u{202e}\u{e0041}é\u{1b}" });
    let exact = serde_json::to_string_pretty(&value).unwrap();
    let safe = json_for_terminal(&exact);
    assert!(
        !safe
            .chars()
            .any(|c| matches!(c, '\u{9b}' | '\u{202e}' | '\u{e0041}')),
        "{safe}"
    );
    assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), value);
}

#[test]
fn a_tool_call_is_two_lines_with_its_output_below() {
    let mut transcript = Transcript::new(2);
    let tool_call = stamp().tool_call();
    let proposed = ToolProposed {
        tool_call,
        name: "Bash".into(),
        input: json!({}),
        index: 0,
    };
    assert_eq!(printed(&mut transcript, proposed), "");
    assert_eq!(transcript.tool(tool_call), Some("Bash"));
    let started = ToolStarted {
        tool_call,
        title: "Bash: cargo test".into(),
        effect: EffectClass::Exec,
        sandbox: SandboxLevel::None,
        idempotent: false,
    };
    assert_eq!(printed(&mut transcript, started), "tool     Bash: cargo test\n");
    let outcome = ToolOutcome {
        duration_ms: 1_234,
        ..ToolOutcome::text(ToolStatus::Ok, "one\n\x1b[2Jtwo\nthree\nfour")
    };
    let finished = printed(&mut transcript, ToolFinished { tool_call, outcome });
    let lines: Vec<&str> = finished.lines().collect();
    assert_eq!(lines.len(), 4, "{finished}");
    assert_eq!(
        (lines[0], lines[1], lines[3]),
        (
            "ok       Bash: cargo test (1.2s)",
            "         | one",
            "         | … 2 more lines"
        )
    );
    assert!(!finished.contains('\x1b'));
}

#[test]
fn an_unknown_outcome_and_a_denial_are_shown() {
    let mut transcript = Transcript::new(0);
    let tool_call = stamp().tool_call();
    let mut outcome = ToolOutcome::text(ToolStatus::Interrupted, "interrupted, outcome unknown");
    outcome.outcome_unknown = true;
    let line = printed(&mut transcript, ToolFinished { tool_call, outcome });
    assert_eq!(line, "stopped  (outcome unknown)\n");
    let denied = ToolFinished {
        tool_call,
        outcome: ToolOutcome::text(ToolStatus::Denied, "no"),
    };
    let proposed = ToolProposed {
        tool_call,
        name: "Bash".into(),
        input: json!({}),
        index: 0,
    };
    printed(&mut transcript, proposed);
    assert_eq!(printed(&mut transcript, denied), "denied   Bash\n");
    let verdict = Verdict {
        kind: VerdictKind::Deny,
        rule: "Bash(sudo:*)".into(),
        reason: "forbidden".into(),
    };
    assert_eq!(
        printed(&mut transcript, VerdictGiven { tool_call, verdict }),
        "verdict  deny by Bash(sudo:*): forbidden\n"
    );
}

#[test]
fn a_turn_shows_its_messages_and_its_end() {
    let mut transcript = Transcript::new(3);
    let input = InputAccepted {
        input: stamp().input(),
        key: None,
        delivery: Delivery::Start,
        content: vec![Block::text("fix it\nplease")],
        model: None,
        agent: None,
    };
    assert_eq!(printed(&mut transcript, input), "> fix it\n> please\n");
    let answer = ModelFinished {
        call: stamp().call(),
        attempt: 1,
        content: vec![Block::text("On it.")],
        stop_reason: StopReason::EndTurn,
        usage: Usage::default(),
        cost_usd: None,
        latency: Latency::default(),
        credential: None,
        reading: agentd_protocol::Reading::default(),
    };
    assert_eq!(printed(&mut transcript, answer), "On it.\n");
    let finished = TurnFinished {
        reason: EndReason::ModelError,
        text: "On it.".into(),
        steps: 2,
        tool_calls: 1,
        usage: Usage {
            input: 1_500,
            ..Usage::default()
        },
        cost_usd: 0.02,
        error: Some(TurnError {
            class: "auth".into(),
            message: "the key is wrong".into(),
        }),
    };
    assert_eq!(
        printed(&mut transcript, finished),
        "turn     model_error: 2 steps, 1 tool call, 1.5k tokens, $0.02\n         | auth: the key is wrong\n"
    );
    assert_eq!(
        printed(&mut transcript, EventBody::Unknown),
        "?        an event from a newer version\n"
    );
}

#[test]
fn an_answer_shows_its_author_and_its_scope() {
    let mut transcript = Transcript::new(3);
    let mut decided = ApprovalDecided {
        approval: stamp().approval(),
        decision: Decision::Allow,
        answer: None,
        scope: Scope::Session,
        everywhere: false,
        message: None,
        basis: None,
    };
    assert_eq!(
        printed(&mut transcript, decided.clone()),
        "answer   allowed by user:ana (session)\n"
    );
    decided.decision = Decision::Deny;
    decided.message = Some("not today".into());
    assert_eq!(
        printed(&mut transcript, decided),
        "answer   denied by user:ana (session): not today\n"
    );
}

fn fragment(block: u32, offset: u64, text: &str) -> Fragment {
    Fragment {
        call: stamp().call(),
        attempt: 1,
        block,
        offset,
        text: text.to_owned(),
    }
}

#[test]
fn streamed_text_is_printed_once() {
    let mut live = LiveText::default();
    assert_eq!(live.fragment(&fragment(0, 0, "Hel")), "Hel");
    assert_eq!(live.fragment(&fragment(0, 3, "lo")), "lo");
    assert_eq!(
        live.fragment(&fragment(0, 3, "lo")),
        "",
        "a piece that comes twice"
    );
    assert_eq!(live.fragment(&fragment(0, 4, "o!")), "!", "a piece that overlaps");
    assert_eq!(
        live.finish(&[Block::text("Hello! Bye.")]),
        Rest::Behind(" Bye.".into())
    );
    assert!(!live.open());
}

#[test]
fn missed_pieces_come_with_the_answer() {
    let mut live = LiveText::default();
    assert_eq!(live.fragment(&fragment(0, 0, "one ")), "one ");
    assert_eq!(live.fragment(&fragment(0, 8, "three")), "", "a gap");
    assert_eq!(live.fragment(&fragment(0, 13, "!")), "");
    assert_eq!(
        live.finish(&[Block::text("one two three!")]),
        Rest::Behind("two three!".into())
    );
}

#[test]
fn notes_about_a_result_wait_for_the_result() {
    let mut stamp = Stamp::new(NOW, 9);
    let (first, second) = (stamp.call(), stamp.call());
    let of = |call, text: &str| Fragment {
        call,
        attempt: 1,
        block: 0,
        offset: 0,
        text: text.to_owned(),
    };
    let mut early = Early::default();
    assert_eq!(
        early.admit(&of(first, "a")),
        Some(of(first, "a")),
        "a viewer that knows no call waits for none"
    );
    assert_eq!(early.started(first, 1), Vec::new());
    assert_eq!(early.admit(&of(first, "b")), Some(of(first, "b")));
    assert_eq!(early.admit(&of(second, "c")), None);
    assert_eq!(early.started(second, 1), vec![of(second, "c")]);
    assert_eq!(early.admit(&of(first, "late")), None);
    assert_eq!(early.started(second, 2), Vec::new());
}

#[test]
fn a_lag_affects_only_its_call() {
    let mut live = LiveText::default();
    live.lagged();
    assert_eq!(live.fragment(&fragment(0, 0, "fresh")), "fresh");
    live.lagged();
    assert_eq!(live.fragment(&fragment(0, 9, "more")), "");
    assert_eq!(live.partial("fresh text "), " text ");
    assert_eq!(live.fragment(&fragment(0, 11, "goes on")), "goes on");
}

#[test]
fn a_late_viewer_continues_after_the_partial_text() {
    let mut live = LiveText::default();
    assert_eq!(live.partial("one two"), "one two");
    assert_eq!(live.fragment(&fragment(1, 4, "two three")), " three");
    assert_eq!(live.partial("one two three four"), " four", "after a reconnect");
    assert_eq!(
        live.finish(&[Block::text("one two three four")]),
        Rest::Behind(String::new())
    );
}

#[test]
fn a_new_attempt_starts_over() {
    let mut live = LiveText::default();
    live.fragment(&fragment(0, 0, "bad"));
    assert!(live.drop_attempt());
    let second = Fragment {
        attempt: 2,
        ..fragment(0, 0, "good")
    };
    assert_eq!(live.fragment(&second), "good");
    assert_eq!(
        live.finish(&[Block::text("other")]),
        Rest::Instead("other".into())
    );
}

fn summary_row() -> Summary {
    serde_json::from_value(json!({
        "session": stamp().session(), "name": "fix", "state": "waiting(approval)", "reason": "Bash: rm x",
        "since": NOW, "model": "sonnet", "mode": "default", "workdir": "/w", "labels": {"team": "infra"}, "seq": 9,
        "steps": 3, "usage": {"input": 1000, "output": 200, "cache_read": 0, "cache_write": 0, "reasoning": 0},
        "cost_usd": 0.5, "created_at": Timestamp(NOW.0 - 120_000), "updated_at": NOW,
        "budget": {"tokens": 0, "usd": 2.0, "time_ms": 0, "steps": 0},
        "open_approvals": [{"approval": stamp().approval(), "kind": "tool", "session": stamp().session(),
            "tool": "Bash", "title": "Bash: rm x", "detail": "rm x", "choices": [], "scopes": ["once"], "asked_at": NOW}]
    }))
    .unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn ps_and_show_have_exactly_the_fields_of_the_contract() {
    let ps = [
        "session",
        "name",
        "state",
        "reason",
        "since",
        "model",
        "workdir",
        "labels",
        "seq",
        "steps",
        "usage",
        "cost_usd",
        "created_at",
        "updated_at",
        "parent",
    ];
    let row = serde_json::to_value(SessionRow::from(summary_row())).unwrap();
    assert_eq!(keys(&row), ps);
    assert_eq!(
        keys(&row["usage"]),
        ["input", "output", "cache_read", "cache_write", "reasoning"]
    );
    assert_eq!(
        (&row["parent"], &row["state"]),
        (&Value::Null, &json!("waiting(approval)"))
    );
    let show = serde_json::to_value(SessionDetail::from(summary_row())).unwrap();
    let more = ["turn", "open_approvals", "queue", "budget", "last_error"];
    assert_eq!(keys(&show), [&ps[..], &more[..]].concat());
}

#[test]
fn approvals_have_exactly_the_fields_of_the_contract() {
    let open = summary_row().open_approvals.remove(0);
    let row = serde_json::to_value(ApprovalRow::from(open)).unwrap();
    let fields = [
        "approval",
        "kind",
        "session",
        "tool",
        "title",
        "detail",
        "bytes",
        "sha256",
        "choices",
        "asked_at",
        "expires_at",
        "scopes",
    ];
    assert_eq!(keys(&row), fields);
}

#[test]
fn a_session_is_one_row_and_one_page() {
    let row = SessionRow::from(summary_row());
    let short = row.session.short();
    let cells = [
        "fix",
        "waiting(approval)",
        "Bash: rm x",
        "2m",
        "sonnet",
        "3",
        "1.2k",
        "$0.50",
    ];
    assert_eq!(row.cells(false, NOW), [&[short.as_str()], &cells[..]].concat());
    assert_eq!(row.cells(true, NOW).len(), SessionRow::columns(true).len());
    let page = SessionDetail::from(summary_row()).text(PLAIN, NOW);
    for part in [
        "state      waiting(approval) for 0s: Bash: rm x",
        "labels     team=infra",
        "budget     $2.00",
        "Bash: rm x",
    ] {
        assert!(page.contains(part), "{page}");
    }
}

#[test]
fn a_prompt_says_what_a_wider_answer_would_allow() {
    let mut open = summary_row().open_approvals.remove(0);
    let lines = |open: &OpenApproval| {
        agentd_text::laid_out(&agentd_text::question_lines(open), 80)
            .iter()
            .map(agentd_text::Line::text)
            .collect::<Vec<_>>()
    };
    assert!(
        lines(&open).contains(&"  │ rm x".to_owned()),
        "{:?}",
        lines(&open)
    );
    assert_eq!(choices_line(&open), "y allow, n [reason] deny");
    open.scopes = vec![Scope::Once, Scope::Session, Scope::Always];
    open.grant = Some("allow Bash(rm x)".into());
    open.about.reach = Some(agentd_protocol::Reach {
        place: "/w".into(),
        ..agentd_protocol::Reach::default()
    });
    let scope = "  scope   session or always would also allow: allow Bash(rm x)".to_owned();
    assert!(lines(&open).contains(&scope), "{:?}", lines(&open));
    assert_eq!(
        choices_line(&open),
        "y allow, s for this session, a always in this project, e always, everywhere, n [reason] deny"
    );
    open.choices = vec![Choice {
        id: "continue".into(),
        label: "Go on".into(),
    }];
    assert_eq!(choices_line(&open), "type 1 to 1");
}
