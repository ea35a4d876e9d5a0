use super::*;
use agentd_protocol::{Event, EventBody, Principal, SessionPaused, Stamp, Timestamp};

fn batch(seq: Seq, key: Option<&str>) -> Batch {
    let event = Event {
        v: 1,
        session: SessionId::NIL,
        seq,
        at: Timestamp(seq),
        by: Principal::agentd(),
        turn: None,
        body: EventBody::SessionPaused(SessionPaused { reason: "x".into() }),
    };
    let agent = agentd_turn::Agent::new(SessionId::NIL, std::sync::Arc::default());
    let key = key.map(|key| IdempotencyKey {
        principal: Principal::agentd(),
        key: key.into(),
        method: "m".into(),
        body_hash: [0; 32],
        answer: String::new(),
    });
    let events = vec![EncodedEvent::encode(&event).unwrap()];
    Batch {
        events,
        blobs: Vec::new(),
        key,
        summary: agent.summary(Timestamp(seq)),
        revocable: false,
    }
}

fn run(n: u64) -> Effect {
    Effect::RunTool {
        tool_call: Stamp::new(Timestamp(n), n).tool_call(),
        name: "Bash".into(),
        input: serde_json::Value::Null,
        effect: agentd_protocol::EffectClass::Exec,
        sandbox: agentd_protocol::SandboxLevel::None,
    }
}

fn id(n: u64) -> AppendId {
    Stamp::new(Timestamp(n), n).append()
}

fn seqs(append: &Append) -> Vec<Seq> {
    append.events.iter().map(|event| event.seq).collect()
}

const fn committed(head: Seq) -> Option<Outcome> {
    Some(Outcome::Committed { head, cursor: 0 })
}

fn ready(settled: Settled) -> Vec<Effect> {
    let Settled::Durable(after) = settled else {
        panic!("{settled:?}");
    };
    let effect = |after| match after {
        After::Effect(effect) => effect,
        After::Reply(..) => panic!("no reply was staged"),
    };
    after.into_iter().map(effect).collect()
}

#[test]
fn what_is_decided_while_an_append_flies_goes_into_the_next_one() {
    let mut outbox = Outbox::new(SessionId::NIL, 3, 0);
    outbox.stage(batch(1, None));
    let first = outbox.next(id(1)).unwrap();
    assert_eq!((first.expected_head, first.epoch, seqs(&first)), (0, 3, vec![1]));
    outbox.stage(batch(2, None));
    outbox.stage(batch(3, None));
    assert!(outbox.next(id(2)).is_none());
    assert_eq!(outbox.unacknowledged(), 3);
    assert!(ready(outbox.settle(committed(1))).is_empty());
    let second = outbox.next(id(3)).unwrap();
    assert_eq!((second.expected_head, seqs(&second)), (1, vec![2, 3]));
}

#[test]
fn i4_an_effect_waits_for_the_commit_of_everything_before_it() {
    let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
    outbox.stage(batch(1, None));
    outbox.next(id(1));
    outbox.stage(batch(2, None));
    assert!(outbox.after(After::Effect(run(7))).is_none());
    assert!(ready(outbox.settle(committed(1))).is_empty());
    outbox.next(id(2));
    assert_eq!(ready(outbox.settle(committed(2))), [run(7)]);
    assert!(outbox.is_empty());
    // With nothing in flight there is nothing to wait for.
    assert!(outbox.after(After::Effect(run(8))).is_some());
}

#[test]
fn an_append_carries_one_key_at_most() {
    let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
    for (seq, key) in [(1, None), (2, Some("a")), (3, None), (4, Some("b"))] {
        outbox.stage(batch(seq, key));
    }
    let first = outbox.next(id(1)).unwrap();
    assert_eq!((seqs(&first), first.keys.len()), (vec![1, 2, 3], 1));
    outbox.settle(committed(3));
    let second = outbox.next(id(2)).unwrap();
    assert_eq!((seqs(&second), second.keys.len()), (vec![4], 1));
}

