//! When a wait ends, and with which exit code.

use super::*;
use agentd_protocol::WaitReason;
use serde_json::json;

fn row(state: RunState) -> Summary {
    serde_json::from_value(json!({
        "session": agentd_protocol::SessionId::NIL, "name": "n", "state": state, "reason": "", "since": "2026-11-20T09:00:00Z",
        "model": "m", "mode": "default", "workdir": "/w", "labels": {}, "seq": 1, "steps": 0, "usage": {}, "cost_usd": 0.0,
        "created_at": "2026-11-20T09:00:00Z", "updated_at": "2026-11-20T09:00:00Z", "budget": {}
    }))
    .unwrap()
}

fn code(state: RunState, last: Option<EndReason>, what: WaitFor) -> Option<u8> {
    outcome(&row(state), last.map(Exit::of_turn), what).map(|exit| exit.0)
}

#[test]
fn idle_has_the_code_of_the_last_turn() {
    assert_eq!(code(RunState::RunningModel, None, WaitFor::Idle), None);
    assert_eq!(code(RunState::BackingOff, None, WaitFor::Idle), None);
    assert_eq!(code(RunState::Idle, None, WaitFor::Idle), Some(0));
    assert_eq!(
        code(RunState::Idle, Some(EndReason::Completed), WaitFor::Idle),
        Some(0)
    );
    assert_eq!(
        code(RunState::Idle, Some(EndReason::Cancelled), WaitFor::Idle),
        Some(8)
    );
    assert_eq!(
        code(RunState::Failed, Some(EndReason::Budget), WaitFor::Idle),
        Some(9)
    );
    assert_eq!(
        code(RunState::Failed, Some(EndReason::ModelError), WaitFor::Idle),
        Some(6)
    );
    assert_eq!(code(RunState::Failed, None, WaitFor::Idle), Some(6));
    assert_eq!(
        code(RunState::Faulted, Some(EndReason::Completed), WaitFor::Idle),
        Some(6)
    );
    assert_eq!(
        code(RunState::Closed, Some(EndReason::Completed), WaitFor::Idle),
        Some(0)
    );
}

#[test]
fn a_session_that_waits_for_a_person_is_blocked() {
    for wait in [
        WaitReason::Approval,
        WaitReason::Question,
        WaitReason::Limit,
        WaitReason::Quota,
        WaitReason::Credentials,
        WaitReason::Workspace,
    ] {
        assert_eq!(
            code(RunState::Waiting(wait), None, WaitFor::Idle),
            Some(7),
            "{wait:?}"
        );
    }
    for wait in [WaitReason::RateLimit, WaitReason::Provider] {
        assert_eq!(
            code(RunState::Waiting(wait), None, WaitFor::Idle),
            None,
            "{wait:?}"
        );
    }
    assert_eq!(
        code(RunState::Waiting(WaitReason::Approval), None, WaitFor::Closed),
        None
    );
}

#[test]
fn closed_and_approval_wait_for_just_that() {
    assert_eq!(code(RunState::Idle, None, WaitFor::Closed), None);
    assert_eq!(code(RunState::Closed, None, WaitFor::Closed), Some(0));
    assert_eq!(code(RunState::Idle, None, WaitFor::Approval), None);
    assert_eq!(
        code(RunState::Closed, None, WaitFor::Approval),
        Some(5),
        "it will never ask"
    );
}

fn event(seq: Seq, body: &serde_json::Value) -> News {
    let mut event = json!({
        "v": 1, "session": agentd_protocol::SessionId::NIL, "seq": seq, "at": "2026-11-20T09:00:00Z", "by": "user:ana"
    });
    let fields = body.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(fields);
    News::Event(Box::new(serde_json::from_value(event).unwrap()), String::new())
}

fn finished(seq: Seq, reason: &str) -> News {
    let usage = json!({ "input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0 });
    event(
        seq,
        &json!({ "type": "turn.finished", "reason": reason, "text": "", "steps": 1, "tool_calls": 0, "usage": usage }),
    )
}

#[test]
fn the_last_turn_counts_after_the_replay() {
    let mut seen = Seen::default();
    let started = event(2, &json!({ "type": "turn.started", "inputs": [] }));
    for past in [finished(1, "completed"), started, finished(3, "cancelled")] {
        seen.take(&past);
        assert!(!seen.due, "an older turn's end in the replay is no answer");
    }
    seen.take(&News::Synced(Box::new(agentd_protocol::Synced {
        seq: 3,
        status: row(RunState::Idle).status,
        approvals: Vec::new(),
        partial: None,
    })));
    assert!(seen.due);
    assert_eq!(seen.last.map(|(reason, _)| reason), Some(EndReason::Cancelled));
    // The row includes an event that has not arrived yet.
    let mut ahead = row(RunState::Idle);
    ahead.seq = 5;
    assert!(!seen.covers(&ahead));
    seen.take(&event(4, &json!({ "type": "turn.started", "inputs": [] })));
    assert_eq!((seen.due, seen.last), (true, None));
    assert!(!seen.covers(&ahead));
    seen.take(&finished(5, "model_error"));
    assert!(seen.due && seen.covers(&ahead));
    assert_eq!(seen.last.map(|(reason, _)| reason), Some(EndReason::ModelError));
    // After a reconnection the past is replayed.
    seen.take(&News::Retrying);
    seen.take(&finished(6, "completed"));
    assert!(!seen.due);
}
