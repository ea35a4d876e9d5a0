//! Exit codes, as the documented table defines them.

use agentd_protocol::{EndReason, FaultClass, RunState, TurnFinished};
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl Exit {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const FAILURE: Self = Self(1);
    pub(crate) const USAGE: Self = Self(2);
    pub(crate) const CONFLICT: Self = Self(5);
    pub(crate) const TURN_FAILED: Self = Self(6);
    pub(crate) const BLOCKED: Self = Self(7);
    pub(crate) const CANCELLED: Self = Self(8);
    pub(crate) const LIMIT: Self = Self(9);
    pub(crate) const TIMEOUT: Self = Self(124);
    pub(crate) const INTERRUPTED: Self = Self(130);

    /// The exit code for a turn's end reason.
    pub(crate) const fn of_turn(reason: EndReason) -> Self {
        match reason {
            EndReason::Completed => Self::OK,
            EndReason::Cancelled => Self::CANCELLED,
            EndReason::Budget | EndReason::MaxTurns => Self::LIMIT,
            EndReason::ChatDisabled
            | EndReason::Truncated
            | EndReason::LoopDetected
            | EndReason::Denied
            | EndReason::Refused
            | EndReason::ContextOverflow
            | EndReason::ModelError
            | EndReason::ToolError
            | EndReason::InitializationFailed => Self::TURN_FAILED,
        }
    }

    /// The exit code of a finished turn. A turn without an answer failed, even if its reason is `Completed`.
    pub(crate) fn of_finished(turn: &TurnFinished) -> Self {
        match turn.reason {
            EndReason::Completed if !turn.succeeded() => Self::TURN_FAILED,
            reason => Self::of_turn(reason),
        }
    }

    /// The exit code for a session at rest whose last turn is unknown.
    pub(crate) const fn of_rest(state: RunState) -> Self {
        match state {
            RunState::Failed | RunState::Faulted => Self::TURN_FAILED,
            RunState::Queued
            | RunState::Starting
            | RunState::RunningModel
            | RunState::RunningTool
            | RunState::Waiting(_)
            | RunState::BackingOff
            | RunState::Compacting
            | RunState::Paused
            | RunState::Idle
            | RunState::Closed => Self::OK,
        }
    }

    pub(crate) const fn of_fault(class: FaultClass) -> Self {
        Self(class.exit_code())
    }

    /// This code, or `other` if this one is 0.
    pub(crate) const fn or(self, other: Self) -> Self {
        if self.0 == 0 { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_reason_has_the_code_of_the_contract() {
        let table = [
            (EndReason::Completed, 0),
            (EndReason::Cancelled, 8),
            (EndReason::MaxTurns, 9),
            (EndReason::Budget, 9),
            (EndReason::ChatDisabled, 6),
            (EndReason::Truncated, 6),
            (EndReason::LoopDetected, 6),
            (EndReason::Denied, 6),
            (EndReason::Refused, 6),
            (EndReason::ContextOverflow, 6),
            (EndReason::ModelError, 6),
            (EndReason::ToolError, 6),
            (EndReason::InitializationFailed, 6),
        ];
        assert_eq!(
            table.map(|(reason, _)| Exit::of_turn(reason).0),
            table.map(|(_, code)| code)
        );
    }

    #[test]
    fn every_fault_class_has_the_code_of_the_contract() {
        let table = [
            (FaultClass::Invalid, 2),
            (FaultClass::NotFound, 3),
            (FaultClass::Denied, 4),
            (FaultClass::Conflict, 5),
            (FaultClass::Busy, 7),
            (FaultClass::Limit, 9),
            (FaultClass::Unavailable, 69),
            (FaultClass::Version, 76),
            (FaultClass::Timeout, 124),
            (FaultClass::Storage, 1),
            (FaultClass::Internal, 1),
        ];
        assert_eq!(
            table.map(|(class, _)| Exit::of_fault(class).0),
            table.map(|(_, code)| code)
        );
    }

    #[test]
    fn the_first_failure_decides() {
        assert_eq!(Exit::OK.or(Exit::CONFLICT).or(Exit::BLOCKED), Exit::CONFLICT);
        assert_eq!(Exit::OK.or(Exit::OK), Exit::OK);
    }
}
