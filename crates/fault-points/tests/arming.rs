//! Arming in a separate process: invalid specifications are rejected, and each armed hit strikes once.

use agentd_fault_points::{
    AFTER_COMMIT, BEFORE_APPEND, FACT_AFTER, FACT_BEFORE, Injected, Kinds, POINTS, arm, fact, point,
};

#[test]
fn what_is_wrong_is_refused_and_an_armed_hit_strikes_once() {
    for wrong in [
        "nothing",
        "store.nowhere=kill",
        "store.in_batch=explode",
        "store.in_batch=kill@0",
        "store.in_batch=kill@x",
        "store.in_batch:turn.finished=kill",
    ] {
        assert!(arm(wrong).is_err(), "{wrong}");
    }
    arm("store.before_append=error@2, fact.before:turn.finished=error, fact.after=error@2").unwrap();
    assert!(arm("store.in_batch=kill").is_err(), "once for a process");
    let before = [1, 2, 3].map(|_| point(BEFORE_APPEND));
    assert_eq!(before, [Ok(()), Err(Injected(BEFORE_APPEND)), Ok(())]);
    assert_eq!(point(AFTER_COMMIT), Ok(()));
    assert_eq!(
        fact(FACT_BEFORE, &Kinds::of(["turn.started"].into_iter())),
        Ok(())
    );
    let both = Kinds::of(["tool.finished", "turn.finished"].into_iter());
    assert_eq!(fact(FACT_BEFORE, &both), Err(Injected(FACT_BEFORE)));
    assert_eq!(fact(FACT_BEFORE, &both), Ok(()));
    let any = [1, 2].map(|_| fact(FACT_AFTER, &Kinds::default()));
    assert_eq!(
        any,
        [Ok(()), Err(Injected(FACT_AFTER))],
        "without a kind every fact counts"
    );
}

#[test]
fn every_name_is_there_once() {
    let names = std::collections::BTreeSet::from(POINTS);
    assert_eq!(names.len(), POINTS.len());
}
