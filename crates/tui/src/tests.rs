//! Screens of both views, and what keys do there.

use crate::*;
use agentd_protocol::{
    ApprovalQuestion, Delta, Event, OpenApproval, RunState, SessionId, Stamp, Status, Summary, Synced,
    Timestamp, WaitReason,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_763_629_200_123);
const LATER: Timestamp = NOW.plus_ms(5_000);

#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
fn event(seq: u64, body: Value) -> Event {
    let mut value = json!({
        "v": 1, "session": SessionId::NIL, "seq": seq, "at": NOW, "by": "user:ana",
        "turn": agentd_protocol::TurnId::NIL,
    });
    let fields = value.as_object_mut().unwrap();
    fields.extend(body.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn summary(state: RunState, reason: &str) -> Summary {
    Summary {
        name: "fix the greeting".into(),
        model: "opus".into(),
        workdir: "/home/ana/project".into(),
        ..Summary::new(SessionId::NIL, Status::new(state, reason, NOW))
    }
}

fn setup() -> Setup {
    Setup {
        theme: Theme::new(Depth::None, Ground::Dark),
        writes: true,
        history: Vec::new(),
        commands: Vec::new(),
        windows: [("opus".to_owned(), 200_000)].into(),
        detach: ('p', 'q'),
        open: false,
    }
}

fn call() -> Value {
    json!(Stamp::new(NOW, 7).call())
}

fn tool() -> Value {
    json!(Stamp::new(NOW, 9).tool_call())
}

/// A conversation with a tool call, hostile text in every field, and a streaming answer.
fn conversation() -> SessionView {
    let mut view = SessionView::new(
        &summary(RunState::RunningModel, "step 2: opus answers"),
        setup(),
        NOW,
    );
    let input = json!(Stamp::new(NOW, 5).input());
    let evil = "\u{1b}]0;title\u{7}\u{202e}evil";
    let usage = json!({"input": 40_000, "output": 120});
    let events = [
        json!({"type": "input.accepted", "input": input, "delivery": "start",
               "content": [{"type": "text", "text": format!("Fix the greeting. {evil}")}]}),
        json!({"type": "turn.started", "inputs": [input]}),
        json!({"type": "model.started", "call": call(), "attempt": 1, "step": 1, "max_steps": 100, "inputs": [input],
               "provider": "anthropic", "model": "opus-id", "configured": "opus", "input_tokens_estimate": 9}),
        json!({"type": "model.finished", "call": call(), "attempt": 1, "stop_reason": "tool_use", "usage": usage,
               "latency": {}, "cost_usd": 0.25, "content": [
                   {"type": "thinking", "text": format!("First I look.\nThen I think. {evil}")},
                   {"type": "text", "text": format!("# Plan\n\n1. look at *greet.sh*\n2. fix it\n\n{evil}")}]}),
        json!({"type": "tool.proposed", "tool_call": tool(), "name": "Bash", "index": 0,
               "input": {"command": "sh test.sh", "note": evil}}),
        json!({"type": "tool.started", "tool_call": tool(), "title": format!("Bash sh test.sh {evil}"),
               "effect": "exec", "sandbox": "confined"}),
        json!({"type": "tool.finished", "tool_call": tool(), "status": "error", "duration_ms": 146,
               "llm_text": format!("FAILED {evil}\n[exit code 1]\n結果は悪い\n4\n5\n6\n7")}),
        json!({"type": "model.started", "call": call(), "attempt": 1, "step": 2, "max_steps": 100,
               "provider": "anthropic", "model": "opus-id", "configured": "opus", "input_tokens_estimate": 41_000}),
    ];
    for (seq, body) in (1..).zip(events) {
        view.event(&event(seq, body));
    }
    view.synced(&Synced {
        seq: 8,
        status: Status::new(RunState::RunningModel, "step 2: opus answers", NOW),
        approvals: Vec::new(),
        partial: Some(format!(
            "The greeting is wrong: `Helo` instead of **Hello** {evil}"
        )),
    });
    view
}

/// What the daemon answers to the view's wish for a question.
fn shown_by_the_daemon() -> ApprovalQuestion {
    let open = question();
    let lines = agentd_text::question_lines(&open);
    ApprovalQuestion {
        approval: open.approval,
        session: open.session,
        shown: agentd_text::shown(&lines),
        lines,
    }
}

fn screen(view: &mut SessionView, width: u16, height: u16, now: Timestamp) -> String {
    if let Some(approval) = view.wants_question() {
        view.question(approval, Ok(Box::new(shown_by_the_daemon())));
    }
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let drawn = terminal.draw(|frame| {
        view.arrange(frame.area(), now);
        view.draw(frame);
    });
    drawn.unwrap();
    terminal.backend().to_string()
}

fn press(view: &mut SessionView, code: KeyCode) -> Option<Action> {
    view.key(KeyEvent::new(code, KeyModifiers::NONE), LATER)
}

fn question() -> OpenApproval {
    let asked = agentd_protocol::ApprovalKind::Tool;
    let mut open = OpenApproval::new(Stamp::new(NOW, 3).approval(), asked, SessionId::NIL, NOW);
    open.tool = Some("Bash".into());
    open.title = "Bash chmod +x greet.sh".into();
    open.detail = "chmod +x greet.sh\u{202e}".into();
    open.about.directory = Some("/home/ana/project".into());
    open.about.rule = Some("mode:default".into());
    open.scopes = vec![agentd_protocol::Scope::Once, agentd_protocol::Scope::Session];
    open
}

#[test]
fn a_conversation_at_two_sizes_shows_nothing_that_a_terminal_obeys() {
    let mut view = conversation();
    for (width, height) in [(80, 24), (160, 50)] {
        let shown = screen(&mut view, width, height, LATER);
        assert!(
            !shown.contains('\u{1b}') && !shown.contains('\u{202e}'),
            "{shown}"
        );
        insta::assert_snapshot!(format!("conversation_{width}x{height}"), shown);
    }
    // Unfolded: the arguments, the reasoning, the whole output.
    view.key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL), LATER);
    let shown = screen(&mut view, 80, 50, LATER);
    assert!(
        shown.contains("command: sh test.sh") && shown.contains("Then I think."),
        "{shown}"
    );
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\u{202e}'),
        "{shown}"
    );
}

