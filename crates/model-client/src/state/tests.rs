use super::*;
use agentd_actor_kit::{Hold, Lane, QueuePosition};
use agentd_protocol::{CredentialHealth, SessionId, Usage};
use agentd_provider::Gauge;
use agentd_settings::SchedulerConfig;
use agentd_store::Share;
use std::collections::VecDeque;

mod herd;
mod random;

const T0: Timestamp = Timestamp(100_000_000_000);

/// Callers whose place is this or more are gone.
const GONE: u64 = 1 << 40;

fn setup(permits: u32, credentials: &[&str]) -> Setup {
    Setup {
        permits,
        share: None,
        credentials: credentials.iter().map(|&name| name.to_owned()).collect(),
        rates: RatesConfig::default(),
        scheduler: SchedulerConfig::default(),
        patience_ms: 30_000,
    }
}

fn ask(number: u64) -> Ask {
    Ask {
        session: SessionId::from_parts(number, [0; 10]),
        model: "m".to_owned(),
        credential: None,
        group: String::new(),
        lane: Lane::Interactive,
        input_tokens: 1_000,
        output_tokens: 1_000,
        insists: false,
    }
}

/// An admission and its clock.
struct World {
    admission: Admission<u64>,
    now: Timestamp,
}

impl World {
    fn new(permits: u32, credentials: &[&str]) -> Self {
        Self::of(setup(permits, credentials))
    }

    fn of(setup: Setup) -> Self {
        Self {
            admission: Admission::new(setup, T0, |place| *place >= GONE),
            now: T0,
        }
    }

