use super::*;
use agentd_protocol::{
    ChangeBelow, EVENT_VERSION, Principal, SandboxLevel, SessionId, Stamp, ToolFinished, ToolOutcome,
    ToolStarted, ToolStatus, WorkspaceCheckpointed,
};
use serde_json::json;

/// A change: its seq, the recorded files, whether it is part of another.
type Shown = (Seq, Option<(String, String)>, bool);

/// A log that grows.
#[derive(Default)]
struct Log {
    past: Past,
    seq: Seq,
}

impl Log {
    fn take(&mut self, body: impl Into<EventBody>) {
        self.seq += 1;
        self.past.take(&Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq: self.seq,
            at: Timestamp(self.seq),
            by: Principal::agentd(),
            turn: None,
            body: body.into(),
        });
    }

    fn files(&mut self, tree: &str) {
        self.take(WorkspaceCheckpointed {
            tree: tree.to_owned(),
            left_out: Vec::new(),
            kept: None,
            not_kept: None,
        });
    }

    fn call(&mut self, effect: EffectClass, changes: bool) {
        let tool_call = Stamp::new(Timestamp(self.seq), self.seq).tool_call();
        self.take(ToolStarted {
            tool_call,
            title: "t".to_owned(),
            effect,
            sandbox: SandboxLevel::None,
            idempotent: false,
        });
        let mut outcome = ToolOutcome::text(ToolStatus::Ok, "");
        if changes {
            let change = json!({ "path": "a", "before_sha256": "1", "after_sha256": "2" });
            outcome.details = Some(json!({ "undo_id": format!("u{}", self.seq), "changes": [change] }));
        }
        self.take(ToolFinished { tool_call, outcome });
    }

    fn changes(&mut self) -> Vec<Shown> {
        self.past.with_recorded();
        let shown = self.past.changes.iter().map(|change| {
            let trees = change.trees.clone().map(|trees| (trees.before, trees.after));
            (change.seq, trees, change.within)
        });
        shown.collect()
    }
}

fn pair(before: &str, after: &str) -> Option<(String, String)> {
    Some((before.to_owned(), after.to_owned()))
}

#[test]
fn a_command_is_a_change_and_covers_the_single_changes_of_its_step() {
    let mut log = Log::default();
    log.files("A");
    log.call(EffectClass::Write, true);
    log.call(EffectClass::Exec, false);
    log.files("B");
    assert_eq!(
        log.changes(),
        [(3, pair("A", "B"), true), (6, pair("A", "B"), false)]
    );
    let whole = log.past.changes.last().unwrap();
    assert_eq!(
        (whole.end, whole.covers.as_slice(), whole.id.as_str()),
        (5, [3].as_slice(), "B")
    );
    assert_eq!(log.past.recorded.at(4), Some("A"));
    assert_eq!(log.past.recorded.at(5), Some("B"));
}

#[test]
fn a_step_of_file_tools_stays_single_changes() {
    let mut log = Log::default();
    log.files("A");
    log.call(EffectClass::Write, true);
    log.files("B");
    assert_eq!(log.changes(), [(3, pair("A", "B"), false)]);
    assert_eq!(trees(log.past.changes.iter()), None);
}

#[test]
fn what_others_did_between_turns_is_no_change_of_the_session() {
    let mut log = Log::default();
    log.files("A");
    log.call(EffectClass::Exec, false);
    // The command changed nothing; then a person did.
    log.files("A");
    log.files("B");
    log.call(EffectClass::Exec, false);
    log.files("C");
    assert_eq!(log.changes(), [(8, pair("B", "C"), false)]);
}

#[test]
fn effects_that_were_not_recorded_are_not_attributed() {
    let mut log = Log::default();
    log.files("A");
    log.call(EffectClass::Exec, false);
    log.take(agentd_protocol::WarningRaised {
        code: FAILED.to_owned(),
        message: String::new(),
    });
    log.call(EffectClass::Exec, false);
    assert_eq!(log.past.recorded.missed(), Some(log.seq));
    let last = log.seq;
    log.files("B");
    assert_eq!(log.changes(), []);
    log.call(EffectClass::Exec, false);
    log.files("C");
    assert_eq!(log.past.recorded.missed(), Some(last), "it stays unknown");
}

#[test]
fn in_a_workspace_of_its_own_a_gap_is_the_sessions_work() {
    let mut log = Log::default();
    log.past.recorded.own = true;
    log.files("A");
    log.call(EffectClass::Exec, false);
    log.take(agentd_protocol::WarningRaised {
        code: FAILED.to_owned(),
        message: String::new(),
    });
    assert_eq!(log.past.recorded.missed(), Some(3), "nothing covers the call yet");
    log.files("B");
    assert_eq!(log.past.recorded.missed(), None);
    assert_eq!(log.changes(), [(5, pair("A", "B"), false)]);
}

#[test]
fn an_undo_takes_the_place_of_what_it_undid() {
    let mut log = Log::default();
    log.files("A");
    log.call(EffectClass::Exec, false);
    log.files("B");
    log.take(agentd_protocol::UndoApplied {
        undoes: vec![4],
        undoes_below: Vec::<ChangeBelow>::new(),
        undo_id: "A".to_owned(),
        changes: Vec::new(),
        trees: Some(TreeChanged {
            before: "B".to_owned(),
            after: "A".to_owned(),
        }),
        paths: vec!["a".to_owned()],
    });
    assert_eq!(
        log.changes(),
        [(4, pair("A", "B"), false), (5, pair("B", "A"), false)]
    );
    let standing: Vec<Seq> = log.past.standing().map(|change| change.seq).collect();
    assert_eq!(standing, [5]);
    let both = trees(log.past.changes.iter()).unwrap();
    assert_eq!(both.len(), 2);
    log.call(EffectClass::Exec, false);
    log.files("C");
    assert_eq!(log.changes().last(), Some(&(8, pair("A", "C"), false)));
}
