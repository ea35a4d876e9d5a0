//! Typed lines, open approvals, and the end of a turn.

use super::answer::{ApprovalAnswer, Typed, choice_of, read};
use super::pages::Pages;
use super::turn_watch::TurnWatch;
use crate::exit::Exit;
use crate::render::Paint;
use agentd_protocol::*;
use agentd_viewer::Asks;
use serde_json::json;

const NOW: Timestamp = Timestamp(1_763_629_200_123);

fn open(kind: ApprovalKind, choices: &[&str]) -> OpenApproval {
    OpenApproval {
        title: "Bash: make".into(),
        detail: "make".into(),
        choices: choices
            .iter()
            .map(|id| Choice {
                id: (*id).into(),
                label: id.to_uppercase(),
            })
            .collect(),
        scopes: vec![Scope::Once, Scope::Session],
        grant: Some("Bash(make)".into()),
        about: agentd_protocol::About {
            reach: Some(agentd_protocol::Reach::default()),
            ..agentd_protocol::About::default()
        },
        ..OpenApproval::new(Stamp::new(NOW, 1).approval(), kind, SessionId::NIL, NOW)
    }
}

fn decide(decision: Decision, scope: Scope, answer: Option<&str>, message: Option<&str>) -> Typed {
    let (answer, message) = (answer.map(str::to_owned), message.map(str::to_owned));
    Typed::Decide(ApprovalAnswer {
        decision,
        scope,
        answer,
        message,
    })
}

#[test]
fn letters_answer_an_open_approval() {
    let approval = open(ApprovalKind::Tool, &[]);
    let read = |line| read(line, Some(&approval), false);
    assert_eq!(read("y"), decide(Decision::Allow, Scope::Once, None, None));
    assert_eq!(read(" YES "), decide(Decision::Allow, Scope::Once, None, None));
    assert_eq!(read("s"), decide(Decision::Allow, Scope::Session, None, None));
    assert_eq!(read("n"), decide(Decision::Deny, Scope::Once, None, None));
    assert_eq!(
        read("n use make -n"),
        decide(Decision::Deny, Scope::Once, None, Some("use make -n"))
    );
    assert_eq!(
        read("/deny no"),
        decide(Decision::Deny, Scope::Once, None, Some("no"))
    );
    assert_eq!(
        read("/approve session"),
        decide(Decision::Allow, Scope::Session, None, None)
    );
    assert!(matches!(read("a"), Typed::Unclear(_)), "always is not offered");
    assert!(matches!(read("maybe"), Typed::Unclear(_)));
    assert_eq!(read(""), Typed::Nothing);
}

#[test]
fn choices_are_taken_by_number_id_or_label() {
    let approval = open(ApprovalKind::Limit, &["continue", "stop"]);
    let stop = decide(Decision::Answer, Scope::Once, Some("stop"), None);
    for line in ["2", "stop", "STOP"] {
        assert_eq!(read(line, Some(&approval), false), stop, "{line}");
    }
    assert!(matches!(read("3", Some(&approval), false), Typed::Unclear(_)));
    assert!(matches!(read("0", Some(&approval), false), Typed::Unclear(_)));
    let question = open(ApprovalKind::Question, &[]);
    assert_eq!(
        read("the blue one", Some(&question), true),
        decide(Decision::Answer, Scope::Once, Some("the blue one"), None)
    );
}

#[test]
fn a_number_or_the_beginning_of_just_one_choice_means_that_choice() {
    let choice = |name: &str| Choice {
        id: name.into(),
        label: name.into(),
    };
    let choices = ["keep", "delete it", "delete all", "1"].map(choice);
    let chosen = |line| choice_of(line, &choices);
    for (line, wanted) in [
        ("2", Some("delete it")),
        ("k", Some("keep")),
        ("KEEP", Some("keep")),
        ("delete a", Some("delete all")),
        ("4", Some("1")),
        ("delete them", None),
        ("", None),
    ] {
        assert_eq!(chosen(line), Ok(wanted), "{line:?}");
    }
    // An ambiguous or unknown choice is not guessed.
    for line in ["1", "del", "5", "0"] {
        assert!(chosen(line).is_err(), "{line:?}");
    }
    assert_eq!(
        choice_of("2", &[]),
        Ok(None),
        "without choices a number is a word"
    );
}