#[test]
fn a_full_store_is_asked_again_with_the_same_append() {
    let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
    outbox.stage(batch(1, None));
    let first = outbox.next(id(1)).unwrap();
    assert!(matches!(outbox.settle(Some(Outcome::Full)), Settled::Again));
    assert!(outbox.is_full());
    assert_eq!(outbox.again(), Some(first));
    // The answer to the first attempt came late: this append is already stored (I2).
    assert!(ready(outbox.settle(Some(Outcome::Duplicate { head: 1 }))).is_empty());
    assert!(!outbox.is_full() && outbox.is_empty());
}

#[test]
fn i9_a_refused_append_means_that_the_loop_must_stop() {
    for (outcome, expected) in [
        (Some(Outcome::Fenced { epoch: 2, head: 0 }), Lost::Fenced),
        (committed(9), Lost::Fenced),
        (Some(Outcome::Unknown), Lost::Unknown),
        (None, Lost::Unknown),
        (Some(Outcome::Failed("x".into())), Lost::Refused("x".into())),
    ] {
        let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
        outbox.stage(batch(1, None));
        outbox.next(id(1));
        match outbox.settle(outcome) {
            Settled::Lost(lost) => assert_eq!(lost, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_call_that_was_cancelled_before_its_commit_is_forgotten() {
    let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
    outbox.stage(batch(1, None));
    assert!(outbox.after(After::Effect(run(7))).is_none());
    let Effect::RunTool { tool_call, .. } = run(7) else {
        unreachable!()
    };
    assert!(outbox.forget_run(tool_call));
    assert!(!outbox.forget_run(tool_call));
    outbox.next(id(1));
    assert!(ready(outbox.settle(committed(1))).is_empty());
}

#[test]
fn an_answer_to_nothing_is_ignored() {
    let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
    assert!(matches!(outbox.settle(committed(1)), Settled::Stale));
}

#[test]
fn i6_a_command_that_finds_no_space_twice_is_taken_back_and_a_fact_is_not() {
    let full = |outbox: &mut Outbox| outbox.settle(Some(Outcome::Full));
    let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
    let revocable = |seq, revocable| Batch {
        revocable,
        ..batch(seq, None)
    };
    outbox.stage(revocable(1, true));
    outbox.next(id(1)).unwrap();
    assert!(matches!(full(&mut outbox), Settled::Again));
    assert!(matches!(full(&mut outbox), Settled::Lost(Lost::Full)));
    let mut outbox = Outbox::new(SessionId::NIL, 1, 4);
    outbox.stage(revocable(5, true));
    outbox.next(id(1)).unwrap();
    // Now an event follows that cannot be revoked.
    outbox.stage(revocable(6, false));
    for _ in 0..5 {
        assert!(matches!(full(&mut outbox), Settled::Again));
    }
    // A session that finds no space for its first event does not exist.
    let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
    outbox.stage(revocable(1, true));
    outbox.next(id(1)).unwrap();
    outbox.stage(revocable(2, false));
    assert!(matches!(full(&mut outbox), Settled::Again));
    assert!(matches!(full(&mut outbox), Settled::Lost(Lost::Full)));
}

#[test]
fn i5_i6_who_ends_what_runs_does_not_wait_for_space_and_its_event_stays() {
    let (tell, told) = std::sync::mpsc::channel();
    let asker = |urgent: bool| Asker {
        done: Done::new({
            let tell = tell.clone();
            move |_| tell.send(urgent).unwrap()
        }),
        keyed: false,
        urgent,
    };
    let mut outbox = Outbox::new(SessionId::NIL, 1, 0);
    outbox.stage(batch(1, None));
    for urgent in [true, false] {
        let waits = outbox.after(After::Reply(asker(urgent), Ok(Reply::Done { seq: 1 })));
        assert!(waits.is_none());
    }
    outbox.next(id(1)).unwrap();
    assert!(matches!(outbox.settle(Some(Outcome::Full)), Settled::Again));
    for asker in outbox.urgent() {
        asker.done.answer(Ok(Reply::Ended { seq: 0 }));
    }
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true]);
    assert!(outbox.urgent().is_empty());
    assert_eq!(seqs(&outbox.again().unwrap()), [1]);
    let Settled::Durable(after) = outbox.settle(committed(1)) else {
        panic!("it is durable");
    };
    assert!(matches!(after.as_slice(), [After::Reply(asker, Ok(_))] if !asker.urgent));
}
