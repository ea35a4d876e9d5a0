use super::*;
use FailureClass::{Overloaded, Transient};

const T0: Timestamp = Timestamp(1_000_000);

fn circuit(permits: u32) -> Circuit {
    Circuit::new(&SchedulerConfig::default(), permits)
}

fn stamp(at: Timestamp) -> Stamp {
    Stamp::new(at, 7)
}

/// Opens the circuit with five failures, from call `first` on; returns the length of the suspension.
fn broken(circuit: &mut Circuit, first: u64, at: Timestamp) -> u64 {
    for number in first..first + 4 {
        assert_eq!(
            circuit.failed((number, first + 5), Transient, None, &mut stamp(at)),
            None
        );
    }
    circuit
        .failed((first + 4, first + 5), Transient, None, &mut stamp(at))
        .unwrap()
}

#[test]
fn failures_in_a_row_break_it_and_a_success_between_them_does_not() {
    let mut circuit = circuit(8);
    for number in 0..100 {
        assert_eq!(
            circuit.failed((number, number + 1), Transient, None, &mut stamp(T0)),
            None
        );
        if number % 4 == 3 {
            circuit.worked(number, T0);
        }
    }
    assert_eq!(circuit.flow(T0), Flow::Open);
    let ms = broken(&mut circuit, 200, T0);
    assert!((750..=1_250).contains(&ms), "{ms}");
    assert_eq!(circuit.flow(T0), Flow::Until(T0.plus_ms(ms)));
}

#[test]
fn one_probe_finds_out_and_each_failure_of_it_doubles_the_pause() {
    let mut circuit = circuit(8);
    let mut now = T0.plus_ms(broken(&mut circuit, 1, T0));
    let mut pauses = Vec::new();
    for number in 10..18 {
        assert_eq!(circuit.flow(now), Flow::Open);
        assert!(circuit.went(number, now));
        assert_eq!(circuit.flow(now), Flow::Probing);
        assert_eq!(
            circuit.failed((3, 99), Transient, None, &mut stamp(now)),
            None,
            "an old call"
        );
        let ms = circuit
            .failed((number, number + 1), Overloaded, None, &mut stamp(now))
            .unwrap();
        pauses.push(ms);
        now = now.plus_ms(ms);
    }
    for (ms, middle) in pauses
        .iter()
        .zip([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
    {
        assert!((middle * 3 / 4..=middle * 5 / 4).contains(ms), "{pauses:?}");
    }
}

#[test]
fn after_an_outage_the_calls_come_back_in_growing_numbers() {
    let mut circuit = circuit(64);
    let now = T0.plus_ms(broken(&mut circuit, 1, T0));
    assert!(circuit.went(10, now));
    circuit.worked(10, now);
    let mut admitted = Vec::new();
    let mut number = 11;
    for step in 0..7 {
        let now = now.plus_ms(step * RAMP_STEP_MS);
        let mut count = 0;
        while circuit.flow(now) == Flow::Open && count < 100 {
            assert!(!circuit.went(number, now));
            number += 1;
            count += 1;
        }
        admitted.push(count);
    }
    assert_eq!(
        admitted,
        [1, 1, 2, 4, 8, 16, 100],
        "from the last step on it works as before"
    );
    let again = broken(&mut circuit, number, now);
    assert!(
        (750..=1_250).contains(&again),
        "the count of outages starts again: {again}"
    );
}

#[test]
fn a_probe_that_says_nothing_is_followed_by_another() {
    let mut circuit = circuit(8);
    let now = T0.plus_ms(broken(&mut circuit, 1, T0));
    assert!(circuit.went(10, now));
    circuit.ended(10, now);
    assert_eq!(circuit.flow(now), Flow::Open);
    assert!(circuit.went(11, now));
}

#[test]
fn an_overloaded_servers_wish_is_obeyed_at_once() {
    let mut circuit = circuit(8);
    assert_eq!(
        circuit.failed((1, 5), Overloaded, Some(9_000), &mut stamp(T0)),
        Some(9_000)
    );
    assert_eq!(
        circuit.failed((2, 5), Overloaded, Some(5_000), &mut stamp(T0)),
        None
    );
    assert_eq!(circuit.broken_until(T0), Some(T0.plus_ms(9_000)));
    assert!(circuit.holds(T0));
    circuit.worked(3, T0);
    assert_eq!(
        circuit.broken_until(T0),
        Some(T0.plus_ms(9_000)),
        "an old call's answer changes nothing"
    );
}

#[test]
fn a_threshold_of_none_never_breaks_it() {
    let config = SchedulerConfig {
        circuit_failures: 0,
        ..SchedulerConfig::default()
    };
    let mut circuit = Circuit::new(&config, 8);
    for number in 0..1_000 {
        assert_eq!(
            circuit.failed((number, number + 1), Transient, None, &mut stamp(T0)),
            None
        );
    }
}
