//! A thousand sessions with one key, against a server with a rate limit; everything in virtual time.

use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SESSIONS: u64 = 1_000;
const WINDOW_MS: u64 = 60_000;
const LATENCY_MS: u64 = 700;

/// The part of the rate limit that the server reports.
#[derive(Clone, Copy, PartialEq)]
enum Manners {
    /// Nothing but the status 429.
    Silent,
    /// When the window ends.
    RetryAfter,
    /// The end of the window, and with every answer the remaining requests.
    Headers,
}

struct Server {
    per_window: u64,
    manners: Manners,
    /// By window: the number of requests, and how many exceeded the limit.
    asked: BTreeMap<u64, (u64, u64)>,
}

impl Server {
    fn ask(&mut self, at: Timestamp) -> (CallOutcome, Rates) {
        let passed = at.since_ms(T0);
        let reset_ms = WINDOW_MS - passed % WINDOW_MS;
        let (asked, too_many) = self.asked.entry(passed / WINDOW_MS).or_default();
        *asked += 1;
        let mut rates = Rates::default();
        if self.manners == Manners::Headers {
            rates.requests = Gauge {
                limit: Some(self.per_window),
                remaining: Some(self.per_window.saturating_sub(*asked)),
                reset_ms: Some(reset_ms),
            };
        }
        if *asked <= self.per_window {
            return (answered(), rates);
        }
        *too_many += 1;
        let wish = (self.manners != Manners::Silent).then_some(reset_ms);
        (failed(FailureClass::RateLimited, wish), rates)
    }
}

enum Event {
    Asks(u64),
    Ends(Box<(Grant, u64, CallOutcome, Rates)>),
    Wake,
}

struct Fleet {
    world: World,
    server: Server,
    events: BinaryHeap<Reverse<(Timestamp, u64)>>,
    what: BTreeMap<u64, Event>,
    next: u64,
    done: u64,
    attempts: BTreeMap<u64, u32>,
}

impl Fleet {
    fn at(&mut self, at: Timestamp, event: Event) {
        self.next += 1;
        self.events.push(Reverse((at, self.next)));
        self.what.insert(self.next, event);
    }

    fn again(&mut self, session: u64, wish: Option<u64>) {
        let attempts = self.attempts.entry(session).or_default();
        *attempts += 1;
        let backoff = 1_000 << (*attempts - 1).min(5);
        let at = self.world.now.plus_ms(wish.unwrap_or(backoff));
        self.at(at, Event::Asks(session));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Asks(session) => self.world.wait(session),
            Event::Ends(ended) => {
                let (grant, session, outcome, rates) = *ended;
                let outlook = self.world.ends_with(&grant, &outcome, &rates);
                match outcome {
                    CallOutcome::Failed { retry_after_ms, .. } => {
                        self.again(session, retry_after_ms.max(outlook.closed_ms));
                    }
                    CallOutcome::Answered { .. } | CallOutcome::Dropped => self.done += 1,
                }
            }
            Event::Wake => {}
        }
    }

    fn admit(&mut self) {
        while let Some(step) = self.world.admission.next(self.world.now) {
            match step {
                Step::Granted(session, grant) => {
                    let (outcome, rates) = self.server.ask(self.world.now);
                    let at = self.world.now.plus_ms(LATENCY_MS);
                    self.at(at, Event::Ends(Box::new((grant, session, outcome, rates))));
                }
                Step::Refused(session, refusal) => self.again(session, Some(refusal.retry_after_ms)),
            }
        }
        if let Some(wake) = self.world.admission.wake() {
            self.at(wake, Event::Wake);
        }
    }

    fn run(mut self) -> Self {
        let mut steps = 0_u32;
        while let Some(Reverse((at, number))) = self.events.pop() {
            steps += 1;
            assert!(steps < 1_000_000, "only {} sessions are done", self.done);
            self.world.now = self.world.now.max(at);
            let event = self.what.remove(&number).unwrap();
            self.happens(event);
            self.admit();
        }
        self
    }
}

fn fleet(permits: u32, per_window: u64, manners: Manners) -> Fleet {
    let mut fleet = Fleet {
        world: World::new(permits, &["key"]),
        server: Server {
            per_window,
            manners,
            asked: BTreeMap::new(),
        },
        events: BinaryHeap::new(),
        what: BTreeMap::new(),
        next: 0,
        done: 0,
        attempts: BTreeMap::new(),
    };
    for session in 0..SESSIONS {
        fleet.at(T0, Event::Asks(session));
    }
    fleet.run()
}

/// The probes of a silent server in one window: after 2, 4, 8, 16 and 32 seconds.
const PROBES: u64 = 5;

/// All sessions are served in about the time that the server needs, no window exceeds its limit by more than the permits
/// and the probes, and the excess of all windows together is at most `too_many`.
fn check(manners: Manners, too_many: u64, windows: usize) {
    let (permits, per_window) = (64, 100);
    let fleet = fleet(permits, per_window, manners);
    assert_eq!(fleet.done, SESSIONS);
    let asked = &fleet.server.asked;
    assert!(
        asked
            .values()
            .all(|(asked, _)| *asked <= per_window + u64::from(permits) + PROBES),
        "{asked:?}"
    );
    let over: u64 = asked.values().map(|(_, too_many)| too_many).sum();
    assert!(over <= too_many, "{over} too many: {asked:?}");
    assert!(asked.len() <= windows, "{} windows: {asked:?}", asked.len());
}

#[test]
fn i6_a_thousand_sessions_at_a_servers_limit_do_not_come_back_in_a_herd() {
    check(Manners::RetryAfter, 220, 12);
}

#[test]
fn i6_a_thousand_sessions_at_a_silent_servers_limit_do_not_come_back_in_a_herd() {
    check(Manners::Silent, 150, 11);
}

#[test]
fn i6_a_thousand_sessions_keep_the_limit_that_headers_tell() {
    check(Manners::Headers, 130, 13);
}
