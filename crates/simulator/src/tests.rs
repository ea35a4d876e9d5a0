//! Tests of the simulator: it is deterministic, it finds injected bugs, and it accepts correct runs.

use crate::{Flaw, Options, Report, simulate};

fn run(seed: u64, changes: &str) -> Report {
    let options = Options::of(seed).changed(changes).unwrap();
    simulate(seed, options, false).unwrap()
}

#[test]
fn the_same_seed_is_the_same_run_byte_for_byte() {
    for seed in 1..20 {
        let trace = || simulate(seed, Options::of(seed), true).unwrap();
        let (one, two) = (trace(), trace());
        assert_eq!(one, two);
        assert_eq!(one.trace.unwrap().len() as u64, one.lines);
    }
    assert_ne!(run(3, "").sum, run(4, "").sum);
}

#[test]
fn options_are_read_as_they_are_printed() {
    let options = Options::of(7).changed("flaw=orphan,fail=33").unwrap();
    assert_eq!(Options::of(8).changed(&options.to_string()), Ok(options));
    for (wrong, why) in [
        ("fail", "is not NAME=NUMBER"),
        ("nonsense=1", "there is no option"),
        ("fail=many", "invalid digit"),
        ("flaw=none", "there is no flaw"),
    ] {
        let error = Options::of(1).changed(wrong).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

/// Checks runs until one breaks an invariant; returns that invariant.
fn found(flaw: &str, changes: &str, runs: u64) -> String {
    let changes = format!("{changes},flaw={flaw}");
    for seed in 1..=runs {
        if let Some(violation) = run(seed, &changes).violation {
            return violation.invariant.to_owned();
        }
    }
    panic!("{flaw} was not found in {runs} runs");
}

#[test]
fn i1_what_a_store_loses_is_found() {
    assert_eq!(found("lost-append", "viewers=0", 40), "I1");
    assert_eq!(found("early-answer", "", 40), "I1");
    assert_eq!(found("twice-by-key", "lost=60", 80), "I1");
}

#[test]
fn i2_what_a_viewer_misses_is_found() {
    assert_eq!(found("lost-frame", "viewers=3", 40), "I2");
}

#[test]
fn i4_effects_before_their_intent_and_effects_twice_are_found() {
    assert_eq!(found("early-effect", "tools=85,mode=3,children=0", 40), "I4");
    // If the first execution fell into the crash, the violation shows when its call is closed and it still runs.
    let again = found("run-again", "tools=85,mode=3,crash=15,slow=30", 80);
    assert!(["I4", "I5"].contains(&again.as_str()), "{again}");
}

/// Bugs planted in the shipped loop, in addition to those below that are named for what they break.
#[test]
fn i4_i6_mutants_of_the_shipped_loop_are_found() {
    let busy = "tools=85,mode=3,children=0";
    assert_eq!(found("double-start", busy, 40), "I4");
    assert_eq!(found("lost-effect", busy, 40), "I6");
    assert_eq!(found("lost-down", "fail=70", 40), "I6");
    let lost = found("deaf", "failover=8,actions=40,tools=85", 80);
    assert!(["I6", "fold"].contains(&lost.as_str()), "{lost}");
}

/// Bugs planted in the shipped supervisor.
#[test]
fn i1_i6_mutants_of_the_shipped_supervisor_are_found() {
    assert_eq!(found("lost-exit", "crash=15,tools=85", 40), "I6");
    assert_eq!(found("double-load", "crash=15,actions=80,sessions=1", 80), "I6");
    assert_eq!(found("lost-command", "actions=80", 80), "I1");
    assert_eq!(found("early-look", "overdue=40,actions=40", 80), "I6");
    assert_eq!(found("lost-wake", "fail=70,actions=40", 80), "I6");
    assert_eq!(
        found("miscounted-crash", "crash=15,sessions=5,actions=80", 80),
        "I6"
    );
}

#[test]
fn i4_a_sub_agent_that_no_log_tells_of_is_found() {
    assert_eq!(
        found("early-child", "children=30,tools=60,mode=3,node=12", 80),
        "I4"
    );
}

#[test]
fn i5_a_sub_agent_that_nobody_waits_for_is_found() {
    let busy = "children=30,tools=85,mode=3,cancel=25,slow=30,actions=40,permits=4,rate=0,fail=0";
    assert_eq!(found("stray-child", busy, 80), "I5");
}

#[test]
fn i6_a_parent_that_waits_for_ever_is_found() {
    assert_eq!(found("lost-report", "children=30,tools=60,mode=3", 80), "I6");
    assert_eq!(found("lost-side", "sides=1", 40), "I6");
}

#[test]
fn what_a_sub_agent_spends_is_counted_once_or_found() {
    assert_eq!(found("lost-spent", "children=30,tools=60,mode=3", 80), "budget");
}

/// Trees of agents under crashes, restarts and lost answers.
#[test]
fn i3_i4_i5_i6_trees_of_agents_come_to_rest() {
    for seed in 1..=100 {
        let report = run(
            seed,
            "children=30,tools=60,mode=3,crash=15,node=4,lost=10,cancel=10",
        );
        assert_eq!(report.violation, None, "{report}");
    }
}

#[test]
fn i5_a_tool_that_goes_on_after_its_turn_is_found() {
    assert_eq!(found("orphan", "tools=85,mode=3,cancel=25,slow=30", 80), "I5");
}

#[test]
fn i6_what_never_comes_to_rest_is_found() {
    assert_eq!(found("lost-permit", "permits=1,cancel=25,slow=30", 80), "I6");
    assert_eq!(found("lost-timer", "fail=70", 40), "I6");
    assert_eq!(found("forgotten", "node=12,tools=85", 80), "I6");
}

#[test]
fn i7_a_gate_that_fails_open_is_found() {
    assert_eq!(found("open-gate", "gate=20,tools=85", 40), "I7");
    assert_eq!(found("deaf-hook", "call_hooks=30,tools=85,mode=3", 40), "I7");
}

#[test]
fn i7_an_import_that_is_believed_is_found_and_one_that_is_quoted_runs_nothing() {
    let busy = "import=30,tools=85,actions=40,node=12";
    assert_eq!(found("trusted-import", busy, 40), "I7");
    for seed in 1..=100 {
        let report = run(seed, busy);
        assert_eq!(report.violation, None, "{report}");
    }
}

/// Three nodes on one store: nodes die, stop, drain and are cut off, and their clocks jump.
fn fleets(part: u64) {
    const RUNS: u64 = 50;
    let (mut refused, mut moved) = (0, 0);
    for seed in part * RUNS + 1..=(part + 1) * RUNS {
        let report = run(seed, "nodes=3");
        assert_eq!(
            report.violation, None,
            "cargo run -p agentd-simulator -- --nodes 3 --seed {seed}\n{report}"
        );
        refused += report.refused;
        moved += report.moved;
    }
    assert!(refused > 0, "no earlier owner tried to append");
    assert!(moved > 0, "no session moved");
}

#[test]
fn i9_fleets_of_the_first_part_keep_owners_apart() {
    fleets(0);
}

#[test]
fn i9_fleets_of_the_second_part_keep_owners_apart() {
    fleets(1);
}

#[test]
fn the_same_seed_is_the_same_fleet() {
    for seed in 1..6 {
        let options = || Options::of(seed).changed("nodes=3").unwrap();
        let trace = || simulate(seed, options(), true).unwrap();
        assert_eq!(trace(), trace());
    }
}

/// Bugs planted in the shipped decisions about the membership, and in the fencing of the store.
#[test]
fn i9_mutants_of_a_fleet_are_found() {
    assert_eq!(found("kept-sessions", "nodes=3", 40), "I9");
    assert_eq!(found("no-rejoin", "nodes=3", 40), "I6");
    assert_eq!(found("endless-lease", "nodes=3", 80), "I9");
    assert_eq!(found("no-fence", "nodes=3", 40), "I9");
    assert_eq!(found("adopt-live", "nodes=3", 40), "I9");
}

/// Each flaw is in one of the tests above.
#[test]
fn all_flaws_are_looked_for() {
    let text = include_str!("tests.rs");
    for (name, flaw) in Flaw::ALL {
        assert!(text.contains(&format!("found({name:?}")), "{flaw:?}");
    }
}

/// The runs of CI, in four parts so that both cores are busy.
fn lives(part: u64) {
    const RUNS: u64 = 500;
    for seed in part * RUNS + 1..=(part + 1) * RUNS {
        let report = run(seed, "");
        assert_eq!(
            report.violation, None,
            "cargo run -p agentd-simulator -- --seed {seed}\n{report}"
        );
    }
}

#[test]
fn lives_of_the_first_part_break_nothing() {
    lives(0);
}

#[test]
fn lives_of_the_second_part_break_nothing() {
    lives(1);
}

#[test]
fn lives_of_the_third_part_break_nothing() {
    lives(2);
}

#[test]
fn lives_of_the_fourth_part_break_nothing() {
    lives(3);
}