#[test]
fn a_question_is_shown_with_everything_and_keys_reach_it_later() {
    let mut view = conversation();
    let mut synced = Synced {
        seq: 8,
        status: Status::new(RunState::Waiting(WaitReason::Approval), "Bash chmod", NOW),
        approvals: vec![question()],
        partial: None,
    };
    view.synced(&synced);
    insta::assert_snapshot!("question_80x24", screen(&mut view, 80, 24, LATER));
    let answered = press(&mut view, KeyCode::Char('y'));
    let Some(Action::Answer {
        approval,
        line,
        shown,
    }) = answered
    else {
        panic!("{answered:?}");
    };
    assert_eq!(
        shown,
        Some(shown_by_the_daemon().shown),
        "it names what was shown"
    );
    assert_eq!((approval.approval, line.as_str()), (question().approval, "y"));
    assert!(!screen(&mut view, 80, 24, LATER).contains("your decision"));
    // It was not delivered: it is asked again.
    view.refused(question().approval, false);
    assert!(screen(&mut view, 80, 24, LATER).contains("your decision"));
    synced.approvals.clear();
    view.synced(&synced);
    assert!(!screen(&mut view, 80, 24, LATER).contains("your decision"));
}

#[test]
fn i7_keys_that_are_typed_while_a_question_appears_do_not_answer_it() {
    let answers = |after: u64| {
        let mut view = conversation();
        screen(&mut view, 80, 24, NOW);
        view.at(LATER);
        view.synced(&Synced {
            seq: 8,
            status: Status::new(RunState::Waiting(WaitReason::Approval), "Bash chmod", NOW),
            approvals: vec![question()],
            partial: None,
        });
        screen(&mut view, 80, 24, LATER);
        let key = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
        view.key(key, LATER.plus_ms(after)).is_some()
    };
    assert_eq!([0, 699, 700].map(answers), [false, false, true]);
}

