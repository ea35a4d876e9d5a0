//! When a wait is over, and with which code.

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
    outcome(&row(state), last, what).map(|exit| exit.0)
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
    ] {
        assert_eq!(
            code(RunState::Waiting(wait), None, WaitFor::Idle),
            Some(7),
            "{wait:?}"
        );
    }
    assert_eq!(
        code(RunState::Waiting(WaitReason::RateLimit), None, WaitFor::Idle),
        None
    );
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