    fn later(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    /// Queues a call without checking who goes next.
    fn wait(&mut self, number: u64) {
        assert!(self.admission.acquire(ask(number), number, self.now).is_none());
    }

    fn granted(&mut self) -> Vec<Grant> {
        let next = || match self.admission.next(self.now)? {
            Step::Granted(_, grant) => Some(grant),
            Step::Refused(place, refusal) => panic!("{place} was refused: {refusal:?}"),
        };
        std::iter::from_fn(next).collect()
    }

    fn refused(&mut self) -> Vec<(u64, Refusal)> {
        let next = || match self.admission.next(self.now)? {
            Step::Refused(place, refusal) => Some((place, refusal)),
            Step::Granted(place, _) => panic!("{place} was granted"),
        };
        std::iter::from_fn(next).collect()
    }

    fn one(&mut self, number: u64) -> Grant {
        self.wait(number);
        let mut granted = self.granted();
        assert_eq!(granted.len(), 1, "{granted:?}");
        granted.remove(0)
    }

    fn ends(&mut self, grant: &Grant, outcome: &CallOutcome) -> Outlook {
        self.ends_with(grant, outcome, &Rates::default())
    }

    fn ends_with(&mut self, grant: &Grant, outcome: &CallOutcome, rates: &Rates) -> Outlook {
        let mut stamp = Stamp::new(self.now, 7);
        self.admission.release(grant, outcome, rates, &mut stamp).0
    }

    fn fails(&mut self, grant: &Grant, class: FailureClass, wish: Option<u64>) -> Outlook {
        self.ends(grant, &failed(class, wish))
    }
}

fn answered() -> CallOutcome {
    CallOutcome::Answered {
        usage: Usage::default(),
    }
}

fn failed(class: FailureClass, retry_after_ms: Option<u64>) -> CallOutcome {
    CallOutcome::Failed {
        class,
        retry_after_ms,
        window: None,
        absent: false,
    }
}

#[test]
fn permits_bound_what_runs_and_one_back_lets_the_next_go() {
    let mut world = World::new(2, &[]);
    for number in 1..=3 {
        world.wait(number);
    }
    let granted = world.granted();
    assert_eq!(granted.len(), 2);
    world.later(UNUSED_MS);
    world.ends(&granted[0], &CallOutcome::Dropped);
    assert_eq!(world.granted().len(), 1);
    world.ends(&granted[0], &answered());
    assert_eq!(world.granted(), [], "a permit comes back once");
    let status = world.admission.status(world.now);
    assert_eq!((status.running, status.waiting, status.permits), (2, 0, 2));
}

#[test]
fn a_rate_limit_pauses_its_credential_and_another_one_goes_on() {
    let mut world = World::new(8, &["a", "b"]);
    let first = world.one(1);
    assert_eq!(first.credential.as_deref(), Some("a"));
    let outlook = world.fails(&first, FailureClass::RateLimited, Some(120_000));
    let expected = Outlook {
        other: Some("b".to_owned()),
        closed_ms: None,
    };
    assert_eq!(outlook, expected);
    let mut warm = ask(2);
    warm.credential = Some("a".to_owned());
    assert!(world.admission.acquire(warm, 2, world.now).is_none());
    assert_eq!(world.granted()[0].credential.as_deref(), Some("b"));
    assert_eq!(world.admission.status(world.now).paused_until, None);
}

#[test]
fn i6_those_who_wait_are_sent_away_when_a_long_pause_begins_and_come_back_one_after_the_other() {
    let mut world = World::new(4, &["a"]);
    for number in 0..104 {
        world.wait(number);
    }
    let granted = world.granted();
    world.later(1_000);
    let outlook = world.fails(&granted[0], FailureClass::QuotaExhausted, None);
    let five_hours = 5 * 60 * 60 * 1_000;
    assert_eq!(outlook.closed_ms, Some(five_hours));
    let refused = world.refused();
    assert_eq!(refused.len(), 100);
    let mut back: Vec<u64> = refused
        .iter()
        .map(|(_, refusal)| refusal.retry_after_ms)
        .collect();
    assert!(
        refused
            .iter()
            .all(|(_, refusal)| refusal.class == FailureClass::QuotaExhausted)
    );
    assert!(
        back.iter()
            .all(|ms| (five_hours..=five_hours + SPREAD_MS).contains(ms))
    );
    back.dedup();
    assert_eq!(back.len(), 100, "no two come back at the same moment");
    assert_eq!(world.admission.wake(), None, "no waiting call is left");
}

#[test]
fn i6_after_trouble_of_the_provider_those_who_were_sent_away_are_back_within_the_length_of_its_pause() {
    for (pause_ms, back_within_ms) in [(300_000, 98 * 1_000), (4_000, 3_999), (400, 999)] {
        let mut setup = setup(1, &["a"]);
        setup.patience_ms = 300;
        let mut world = World::of(setup);
        for number in 0..101 {
            world.wait(number);
        }
        // Two calls in a little over ten seconds: a slow pace.
        let granted = world.granted();
        world.later(10_700);
        world.ends(&granted[0], &answered());
        let granted = world.granted();
        world.fails(&granted[0], FailureClass::Overloaded, Some(pause_ms));
        let back = world.refused();
        assert_eq!(back.len(), 99);
        let back = back.iter().map(|(_, refusal)| refusal.retry_after_ms);
        let (first, last) = (back.clone().min(), back.max().unwrap());
        assert_eq!(first, Some(pause_ms));
        assert!(last <= pause_ms + back_within_ms, "{pause_ms}: {last}");
    }
}

#[test]
fn a_short_pause_is_waited_for_in_line() {
    let mut world = World::new(4, &[]);
    let first = world.one(1);
    world.fails(&first, FailureClass::RateLimited, Some(30_000));
    world.wait(2);
    assert_eq!(world.granted(), []);
    assert_eq!(world.admission.wake(), Some(world.now.plus_ms(30_000)));
    let place = QueuePosition {
        position: 1,
        of: 1,
        eta_ms: Some(30_000),
        hold: Some(Hold::Rate),
    };
    assert_eq!(world.admission.place(ask(2).session, world.now), Some(place));
    assert_eq!(world.admission.place(ask(3).session, world.now), None);
    world.later(30_000);
    assert_eq!(world.granted().len(), 1);
}

#[test]
fn half_open_lets_exactly_one_through_and_its_success_the_others() {
    let mut world = World::new(8, &["a"]);
    let first = world.one(1);
    world.fails(&first, FailureClass::Auth, None);
    world.later(60_000);
    for number in 2..=9 {
        world.wait(number);
    }
    let probe = world.granted();
    assert_eq!(probe.len(), 1);
    assert!(probe[0].probe);
    assert_eq!(world.admission.wake(), None);
    let health = &world.admission.status(world.now).credentials[0].1;
    assert_eq!((health.health, health.running), (CredentialHealth::Probing, 1));
    world.admission.works(&probe[0], world.now);
    assert_eq!(world.granted().len(), 7, "the first piece of an answer is enough");
}

#[test]
fn time_outs_do_not_poison_a_credential() {
    let mut config = setup(64, &["a", "b"]);
    config.scheduler.circuit_failures = 0;
    let mut world = World::of(config);
    for number in 1..=50 {
        let grant = world.one(number);
        world.fails(&grant, FailureClass::Transient, Some(60_000));
    }
    for (_, status) in world.admission.status(world.now).credentials {
        assert_eq!((status.health, status.failures), (CredentialHealth::Ok, 0));
    }
}

#[test]
fn a_provider_that_fails_is_left_alone_for_all_credentials_and_comes_back_slowly() {
    let mut world = World::new(64, &["a", "b"]);
    for number in 1..=5 {
        let grant = world.one(number);
        world.fails(&grant, FailureClass::Overloaded, None);
    }
    for number in 10..=100 {
        world.wait(number);
    }
    assert_eq!(world.granted(), []);
    let place = world.admission.place(ask(10).session, world.now).unwrap();
    assert_eq!(place.hold, Some(Hold::Circuit));
    let until = world.admission.wake().unwrap();
    assert_eq!(world.admission.status(world.now).paused_until, Some(until));
    world.now = until;
    let probe = world.granted();
    assert_eq!(probe.len(), 1);
    world.ends(&probe[0], &answered());
    let mut waves = Vec::new();
    for _ in 0..5 {
        waves.push(world.granted().len());
        world.now = world.admission.wake().unwrap();
    }
    assert_eq!(waves, [1, 1, 2, 4, 8]);
}

#[test]
fn a_closed_model_does_not_close_another_one() {
    let mut world = World::new(8, &["a"]);
    let first = world.one(1);
    world.fails(&first, FailureClass::Auth, None);
    let mut other = ask(2);
    other.model = "other".to_owned();
    assert!(world.admission.acquire(other, 2, world.now).is_none());
    assert_eq!(world.granted().len(), 1);
    assert_eq!(world.admission.status(world.now).paused_until, None);
}

#[test]
fn a_full_line_refuses_with_a_time_to_come_back() {
    let mut config = setup(1, &[]);
    config.scheduler.max_waiting = 2;
    let mut world = World::of(config);
    let _running = world.one(1);
    world.wait(2);
    world.wait(3);
    let refusal = Refusal {
        class: FailureClass::Overloaded,
        message: "2 calls are already waiting for this provider".to_owned(),
        retry_after_ms: 5_000,
    };
    assert_eq!(
        world.admission.acquire(ask(4), 4, world.now),
        Some(Step::Refused(4, refusal))
    );
}

#[test]
fn a_configured_rate_is_kept_and_a_gone_asker_costs_nothing_of_it() {
    let mut config = setup(64, &["a"]);
    config.rates.requests = 6;
    let mut world = World::of(config);
    let gone = world.one(1);
    world.wait(2);
    assert_eq!(world.granted(), []);
    assert_eq!(world.admission.wake(), Some(world.now.plus_ms(10_000)));
    world.ends(&gone, &CallOutcome::Dropped);
    assert_eq!(world.granted().len(), 1);
    world.wait(3);
    assert_eq!(world.granted(), []);
    assert_eq!(
        world.admission.place(ask(3).session, world.now).unwrap().hold,
        Some(Hold::Rate)
    );
}

#[test]
fn a_node_of_a_fleet_keeps_to_its_share() {
    let mut config = setup(64, &["a"]);
    config.rates.requests = 384;
    config.share = Some(0);
    let mut world = World::of(config);
    (1..=10).for_each(|number| world.wait(number));
    assert_eq!(world.granted(), [], "nothing before the first share");
    let permits = |permits| Share {
        permits,
        held: permits,
        background_every: 16,
        weights: Vec::new(),
    };
    world.admission.share(&permits(2), world.now);
    assert_eq!(world.granted().len(), 2, "as many calls as permits");
    world.admission.share(&permits(64), world.now);
    assert_eq!(world.granted().len(), 8);
    assert_eq!(world.admission.status(world.now).permits, 64);
    assert_eq!(world.admission.status(world.now).limit, 64);
}

#[test]
fn what_headers_say_is_kept_for_that_model_and_credential() {
    let mut world = World::new(64, &["a"]);
    let first = world.one(1);
    let rates = Rates {
        requests: Gauge {
            limit: Some(60),
            remaining: Some(2),
            reset_ms: Some(58_000),
        },
        ..Rates::default()
    };
    world.ends_with(&first, &answered(), &rates);
    for number in 2..=10 {
        world.wait(number);
    }
    assert_eq!(world.granted().len(), 2);
    assert_eq!(world.admission.wake(), Some(world.now.plus_ms(1_000)));
}

#[test]
fn a_model_that_the_server_does_not_have_is_named_until_it_answers() {
    let mut world = World::new(8, &[]);
    let absent = CallOutcome::Failed {
        class: FailureClass::InvalidRequest,
        retry_after_ms: None,
        window: None,
        absent: true,
    };
    for (outcome, expected) in [
        (&absent, 1),
        (&failed(FailureClass::InvalidRequest, None), 1),
        (&failed(FailureClass::Transient, None), 1),
        (&answered(), 0),
    ] {
        let grant = world.one(1);
        world.ends(&grant, outcome);
        let status = world.admission.status(world.now);
        let names: Vec<&str> = status.absent.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, vec![grant.model.as_str(); expected], "{outcome:?}");
    }
}