#[test]
fn redteam_42_i7_a_question_ends_on_its_last_page() {
    let lines: Vec<String> = (0..100).map(|n| format!("echo {n}")).collect();
    let long = OpenApproval {
        detail: lines.join("\n"),
        ..open(ApprovalKind::Tool, &[])
    };
    let pages = |open: &OpenApproval, size| {
        let lines = agentd_text::question_lines(open);
        let question = ApprovalQuestion {
            approval: open.approval,
            session: open.session,
            shown: agentd_text::shown(&lines),
            lines,
        };
        Pages::new(&question, size, Paint::new(false))
    };
    let mut paged = pages(&long, (80, 24));
    let mut seen = paged.turn();
    assert_eq!((paged.ended(), paged.place().as_str()), (false, "page 1 of 6"));
    assert_eq!(paged.seen(), None, "no hash before the end");
    while !paged.ended() {
        seen = format!("{seen}\n{}", paged.turn());
    }
    assert!(
        lines
            .iter()
            .all(|line| seen.contains(&format!("| {line}").replace('|', "│"))),
        "{seen}"
    );
    assert!(seen.ends_with("end of the call"), "{seen}");
    let hash = agentd_text::shown(&agentd_text::question_lines(&long));
    assert_eq!(paged.seen(), Some(&*hash));
    // Positive control: a short question ends on its first page, but not on a terminal of unknown size.
    for size in [(80, 24), (0, 0)] {
        let mut short = pages(&open(ApprovalKind::Tool, &[]), size);
        short.turn();
        assert_eq!(short.ended(), size.0 > 0);
    }
}

#[test]
fn in_attach_other_lines_are_messages() {
    let approval = open(ApprovalKind::Tool, &[]);
    assert_eq!(
        read("yes but later", Some(&approval), true),
        Typed::Send("yes but later".into())
    );
    assert_eq!(read("y", None, true), Typed::Send("y".into()));
    assert_eq!(
        read("//etc is a path", None, true),
        Typed::Send("//etc is a path".into())
    );
    assert_eq!(read("/cancel", None, true), Typed::Cancel);
    assert_eq!(read("/resume", None, true), Typed::Resume);
    assert_eq!(read("/compact", None, true), Typed::Compact);
    assert_eq!(read("/detach", None, true), Typed::Detach);
    assert_eq!(read("/help", None, true), Typed::Send("/help".into()));
    assert_eq!(read("/help", None, false), Typed::Help);
    assert_eq!(read("/plan a b", None, true), Typed::Send("/plan a b".into()));
    assert!(matches!(read("/approve", None, true), Typed::Unclear(_)));
    assert!(matches!(read("/nope", None, false), Typed::Unclear(_)));
}

fn event(seq: Seq, turn: Option<TurnId>, body: impl Into<EventBody>) -> Event {
    let (session, by) = (SessionId::NIL, Principal::user("bob"));
    Event {
        v: EVENT_VERSION,
        session,
        seq,
        at: NOW,
        by,
        turn,
        body: body.into(),
    }
}

fn asked(approval: ApprovalId) -> Event {
    event(
        1,
        None,
        ApprovalAsked {
            approval,
            kind: ApprovalKind::Tool,
            tool_call: None,
            title: "Bash: make".into(),
            detail: "make".into(),
            choices: Vec::new(),
            scopes: vec![Scope::Once],
            expires_at: None,
            grant: None,
            binding: None,
            about: agentd_protocol::About::default(),
        },
    )
}

fn decided(approval: ApprovalId) -> Event {
    event(
        2,
        None,
        ApprovalDecided {
            approval,
            decision: Decision::Allow,
            answer: None,
            scope: Scope::Once,
            everywhere: false,
            message: None,
            basis: None,
        },
    )
}

#[test]
fn an_approval_answered_elsewhere_is_noticed() {
    let mut stamp = Stamp::new(NOW, 3);
    let (first, second) = (stamp.approval(), stamp.approval());
    let mut asks = Asks::default();
    assert_eq!(asks.observe(&asked(first), Some("Bash")), None);
    assert_eq!(asks.observe(&asked(second), None), None);
    assert_eq!(asks.front().map(|open| open.approval), Some(first));
    asks.answered(first);
    assert_eq!(
        asks.front().map(|open| open.approval),
        Some(second),
        "what was answered here is not asked again"
    );
    assert_eq!(asks.observe(&decided(first), None), None);
    let answer = decided(second);
    let EventBody::ApprovalDecided(words) = answer.body.clone() else {
        unreachable!()
    };
    let elsewhere = asks.observe(&answer, None).unwrap();
    assert_eq!((elsewhere.decided, elsewhere.by), (words, Principal::user("bob")));
    assert_eq!(
        (elsewhere.asked.approval, elsewhere.asked.title.as_str()),
        (second, "Bash: make")
    );
    assert_eq!(asks.front(), None);
    let third = stamp.approval();
    asks.observe(&asked(third), None);
    let mut withdrawn = decided(third);
    if let EventBody::ApprovalDecided(words) = &mut withdrawn.body {
        words.decision = Decision::Withdrawn;
    }
    assert_eq!(asks.observe(&withdrawn, None), None, "no one answered");
    assert_eq!(asks.front(), None);
}

#[test]
fn what_the_daemon_says_is_open_replaces_what_was_known() {
    let mut asks = Asks::default();
    asks.observe(&asked(Stamp::new(NOW, 3).approval()), None);
    asks.synced(&[open(ApprovalKind::Tool, &[])]);
    assert_eq!(asks.front(), Some(&open(ApprovalKind::Tool, &[])));
}

