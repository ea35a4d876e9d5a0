use super::*;
use FailureClass::{Auth, QuotaExhausted, RateLimited};

const T0: Timestamp = Timestamp(100_000_000_000);
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn cooldowns() -> Cooldowns {
    Cooldowns::of(&SchedulerConfig::default())
}

/// Fails again as soon as a probe is possible; returns the length of each cooldown.
fn in_a_row(class: FailureClass, times: u64) -> Vec<u64> {
    let mut health = Health::default();
    let mut now = T0;
    (1..=times)
        .map(|number| {
            health.went(number);
            let ms = health
                .failed((number, number + 1), class, None, &cooldowns(), now)
                .unwrap();
            now = now.plus_ms(ms);
            ms
        })
        .collect()
}

#[test]
fn failures_in_a_row_grow_fivefold_and_a_quotas_twofold_up_to_their_caps() {
    let minutes = [1, 5, 25, 60, 60].map(|minutes| minutes * MINUTE);
    assert_eq!(in_a_row(Auth, 5), minutes);
    let seconds = [2, 4, 8, 16, 32, 60, 60].map(|seconds| seconds * 1_000);
    assert_eq!(in_a_row(RateLimited, 7), seconds);
    assert_eq!(
        in_a_row(QuotaExhausted, 5),
        [5, 10, 20, 24, 24].map(|hours| hours * HOUR)
    );
}

#[test]
fn half_open_lets_exactly_one_through() {
    let mut health = Health::default();
    assert_eq!(health.failed((1, 2), Auth, None, &cooldowns(), T0), Some(MINUTE));
    let until = T0.plus_ms(MINUTE);
    assert_eq!(health.well(T0), Well::No { until, class: Auth });
    assert_eq!(health.well(until), Well::Probe);
    assert!(health.went(2));
    assert_eq!(health.well(until), Well::Probing);
    assert_eq!(
        health.told(until),
        (CredentialHealth::Probing, None, Some(Auth), 1)
    );
    health.succeeded(2);
    assert_eq!(health.well(until), Well::Yes);
    assert_eq!(health.told(until), (CredentialHealth::Ok, None, None, 0));
}

#[test]
fn a_probe_that_says_nothing_is_followed_by_another() {
    let mut health = Health::default();
    health.failed((1, 2), Auth, None, &cooldowns(), T0);
    let later = T0.plus_ms(MINUTE);
    assert!(health.went(2));
    health.ended(1, later);
    assert_eq!(
        health.well(later),
        Well::Probing,
        "an older call's end is not the probe's"
    );
    health.ended(2, later);
    assert_eq!(health.well(later), Well::Probe);
}

#[test]
fn calls_that_went_before_the_failure_was_known_change_nothing() {
    let mut health = Health::default();
    assert_eq!(health.failed((3, 65), Auth, None, &cooldowns(), T0), Some(MINUTE));
    for number in 4..65 {
        assert_eq!(health.failed((number, 65), Auth, None, &cooldowns(), T0), None);
    }
    health.succeeded(1);
    let until = T0.plus_ms(MINUTE);
    assert_eq!(
        health.told(T0),
        (CredentialHealth::Cooling, Some(until), Some(Auth), 1)
    );
}

#[test]
fn a_servers_wish_wins_and_is_no_failure_of_a_rate_limit() {
    let mut health = Health::default();
    assert_eq!(
        health.failed((1, 9), RateLimited, Some(7_000), &cooldowns(), T0),
        Some(7_000)
    );
    assert_eq!(
        health.failed((2, 9), RateLimited, Some(3_000), &cooldowns(), T0),
        None
    );
    let until = T0.plus_ms(7_000);
    assert_eq!(
        health.told(T0),
        (CredentialHealth::Cooling, Some(until), Some(RateLimited), 0)
    );
    health.succeeded(3);
    assert_eq!(
        health.well(T0),
        Well::No {
            until,
            class: RateLimited
        },
        "an answer does not end it"
    );
    assert_eq!(health.well(until), Well::Yes);
    assert_eq!(
        health.failed((9, 10), QuotaExhausted, Some(90), &cooldowns(), until),
        Some(90)
    );
    let endless = health.failed((10, 11), RateLimited, Some(u64::MAX), &cooldowns(), until);
    assert_eq!(endless, Some(LONGEST_WISH_MS));
}

#[test]
fn a_day_without_failures_is_forgiven() {
    let mut health = Health::default();
    health.failed((1, 2), Auth, None, &cooldowns(), T0);
    let day_after = T0.plus_ms(MINUTE + FORGET_MS);
    assert_eq!(
        health.failed((2, 3), Auth, None, &cooldowns(), day_after),
        Some(MINUTE)
    );
}