#[test]
fn the_questions_behind_the_open_one_are_named() {
    let mut view = conversation();
    let mut next = question();
    next.approval = Stamp::new(NOW, 4).approval();
    next.title = "Bash make \u{1b}[2Jinstall".into();
    view.synced(&Synced {
        seq: 8,
        status: Status::new(RunState::Waiting(WaitReason::Approval), "Bash chmod", NOW),
        approvals: vec![question(), next],
        partial: None,
    });
    let shown = screen(&mut view, 80, 24, LATER);
    assert!(shown.contains("· 1 more waiting: Bash make "), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn images_are_a_line_until_they_are_asked_for() {
    let mut view = conversation();
    let input = json!(Stamp::new(NOW, 31).input());
    let image = json!({"type": "image", "media_type": "image/png", "data": "AAAA"});
    let events = [
        json!({"type": "input.accepted", "input": input, "delivery": "steer", "content": [image]}),
        json!({"type": "tool.finished", "tool_call": tool(), "status": "ok", "duration_ms": 1, "llm_text": "[a.png]",
               "media": [{"media_type": "image/png", "data": "AAAA"}]}),
    ];
    for (seq, body) in (9..).zip(events) {
        view.event(&event(seq, body));
    }
    assert!(screen(&mut view, 80, 24, LATER).contains("[image: image/png]"));
    press(&mut view, KeyCode::Tab);
    assert_eq!(press(&mut view, KeyCode::Char('v')), Some(Action::Images(9)));
    // The card of the call, above the answer that streams.
    press(&mut view, KeyCode::Char('k'));
    assert_eq!(press(&mut view, KeyCode::Char('v')), Some(Action::Images(10)));
    press(&mut view, KeyCode::Char('['));
    assert_eq!(press(&mut view, KeyCode::Char('v')), None);
    assert!(screen(&mut view, 80, 24, LATER).contains("this entry has no image"));
}

#[test]
fn i7_a_question_does_not_take_the_keys_of_a_message_that_is_being_written() {
    let mut view = conversation();
    screen(&mut view, 80, 24, NOW);
    press(&mut view, KeyCode::Char('h'));
    view.synced(&Synced {
        seq: 8,
        status: Status::new(RunState::Waiting(WaitReason::Approval), "Bash chmod", NOW),
        approvals: vec![question()],
        partial: None,
    });
    for c in "ey".chars() {
        screen(&mut view, 80, 24, LATER);
        assert_eq!(press(&mut view, KeyCode::Char(c)), None);
    }
    assert!(screen(&mut view, 80, 24, LATER).contains("> hey"));
}

#[test]
fn the_transcript_scrolls_folds_searches_and_asks_for_earlier_pages() {
    let mut view = SessionView::new(&summary(RunState::Idle, "waits for input"), setup(), NOW);
    for seq in 1_000..1_100 {
        let note = json!({"type": "warning.raised", "code": "test", "message": format!("line {seq}")});
        view.event(&event(seq, note));
    }
    assert!(screen(&mut view, 80, 24, LATER).contains("line 1099"));
    press(&mut view, KeyCode::PageUp);
    let shown = screen(&mut view, 80, 24, LATER);
    assert!(
        !shown.contains("line 1099") && shown.contains("End follows"),
        "{shown}"
    );
    // What arrives meanwhile moves nothing.
    let note = json!({"type": "warning.raised", "code": "test", "message": "line 1100"});
    view.event(&event(1_100, note));
    assert_eq!(screen(&mut view, 80, 24, LATER), shown);
    press(&mut view, KeyCode::Tab);
    for c in "/line 1003".chars() {
        press(&mut view, KeyCode::Char(c));
    }
    press(&mut view, KeyCode::Enter);
    assert!(screen(&mut view, 80, 24, LATER).contains("line 1003"));
    let action = press(&mut view, KeyCode::Char('g'));
    assert_eq!(action, Some(Action::Older(1_000)));
    let page: Vec<Event> = (990..1_000)
        .map(|seq| {
            event(
                seq,
                json!({"type": "warning.raised", "code": "t", "message": format!("line {seq}")}),
            )
        })
        .collect();
    view.page(&Action::Older(1_000), &page, 1_100);
    press(&mut view, KeyCode::Char('g'));
    assert!(screen(&mut view, 80, 24, LATER).contains("line 990"));
    press(&mut view, KeyCode::Char('G'));
    assert!(screen(&mut view, 80, 24, LATER).contains("line 1100"));
}

#[test]
fn i6_a_long_log_keeps_a_window() {
    let mut view = SessionView::new(&summary(RunState::Idle, ""), setup(), NOW);
    for seq in 1..=9_000 {
        let note = json!({"type": "warning.raised", "code": "test", "message": format!("line {seq}")});
        view.event(&event(seq, note));
    }
    assert!(view.log.entries.len() <= 4_000, "{}", view.log.entries.len());
    assert!(view.log.has_older());
    assert!(screen(&mut view, 80, 24, LATER).contains("line 9000"));
}

#[test]
fn escape_cancels_at_once_unless_a_tool_runs() {
    let mut view = conversation();
    assert_eq!(press(&mut view, KeyCode::Esc), Some(Action::Cancel));
    view.delta(&Delta::Status(Status::new(
        RunState::RunningTool,
        "Bash make",
        NOW,
    )));
    assert_eq!(press(&mut view, KeyCode::Esc), None);
    assert!(screen(&mut view, 80, 24, LATER).contains("Esc again cancels the turn"));
    assert_eq!(press(&mut view, KeyCode::Esc), Some(Action::Cancel));
}

#[test]
fn the_notice_of_a_cancel_ends_with_its_turn() {
    let mut view = conversation();
    assert_eq!(press(&mut view, KeyCode::Esc), Some(Action::Cancel));
    assert!(screen(&mut view, 80, 24, NOW).contains("cancelling the turn"));
    let finished = json!({
        "type": "turn.finished", "reason": "cancelled", "success": false, "text": "", "steps": 1, "tool_calls": 0,
        "usage": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0}, "cost_usd": 0.0
    });
    view.event(&event(90, finished));
    assert!(!screen(&mut view, 80, 24, NOW).contains("cancelling the turn"));
}

#[test]
fn a_countdown_and_a_lost_connection_are_shown() {
    let mut view = conversation();
    let mut status = Status::new(RunState::BackingOff, "attempt 2", NOW);
    (status.until, status.attempt) = (Some(LATER.plus_ms(7_000)), Some(2));
    view.delta(&Delta::Status(status));
    assert!(screen(&mut view, 100, 24, LATER).contains("attempt 2 in 7s"));
    view.connected(false);
    assert!(screen(&mut view, 100, 24, LATER).contains("connection to the daemon lost"));
}

fn fleet() -> FleetView {
    let mut view = FleetView::new(Theme::new(Depth::None, Ground::Dark), NOW);
    let mut asks = summary(RunState::Waiting(WaitReason::Approval), "Bash asks \u{1b}[2J");
    asks.open_approvals = vec![question()];
    asks.labels = [("team".to_owned(), "infra".to_owned())].into();
    let rows = vec![
        asks,
        summary(RunState::RunningTool, "Bash make"),
        summary(RunState::Idle, "waits for input"),
    ];
    let rows: Vec<Summary> = (1..)
        .zip(rows)
        .map(|(seed, row)| Summary {
            session: Stamp::new(NOW, seed).session(),
            ..row
        })
        .collect();
    let mut shot = Snapshot {
        node: "agentd on vm".into(),
        rows,
        approvals: 1,
        spent: Some(agentd_protocol::Spent {
            steps: 10,
            ..Default::default()
        }),
        ..Snapshot::default()
    };
    for row in &shot.rows {
        shot.counts.add(row.status.state, 1);
    }
    assert!(view.refresh(shot.clone(), NOW), "the first answer");
    shot.spent = Some(agentd_protocol::Spent {
        steps: 20,
        usd: 0.5,
        ..Default::default()
    });
    assert!(!view.refresh(shot, LATER), "no row differs");
    view
}

fn fleet_screen(view: &mut FleetView, width: u16, height: u16) -> String {
    if let Some(approval) = view.wants_question() {
        view.question(approval, Ok(Box::new(shown_by_the_daemon())));
    }
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let drawn = terminal.draw(|frame| {
        view.arrange(frame.area(), LATER.plus_ms(1_000));
        view.draw(frame);
    });
    drawn.unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_fleet_at_two_sizes() {
    let mut view = fleet();
    for (width, height) in [(80, 24), (160, 50)] {
        let shown = fleet_screen(&mut view, width, height);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        insta::assert_snapshot!(format!("fleet_{width}x{height}"), shown);
    }
}

#[test]
fn keys_of_the_fleet_choose_rows_and_ask_before_they_cancel() {
    let mut view = fleet();
    fleet_screen(&mut view, 80, 24);
    let mut key = |code| view.key(KeyEvent::new(code, KeyModifiers::NONE), LATER.plus_ms(2_000));
    let second = Stamp::new(NOW, 2).session();
    assert_eq!(key(KeyCode::Char('j')), None);
    assert_eq!(key(KeyCode::Enter), Some(FleetAction::Attach(second)));
    assert_eq!(key(KeyCode::Char('x')), None);
    assert_eq!(key(KeyCode::Char('n')), None, "anything but y cancels nothing");
    key(KeyCode::Char(' '));
    key(KeyCode::Char('x'));
    assert_eq!(key(KeyCode::Char('y')), Some(FleetAction::Cancel(vec![second])));
    for c in "/bug".chars() {
        key(KeyCode::Char(c));
    }
    assert_eq!(key(KeyCode::Enter), None);
    assert_eq!(view.wanted().search, "bug");
}

#[test]
fn i7_a_question_of_the_fleet_is_read_before_it_is_answered() {
    let mut view = fleet();
    view.key(KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE), LATER);
    let early = view.key(KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE), LATER);
    assert_eq!(early, None);
    let shown = fleet_screen(&mut view, 100, 40);
    assert!(
        shown.contains("chmod +x greet.sh") && shown.contains("y allow"),
        "{shown}"
    );
    let answer = view.key(
        KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE),
        LATER.plus_ms(2_000),
    );
    assert!(matches!(answer, Some(FleetAction::Answer { .. })), "{answer:?}");
}