fn finished(reason: EndReason) -> TurnFinished {
    TurnFinished {
        reason,
        text: "done".into(),
        steps: 2,
        tool_calls: 1,
        usage: Usage {
            input: 10,
            ..Usage::default()
        },
        cost_usd: 0.1,
        error: None,
    }
}

#[test]
fn the_result_is_that_of_the_turn_that_took_the_input() {
    let mut stamp = Stamp::new(NOW, 5);
    let (input, other, turn, tool_call) = (stamp.input(), stamp.turn(), stamp.turn(), stamp.tool_call());
    let mut watch = TurnWatch::new(SessionId::NIL, input);
    assert_eq!(
        watch.observe(&event(1, Some(other), finished(EndReason::Completed))),
        None,
        "another turn"
    );
    assert_eq!(
        watch.observe(&event(2, Some(turn), TurnStarted { inputs: vec![input] })),
        None
    );
    assert_eq!((watch.turn(), watch.waits()), (Some(turn), None));
    let proposed = ToolProposed {
        tool_call,
        name: "Ls".into(),
        input: json!({"path": "."}),
        index: 0,
    };
    watch.observe(&event(3, Some(turn), proposed));
    let outcome = ToolOutcome::text(ToolStatus::Ok, "a.rs");
    watch.observe(&event(4, Some(turn), ToolFinished { tool_call, outcome }));
    let result = watch
        .observe(&event(5, Some(turn), finished(EndReason::Completed)))
        .unwrap();
    assert_eq!(result.exit(), Exit::OK);
    assert_eq!(
        serde_json::to_value(&result).unwrap(),
        json!({
            "session": SessionId::NIL, "turn": turn, "success": true, "reason": "completed", "text": "done", "steps": 2,
            "tool_calls": [{"name": "Ls", "input": {"path": "."}, "result": "a.rs", "status": "ok"}],
            "denied_calls": 0,
            "usage": {"input": 10, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0}, "cost_usd": 0.1
        })
    );
}

#[test]
fn a_denied_call_counts_and_fails_only_who_asks_for_that() {
    let mut stamp = Stamp::new(NOW, 8);
    let (input, turn, tool_call) = (stamp.input(), stamp.turn(), stamp.tool_call());
    for (reason, plain, on_deny) in [
        (EndReason::Completed, 0, 7),
        (EndReason::Denied, 6, 7),
        (EndReason::Budget, 9, 9),
    ] {
        let mut watch = TurnWatch::new(SessionId::NIL, input);
        watch.observe(&event(1, Some(turn), TurnStarted { inputs: vec![input] }));
        let proposed = ToolProposed {
            tool_call,
            name: "Bash".into(),
            input: json!({}),
            index: 0,
        };
        watch.observe(&event(2, Some(turn), proposed));
        let outcome = ToolOutcome::text(ToolStatus::Denied, "no");
        watch.observe(&event(3, Some(turn), ToolFinished { tool_call, outcome }));
        let result = watch.observe(&event(4, Some(turn), finished(reason))).unwrap();
        assert_eq!(result.denied_calls, 1);
        let note = result.about_denied().unwrap();
        for way in ["1 call was denied", "--allow", "--mode", "run -d"] {
            assert!(note.contains(way), "{way}: {note}");
        }
        assert_eq!(
            (result.exit().0, result.exit_on_deny().0),
            (plain, on_deny),
            "{reason:?}"
        );
    }
}

#[test]
fn a_steering_input_belongs_to_the_turn_that_it_joins() {
    let mut stamp = Stamp::new(NOW, 6);
    let (input, turn) = (stamp.input(), stamp.turn());
    let mut watch = TurnWatch::new(SessionId::NIL, input);
    let joined = ModelStarted {
        call: stamp.call(),
        attempt: 1,
        step: 2,
        max_steps: 100,
        inputs: vec![input],
        provider: "p".into(),
        model: "m".into(),
        credential: None,
        input_tokens_estimate: 1,
        tools_off: false,
        configured: None,
        thinking: None,
        cache_hour: false,
    };
    assert_eq!(watch.observe(&event(1, Some(turn), joined)), None);
    let result = watch
        .observe(&event(2, Some(turn), finished(EndReason::Budget)))
        .unwrap();
    assert_eq!((result.success, result.exit()), (false, Exit::LIMIT));
}

#[test]
fn an_input_that_no_turn_takes_is_cancelled() {
    let input = Stamp::new(NOW, 7).input();
    let mut watch = TurnWatch::new(SessionId::NIL, input);
    assert_eq!(watch.waits(), Some(input));
    let result = watch
        .observe(&event(1, None, InputCancelled { input, reason: None }))
        .unwrap();
    assert_eq!(
        (result.reason, result.exit()),
        (EndReason::Cancelled, Exit::CANCELLED)
    );
    let mut watch = TurnWatch::new(SessionId::NIL, input);
    let closed = watch.observe(&event(
        1,
        None,
        SessionClosed {
            reason: "done".into(),
        },
    ));
    assert_eq!(closed.unwrap().exit(), Exit::CANCELLED);
}
