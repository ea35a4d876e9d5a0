use super::*;
use agentd_protocol::{
    EVENT_VERSION, HistoryStarted, ImportedEvent, PlanStatus, PlanStep, PlanUpdated, Principal, Quoted,
    SessionImported, Stamp, UndoApplied,
};

fn event(seq: Seq, body: EventBody) -> Event {
    Event {
        v: EVENT_VERSION,
        session: SessionId::NIL,
        seq,
        at: Timestamp(seq),
        by: Principal::agentd(),
        turn: None,
        body,
    }
}

fn change(seq: Seq, path: &str, before: Option<&str>, after: Option<&str>, undoes: &[Seq]) -> Change {
    let file = FileChanged {
        path: path.into(),
        before_sha256: before.map(str::to_owned),
        after_sha256: after.map(str::to_owned),
        mode: None,
    };
    Change {
        seq,
        turn: None,
        id: seq.to_string(),
        files: vec![file],
        at: Timestamp(seq),
        below: None,
        end: seq,
        trees: None,
        within: false,
        covers: Vec::new(),
        covers_below: Vec::new(),
        undoes: undoes.to_vec(),
        undoes_below: Vec::new(),
    }
}

fn seqs(past: &Past) -> Vec<Seq> {
    past.standing().map(|change| change.seq).collect()
}

#[test]
fn a_change_stands_unless_undone_and_again_after_undoing_the_undo() {
    let mut past = Past::default();
    past.changes.push(change(1, "a", None, Some("1"), &[]));
    past.changes.push(change(2, "a", Some("1"), Some("2"), &[]));
    past.changes.push(change(3, "a", Some("2"), Some("1"), &[2]));
    assert_eq!(seqs(&past), [1, 3]);
    past.changes.push(change(4, "a", Some("1"), Some("2"), &[3]));
    assert_eq!(seqs(&past), [1, 2, 4]);
}

#[test]
fn a_rewind_point_restores_its_plan() {
    let plan = |title: &str, replans| PlanUpdated {
        tool_call: Stamp::new(Timestamp(1), 1).tool_call(),
        steps: vec![PlanStep {
            title: title.into(),
            check: "see".into(),
            status: PlanStatus::Pending,
            evidence: None,
        }],
        replans,
        reason: None,
    };
    let mut past = Past::upto(2);
    for (seq, updated) in [(1, plan("a", 0)), (2, plan("b", 1)), (3, plan("c", 2))] {
        past.take(&event(seq, updated.into()));
    }
    let (seq, _, then) = past.point().unwrap();
    assert_eq!((seq, then.steps[0].title.as_str(), then.replans), (2, "b", 1));
}

#[test]
fn undoing_several_changes_restores_each_file_before_its_first_change() {
    let changes = [
        change(1, "a", Some("0"), Some("1"), &[]),
        change(2, "b", None, Some("x"), &[]),
        change(3, "a", Some("1"), Some("2"), &[]),
        change(4, "c", Some("s"), Some("t"), &[]),
        change(5, "c", Some("t"), Some("s"), &[4]),
    ];
    let of = |path: &str, now: Option<&str>, wanted: Option<&str>| FileBack {
        path: path.into(),
        now: now.map(str::to_owned),
        wanted: wanted.map(str::to_owned),
        mode: None,
    };
    let expected = vec![of("a", Some("2"), Some("0")), of("b", Some("x"), None)];
    assert_eq!(back(changes.iter()), expected);
}

#[test]
fn a_repeated_undo_counts_the_files_restored_by_the_interrupted_one() {
    let wanted = |path: &str| FileBack {
        path: path.into(),
        now: Some("2".into()),
        wanted: Some("1".into()),
        mode: None,
    };
    let mut past = Past::default();
    past.changes.push(change(1, "a", Some("1"), Some("2"), &[]));
    past.changes.push(change(2, "b", Some("1"), Some("2"), &[]));
    let begun = HistoryStarted {
        undoes: vec![1, 2],
        files: vec![wanted("a"), wanted("b")],
        ..HistoryStarted::default()
    };
    // The second attempt found `a` restored already and wrote only `b`.
    let applied = UndoApplied {
        undoes: vec![1, 2],
        undo_id: "u".into(),
        changes: change(0, "b", Some("2"), Some("1"), &[]).files,
        undoes_below: Vec::new(),
        trees: None,
        paths: Vec::new(),
    };
    past.take(&event(3, begun.into()));
    past.take(&event(4, applied.into()));
    assert_eq!(seqs(&past), [4]);
    assert!(
        back(past.changes.iter()).is_empty(),
        "both are as they were at first"
    );
}

#[test]
fn the_list_of_remaining_effects_is_bounded() {
    let mut past = Past::default();
    for seq in 0..=60 {
        past.lasting.push((seq, None, format!("Bash {seq}")));
    }
    let all = past.stays(|_, _| true);
    assert_eq!((all.len(), all[0].as_str()), (51, "11 more before these"));
    assert_eq!(past.stays(|seq, _| seq > 58), ["Bash 59", "Bash 60"]);
}

#[test]
fn a_rewind_point_is_never_inside_an_imported_log() {
    let quoted = |seq| {
        let inner = event(seq - 2, EventBody::Unknown);
        let imported = ImportedEvent {
            event: Quoted::new(inner),
        };
        event(seq, imported.into())
    };
    let imported = SessionImported {
        from: SessionId::NIL,
        source: String::new(),
        sum: String::new(),
        events: 3,
        closed: Vec::new(),
        blobs: Vec::new(),
    };
    let log = [
        event(1, imported.into()),
        event(2, EventBody::Unknown),
        quoted(3),
        quoted(4),
        quoted(5),
    ];
    let point = |upto| {
        let mut past = Past::upto(upto);
        log.iter().for_each(|event| past.take(event));
        past.point().map(|(seq, ..)| seq)
    };
    assert_eq!([2, 3, 4, 5].map(point), [Some(2), Some(2), Some(2), Some(5)]);
}
