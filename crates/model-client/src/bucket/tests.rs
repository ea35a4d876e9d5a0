use super::*;

const T0: Timestamp = Timestamp(1_000_000);

fn charge(requests: u64, input: u64, output: u64) -> Charge {
    Charge {
        requests,
        input,
        output,
    }
}

fn gauge(limit: u64, remaining: u64, reset_ms: u64) -> Gauge {
    Gauge {
        limit: Some(limit),
        remaining: Some(remaining),
        reset_ms: Some(reset_ms),
    }
}

fn requests(gauge: Gauge) -> Rates {
    Rates {
        requests: gauge,
        ..Rates::default()
    }
}

/// The number of one-request calls that may start at once.
fn at_once(buckets: &mut Buckets, now: Timestamp) -> u32 {
    let one = charge(1, 0, 0);
    let mut went = 0;
    while buckets.opens_in(&one, now) == 0 && went < 10_000 {
        buckets.change(&one, &Charge::default(), now);
        went += 1;
    }
    went
}

#[test]
fn a_configured_limit_goes_out_in_portions_of_ten_seconds_and_refills_steadily() {
    let rates = RatesConfig {
        requests: 60,
        ..RatesConfig::default()
    };
    let mut buckets = Buckets::configured(&rates, T0);
    assert_eq!(at_once(&mut buckets, T0), 10);
    assert_eq!(buckets.opens_in(&charge(1, 0, 0), T0), 1_000);
    assert_eq!(at_once(&mut buckets, T0.plus_ms(999)), 0);
    assert_eq!(at_once(&mut buckets, T0.plus_ms(1_000)), 1);
    assert_eq!(
        at_once(&mut buckets, T0.plus_ms(3_600_000)),
        10,
        "nothing is saved up beyond a portion"
    );
}

#[test]
fn no_limit_admits_everything() {
    let buckets = Buckets::configured(&RatesConfig::default(), T0);
    assert_eq!(buckets.opens_in(&charge(1, u64::MAX, u64::MAX), T0), 0);
}

#[test]
fn a_call_larger_than_the_bucket_goes_when_it_is_full_and_is_paid_off_later() {
    let rates = RatesConfig {
        input_tokens: 6_000,
        ..RatesConfig::default()
    };
    let mut buckets = Buckets::configured(&rates, T0);
    let large = charge(1, 5_000, 0);
    assert_eq!(buckets.opens_in(&large, T0), 0);
    buckets.change(&large, &Charge::default(), T0);
    // A debt of four thousand, and a thousand requested: five thousand at a hundred per second.
    assert_eq!(buckets.opens_in(&large, T0), 50_000);
    // The call used only half of its estimate.
    buckets.change(&charge(1, 2_500, 0), &large, T0);
    assert_eq!(buckets.opens_in(&large, T0), 25_000);
}

#[test]
fn what_a_server_says_is_learned_and_only_lowers_what_is_left() {
    let mut buckets = Buckets::default();
    buckets.learn(&requests(gauge(100, 40, 60_000)), T0);
    // Sixty of a hundred refill within a minute.
    assert_eq!(at_once(&mut buckets, T0), 40);
    assert_eq!(buckets.opens_in(&charge(1, 0, 0), T0), 1_000);
    buckets.learn(&requests(gauge(100, 90, 10_000)), T0);
    assert_eq!(
        at_once(&mut buckets, T0),
        0,
        "calls on their way are not in its count"
    );
    buckets.learn(&requests(gauge(100, 0, 100_000)), T0.plus_ms(30_000));
    assert_eq!(buckets.opens_in(&charge(1, 0, 0), T0.plus_ms(30_000)), 1_000);
}

#[test]
fn a_daily_limit_is_known_by_its_slow_refill() {
    let mut buckets = Buckets::default();
    buckets.learn(&requests(gauge(1_000, 0, 86_400_000)), T0);
    assert_eq!(
        buckets.opens_in(&charge(1, 0, 0), T0),
        60_000,
        "less than one a minute counts as one"
    );
    let mut fresh = Buckets::default();
    fresh.learn(&requests(gauge(1_000, 999, 86_400)), T0);
    assert_eq!(
        at_once(&mut fresh, T0),
        999,
        "little use tells nothing about the refill"
    );
    assert_eq!(fresh.opens_in(&charge(1, 0, 0), T0), 60);
}

#[test]
fn nothing_said_is_nothing_learned() {
    let mut buckets = Buckets::default();
    buckets.learn(&Rates::default(), T0);
    buckets.learn(
        &requests(Gauge {
            remaining: Some(0),
            ..Gauge::default()
        }),
        T0,
    );
    buckets.learn(&requests(gauge(0, 0, 0)), T0);
    assert_eq!(buckets, Buckets::default());
}

#[test]
fn old_headers_are_read_with_what_came_back_since() {
    let old = requests(gauge(100, 0, 60_000));
    assert_eq!(aged(&old, 0), old);
    assert_eq!(aged(&old, 15_000), requests(gauge(100, 25, 45_000)));
    let forgotten = Gauge {
        limit: Some(100),
        ..Gauge::default()
    };
    let too_old = aged(&old, 60_000);
    assert_eq!(too_old.requests, forgotten);
    assert_eq!(aged(&Rates::default(), 59_000), Rates::default());
}

#[test]
fn a_charge_is_the_estimate_first_and_the_use_later() {
    let usage = Usage {
        input: 10,
        output: 2_000,
        cache_read: 90_000,
        cache_write: 5,
        cache_write_1h: 0,
        reasoning: 100,
    };
    assert_eq!(Charge::used(&usage), charge(1, 15, 2_000));
}

#[test]
fn people_see_the_limit_of_each_kind_that_has_less_left() {
    let now = Timestamp(60_000);
    let rates = RatesConfig {
        requests: 600,
        ..RatesConfig::default()
    };
    let mut configured = Buckets::configured(&rates, now);
    let mut learned = Buckets::default();
    learned.learn(&requests(gauge(50, 20, 0)), now);
    let told = |one: &Buckets, other: &Buckets, now| -> Vec<(RateKind, u64, u64)> {
        let told = one.told(other, now).into_iter();
        told.map(|bucket| (bucket.kind, bucket.left, bucket.limit))
            .collect()
    };
    assert_eq!(told(&configured, &learned, now), [(RateKind::Requests, 20, 50)]);
    configured.change(&charge(150, 0, 0), &Charge::default(), now);
    assert_eq!(
        told(&configured, &learned, now),
        [(RateKind::Requests, 0, 100)],
        "in debt"
    );
    assert_eq!(told(&Buckets::default(), &Buckets::default(), now), []);
}

#[test]
fn a_limit_that_changes_back_and_forth_brings_no_second_burst() {
    let rates = |requests| RatesConfig {
        requests,
        ..RatesConfig::default()
    };
    let mut buckets = Buckets::configured(&rates(60), T0);
    assert_eq!(at_once(&mut buckets, T0), 10);
    for limit in [6, 60, 1, 60] {
        buckets.resize(&rates(limit), T0);
        assert_eq!(at_once(&mut buckets, T0), 0, "{limit}");
    }
    buckets.resize(&rates(120), T0);
    assert_eq!(at_once(&mut buckets, T0), 10, "the part of the burst that is new");
}
