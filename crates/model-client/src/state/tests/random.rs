//! Random events in random order: the bound holds, no call is lost, and no call waits for ever.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Happens {
    Asks {
        session: u64,
        model: u8,
        group: u8,
        background: bool,
        pinned: bool,
    },
    Ends {
        which: usize,
        outcome: CallOutcome,
        rates: Rates,
    },
    Works {
        which: usize,
    },
    Time {
        ms: u64,
    },
}

fn outcome() -> impl Strategy<Value = CallOutcome> {
    let class = prop::sample::select(vec![
        FailureClass::RateLimited,
        FailureClass::Overloaded,
        FailureClass::Transient,
        FailureClass::QuotaExhausted,
        FailureClass::Auth,
        FailureClass::ContextOverflow,
        FailureClass::Internal,
    ]);
    let wish = prop::option::of(prop_oneof![0..5_000_u64, 0..600_000_u64, Just(u64::MAX)]);
    prop_oneof![
        4 => Just(answered()),
        1 => Just(CallOutcome::Dropped),
        4 => (class, wish).prop_map(|(class, wish)| failed(class, wish)),
    ]
}

fn rates() -> impl Strategy<Value = Rates> {
    let gauge = prop::option::of((0..500_u64, 0..500_u64, 0..200_000_u64)).prop_map(|told| {
        told.map_or_else(Gauge::default, |(limit, remaining, reset)| Gauge {
            limit: Some(limit),
            remaining: Some(remaining),
            reset_ms: Some(reset),
        })
    });
    (gauge.clone(), gauge).prop_map(|(requests, input_tokens)| Rates {
        requests,
        input_tokens,
        output_tokens: Gauge::default(),
    })
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (0..20_u64, 0..3_u8, 0..3_u8, any::<bool>(), any::<bool>()).prop_map(
            |(session, model, group, background, pinned)| Happens::Asks {
                session, model, group, background, pinned
            }
        ),
        4 => (any::<prop::sample::Index>(), outcome(), rates()).prop_map(|(which, outcome, rates)| {
            Happens::Ends { which: which.index(1_000), outcome, rates }
        }),
        1 => any::<prop::sample::Index>().prop_map(|which| Happens::Works { which: which.index(1_000) }),
        2 => prop_oneof![0..2_000_u64, 0..100_000_u64].prop_map(|ms| Happens::Time { ms }),
    ]
}

struct Book {
    world: World,
    running: Vec<Grant>,
    asked: usize,
    granted: usize,
    refused: usize,
}

impl Book {
    fn happens(&mut self, event: Happens) {
        match event {
            Happens::Asks {
                session,
                model,
                group,
                background,
                pinned,
            } => {
                let mut ask = ask(session);
                ask.model = format!("m{model}");
                ask.group = format!("g{group}");
                ask.lane = if background {
                    Lane::Background
                } else {
                    Lane::Interactive
                };
                ask.credential = pinned.then(|| "a".to_owned());
                self.asked += 1;
                let refused = self.world.admission.acquire(ask, session, self.world.now);
                self.refused += usize::from(refused.is_some());
            }
            Happens::Ends {
                which,
                outcome,
                rates,
            } if !self.running.is_empty() => {
                let grant = self.running.swap_remove(which % self.running.len());
                self.world.ends_with(&grant, &outcome, &rates);
            }
            Happens::Works { which } if !self.running.is_empty() => {
                let grant = &self.running[which % self.running.len()];
                self.world.admission.works(grant, self.world.now);
            }
            Happens::Ends { .. } | Happens::Works { .. } => {}
            Happens::Time { ms } => self.world.later(ms),
        }
        self.admit();
    }

    fn admit(&mut self) {
        while let Some(step) = self.world.admission.next(self.world.now) {
            match step {
                Step::Granted(_, grant) => {
                    self.granted += 1;
                    self.running.push(grant);
                }
                Step::Refused(_, refusal) => {
                    assert!(refusal.retry_after_ms > self.world.admission.patience_ms);
                    self.refused += 1;
                }
            }
        }
        let status = self.world.admission.status(self.world.now);
        assert!(status.running <= status.permits);
        assert_eq!(status.running as usize, self.running.len());
        assert_eq!(self.asked, self.granted + self.refused + status.waiting as usize);
        if let Some(wake) = self.world.admission.wake() {
            assert!(
                wake > self.world.now,
                "a timer that is due at once would never end"
            );
        }
        let moves = !self.running.is_empty() || self.world.admission.wake().is_some();
        assert!(
            status.waiting == 0 || moves,
            "a call waits although nothing holds it back"
        );
    }

    /// From here on all calls succeed, so every waiting call must get through.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            if let Some(grant) = self.running.pop() {
                self.world.ends(&grant, &answered());
            } else if let Some(wake) = self.world.admission.wake() {
                self.world.now = wake;
            } else {
                break;
            }
            self.admit();
        }
        assert_eq!(self.world.admission.status(self.world.now).waiting, 0);
        assert!(self.running.is_empty());
    }
}

proptest! {
    #[test]
    fn i6_permits_are_bounded_and_nobody_waits_for_ever(
        events in prop::collection::vec(happens(), 1..200),
        permits in 1..6_u32,
        keys in 0..3_usize,
        requests in prop::sample::select(vec![0_u64, 1, 30]),
        most in prop::sample::select(vec![3_u32, 1_000]),
    ) {
        let mut config = setup(permits, ["a", "b"].get(..keys).unwrap());
        config.rates.requests = requests;
        config.scheduler.max_waiting = most;
        config.scheduler.weights = [("g1".to_owned(), 3.0), ("g2".to_owned(), f64::NAN)].into();
        let world = World::of(config);
        let mut book = Book { world, running: Vec::new(), asked: 0, granted: 0, refused: 0 };
        for event in events {
            book.happens(event);
        }
        book.finish();
    }
}