#[test]
fn the_smallest_window_seen_is_told_to_the_next_call() {
    let mut world = World::new(8, &[]);
    for window in [Some(32_768), Some(8_192), Some(0), Some(16_384), None] {
        let grant = world.one(1);
        let outcome = CallOutcome::Failed {
            class: FailureClass::ContextOverflow,
            retry_after_ms: None,
            window,
            absent: false,
        };
        world.ends(&grant, &outcome);
    }
    assert_eq!(world.one(1).window, Some(8_192));
    assert_eq!(
        world.admission.status(world.now).windows,
        [("m".to_owned(), 8_192)]
    );
}

#[test]
fn a_person_who_insists_is_tried_at_once_by_one_call_and_makes_nothing_worse() {
    let insists = |world: &mut World, number| {
        let insisting = Ask {
            insists: true,
            ..ask(number)
        };
        assert!(world.admission.acquire(insisting, number, world.now).is_none());
    };
    for (class, wish, closed_ms) in [
        (FailureClass::QuotaExhausted, None, 18_000_000),
        (FailureClass::Auth, None, 60_000),
        (FailureClass::RateLimited, Some(7_200_000), 7_200_000),
        (FailureClass::Overloaded, Some(90_000), 90_000),
    ] {
        let mut world = World::new(8, &["a"]);
        let grant = world.one(1);
        assert_eq!(world.fails(&grant, class, wish).closed_ms, Some(closed_ms));
        world.wait(2);
        assert_eq!(world.refused().len(), 1, "{class:?}");
        insists(&mut world, 3);
        insists(&mut world, 4);
        let probes = world.granted();
        assert_eq!(probes.iter().map(|grant| grant.probe).collect::<Vec<_>>(), [true]);
        assert_eq!(
            world.fails(&probes[0], class, wish).closed_ms,
            Some(closed_ms),
            "{class:?}"
        );
        assert_eq!(world.refused().len(), 1, "who waited for the probe");
        insists(&mut world, 5);
        let grant = world.granted().remove(0);
        world.ends(&grant, &answered());
        world.later(2_000);
        world.wait(6);
        assert_eq!(world.granted().len(), 1, "{class:?}");
    }
}