#[test]
fn inputs_that_wait_are_listed_edited_and_withdrawn() {
    let mut view = conversation();
    let inputs = [21, 22].map(|seed| Stamp::new(NOW, seed).input());
    for (seq, (input, delivery)) in (9..).zip(inputs.into_iter().zip(["steer", "queue"])) {
        let body = json!({"type": "input.accepted", "input": input, "delivery": delivery,
            "content": [{"type": "text", "text": format!("wait\u{1b}[2J {seq}")}]});
        view.event(&event(seq, body));
    }
    let shown = screen(&mut view, 80, 24, LATER);
    assert!(shown.contains("  steer: wait"), "{shown}");
    assert!(
        shown.contains("  queue: wait") && shown.contains("Alt-Up edits"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'));
    let up = KeyEvent::new(KeyCode::Up, KeyModifiers::ALT);
    assert_eq!(view.key(up, LATER), None);
    assert_eq!(press(&mut view, KeyCode::Up), None);
    assert_eq!(
        press(&mut view, KeyCode::Delete),
        Some(Action::Withdraw(inputs[0]))
    );
    // The next one is selected now; its text becomes the message.
    assert_eq!(
        press(&mut view, KeyCode::Enter),
        Some(Action::Withdraw(inputs[1]))
    );
    assert!(screen(&mut view, 80, 24, LATER).contains("> wait[2J 10"));
    let gone = json!({"type": "input.cancelled", "input": inputs[1]});
    view.event(&event(11, gone));
    assert!(!screen(&mut view, 80, 24, LATER).contains("queue: wait"));
}

#[test]
fn sub_agents_are_in_the_card_of_their_call_and_in_a_tree() {
    let mut view = conversation();
    let child = Stamp::new(NOW, 77).session();
    let call = json!(Stamp::new(NOW, 78).tool_call());
    let events = [
        json!({"type": "tool.proposed", "tool_call": call, "name": "Task", "index": 0, "input": {}}),
        json!({"type": "tool.started", "tool_call": call, "title": "Task: look", "effect": "read", "sandbox": "none"}),
        json!({"type": "subagent.started", "tool_call": call, "child": child, "purpose": "look"}),
    ];
    for (seq, body) in (9..).zip(events) {
        view.event(&event(seq, body));
    }
    assert!(view.wants_family());
    assert!(screen(&mut view, 80, 30, LATER).contains("↳ starting"));
    let own = Summary::new(SessionId::NIL, Status::new(RunState::RunningTool, "Task", NOW));
    let below = Summary {
        name: "look\u{1b}[2J".into(),
        ..Summary::new(
            child,
            Status::new(RunState::RunningModel, "step 1: opus answers", NOW),
        )
    };
    let rows = [(0, own), (1, below)].map(|(depth, row)| Branch { depth, row });
    view.family(rows.into());
    let shown = screen(&mut view, 100, 30, LATER);
    assert!(
        shown.contains("↳ running(model) step 1: opus answers · 0 steps"),
        "{shown}"
    );
    press(&mut view, KeyCode::F(2));
    let shown = screen(&mut view, 100, 30, LATER);
    assert!(shown.contains("└ look") && !shown.contains('\u{1b}'), "{shown}");
    press(&mut view, KeyCode::Down);
    assert_eq!(press(&mut view, KeyCode::Enter), Some(Action::Open(child)));
    let ended = json!({"type": "subagent.finished", "tool_call": call, "child": child, "reason": "completed",
        "spent": {"steps": 3, "tokens": 1_200, "usd": 0.5}});
    view.event(&event(12, ended));
    let shown = screen(&mut view, 100, 30, LATER);
    assert!(shown.contains("↳ completed · 3 steps · 1.2k tokens"), "{shown}");
    assert!(!view.wants_family());
}

#[test]
fn other_viewers_are_counted() {
    let mut view = conversation();
    assert!(!screen(&mut view, 160, 24, LATER).contains("viewers"));
    view.delta(&Delta::Viewers { count: 3 });
    assert!(screen(&mut view, 160, 24, LATER).contains("3 viewers"));
    view.connected(false);
    assert!(!screen(&mut view, 160, 24, LATER).contains("viewers"));
}

#[test]
fn the_fleet_is_grouped_by_the_values_of_a_label() {
    let mut view = fleet();
    let key = |view: &mut FleetView, code| view.key(KeyEvent::new(code, KeyModifiers::NONE), LATER);
    assert_eq!(key(&mut view, KeyCode::Char('l')), Some(FleetAction::Refresh));
    assert_eq!(view.wanted().rows, 10_000);
    insta::assert_snapshot!("labels_80x24", fleet_screen(&mut view, 80, 24));
    insta::assert_snapshot!("labels_160x50", fleet_screen(&mut view, 160, 50));
    // Keys that act on a session do nothing here.
    assert_eq!(key(&mut view, KeyCode::Char('x')), None);
    key(&mut view, KeyCode::Down);
    assert_eq!(key(&mut view, KeyCode::Enter), Some(FleetAction::Refresh));
    assert_eq!(view.wanted().label, Some(("team", Some("infra"))));
    assert_eq!(key(&mut view, KeyCode::Esc), Some(FleetAction::Refresh));
    assert_eq!(view.wanted().label, None);
    assert_eq!(key(&mut view, KeyCode::Esc), Some(FleetAction::Refresh));
    assert_eq!(key(&mut view, KeyCode::Esc), Some(FleetAction::Quit));
}

#[test]
fn a_mouse_selects_what_it_points_at() {
    use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    let event = |kind, row| MouseEvent {
        kind,
        column: 5,
        row,
        modifiers: KeyModifiers::NONE,
    };
    let click = |row| event(MouseEventKind::Down(MouseButton::Left), row);
    let mut view = fleet();
    fleet_screen(&mut view, 80, 24);
    assert_eq!(view.mouse(click(4)), None);
    let second = Stamp::new(NOW, 2).session();
    assert_eq!(view.mouse(click(4)), Some(FleetAction::Attach(second)));
    assert_eq!(view.mouse(click(1)), None, "the title");
    let mut view = conversation();
    screen(&mut view, 80, 24, LATER);
    assert_eq!(view.mouse(event(MouseEventKind::ScrollUp, 3)), None);
    assert!(screen(&mut view, 80, 24, LATER).contains("End follows"));
}