#[test]
fn who_is_gone_costs_nobody_a_turn_and_its_session_keeps_its_own() {
    let mut world = World::new(1, &[]);
    let running = world.one(1);
    let wait = |world: &mut World, session, place| {
        assert!(world.admission.acquire(ask(session), place, world.now).is_none());
    };
    wait(&mut world, 2, GONE);
    wait(&mut world, 3, GONE);
    wait(&mut world, 4, 4);
    wait(&mut world, 2, 2);
    world.ends(&running, &answered());
    let mut served = Vec::new();
    while let Some(grant) = world.granted().pop() {
        served.push(
            (2..=4)
                .find(|number| ask(*number).session == grant.session)
                .unwrap(),
        );
        world.ends(&grant, &answered());
    }
    assert_eq!(served, [2, 4]);
    let status = world.admission.status(world.now);
    assert_eq!((status.waiting, status.running), (0, 0));
    assert_eq!(world.admission.place(ask(3).session, world.now), None);
}

#[test]
fn teams_share_the_permits_of_a_provider_by_weight() {
    let mut config = setup(10, &[]);
    config.scheduler.weights = [("one".to_owned(), 1.0), ("three".to_owned(), 3.0)].into();
    let mut world = World::of(config);
    let mut counts = BTreeMap::new();
    let wait = |world: &mut World, number: u64| {
        let mut own = ask(number);
        own.group = if number.is_multiple_of(2) { "one" } else { "three" }.to_owned();
        assert!(world.admission.acquire(own, number, world.now).is_none());
    };
    for number in 0..200 {
        wait(&mut world, number);
    }
    for _ in 0..400 {
        let granted = world.granted();
        world.later(1_000);
        for grant in granted {
            let number = (0..200)
                .find(|number| ask(*number).session == grant.session)
                .unwrap();
            *counts.entry(number % 2).or_insert(0_u32) += 1;
            world.ends(&grant, &answered());
            wait(&mut world, number);
        }
    }
    assert_eq!(counts.values().sum::<u32>(), 4_000);
    assert!((900..=1_100).contains(&counts[&0]), "{counts:?}");
}

#[test]
fn i6_ten_thousand_who_wait_do_not_make_admission_slow() {
    let pairs = 30_000_u64;
    let mut world = World::new(64, &["a", "b"]);
    for number in 0..10_064 {
        let mut own = ask(number);
        own.group = format!("team {}", number % 20);
        assert!(world.admission.acquire(own, number, world.now).is_none());
    }
    let mut running = VecDeque::from(world.granted());
    let started = std::time::Instant::now();
    for number in 0..pairs {
        world.later(1);
        let ended = running.pop_front().unwrap();
        world.ends(&ended, &answered());
        let mut own = ask(20_000 + number);
        own.group = format!("team {}", number % 20);
        assert!(world.admission.acquire(own, number, world.now).is_none());
        running.extend(world.granted());
        if number.is_multiple_of(16) {
            assert!(
                world
                    .admission
                    .place(ask(20_000 + number).session, world.now)
                    .is_some()
            );
        }
    }
    println!(
        "{} ns for a pair",
        started.elapsed().as_nanos() / u128::from(pairs)
    );
    let status = world.admission.status(world.now);
    assert_eq!((status.running, status.waiting), (64, 10_000));
}

#[test]
fn who_finds_a_free_permit_makes_no_estimate_shorter() {
    let mut world = World::new(2, &[]);
    let mut running = VecDeque::from([world.one(1), world.one(2)]);
    (3..=8).for_each(|number| world.wait(number));
    let stands = |world: &World, number| world.admission.place(ask(number).session, world.now).unwrap();
    world.later(100);
    assert_eq!(stands(&world, 8).eta_ms, None, "no waiting call was admitted yet");
    for _ in 0..2 {
        world.later(3_000);
        let ended = running.pop_front().unwrap();
        world.ends(&ended, &answered());
        running.extend(world.granted());
    }
    let place = stands(&world, 8);
    assert_eq!((place.position, place.of, place.eta_ms), (4, 4, Some(6_000)));
}
