//! Chooses how long the provider keeps the prompt: for five minutes, or for more money for an hour.

use crate::attempts::outer::{Taught, Warm};
use crate::draft::Draft;
use crate::durable::Attempt;
use crate::input::ModelFacts;
use agentd_protocol::{Price, RequestPart, Timestamp};
use serde::Serialize;

/// Providers keep a cached prefix for at least this long after its last use.
pub(crate) const SHORT_MS: u64 = 300_000;
/// They keep it this long if its marks say so.
const HOUR_MS: u64 = 3_600_000;

/// Pauses between an answer and the next call that a prompt in the provider's cache did not survive in five minutes:
/// a person answered late, or a tool took long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Pauses {
    /// Those of at most an hour.
    pub within_hour: u32,
    /// Longer ones.
    pub longer: u32,
}

impl Pauses {
    /// Includes the pause before a call that starts at `now`.
    pub(crate) fn and(self, warm: Option<&Warm>, now: Timestamp) -> Self {
        let pause = warm.map_or(0, |warm| now.since_ms(warm.at));
        Self {
            within_hour: self
                .within_hour
                .saturating_add(u32::from((SHORT_MS + 1..=HOUR_MS).contains(&pause))),
            longer: self.longer.saturating_add(u32::from(pause > HOUR_MS)),
        }
    }

    /// Whether an hour pays, if the rest of the session is like the session so far: as many pauses, and as many tokens as
    /// the prompt has now. Each pause within the hour saves writing the prompt again instead of reading it. An hour's
    /// surcharge applies to the prompt now, to what is still to come, and to the prompt again after each longer pause. All
    /// of these are multiples of the prompt's length, so it cancels out.
    fn hour_pays(self, price: &Price) -> bool {
        let write = price.cache_write.max(price.input);
        let saved = f64::from(self.within_hour) * (write - price.cache_read);
        let extra = (2.0 + f64::from(self.longer)) * (price.hour() - write);
        saved > extra
    }
}

impl Warm {
    /// How long the provider keeps the prefix after its last use.
    pub(crate) const fn holds_ms(&self) -> u64 {
        if self.hour { HOUR_MS } else { SHORT_MS }
    }
}

/// Whether the next request asks for an hour. Only a request that finds nothing in the cache chooses: what was written for
/// five minutes does not last longer because the rest of the prompt would. A retry does not ask for more than the attempt
/// before it.
pub(crate) fn hour(
    draft: &Draft<'_, '_>,
    last: Option<&Attempt>,
    model: &str,
    facts: &ModelFacts,
    taught: &Taught,
) -> bool {
    let refused = |part| taught.without.contains(&part);
    let Some(price) = &facts.cache_hour else {
        return false;
    };
    let fell_back = last.is_some_and(|last| !last.cache_hour);
    if fell_back || refused(RequestPart::CacheHour) || refused(RequestPart::CacheMarks) {
        return false;
    }
    let (outer, now) = (&draft.durable().outer, draft.now());
    let lasts =
        |warm: &&Warm| warm.model == model && !warm.shortened && now.since_ms(warm.at) <= warm.holds_ms();
    match outer.warm.as_ref().filter(lasts) {
        Some(warm) => warm.hour,
        None => outer.pauses.and(outer.warm.as_ref(), now).hour_pays(price),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: Price = Price {
        input: 3.0,
        output: 15.0,
        cache_read: 0.3,
        cache_write: 3.75,
        cache_write_1h: 0.0,
    };

    fn pays(within_hour: u32, longer: u32) -> bool {
        Pauses { within_hour, longer }.hour_pays(&CLAUDE)
    }

    #[test]
    fn an_hour_pays_from_the_second_pause_and_later_after_longer_ones() {
        // 3.45 saved a pause; 2.25 more to write, twice, and once more after each longer pause.
        assert!(!pays(0, 0));
        assert!(!pays(1, 0));
        assert!(pays(2, 0));
        assert!(pays(2, 1));
        assert!(!pays(2, 2));
        assert!(pays(3, 2));
    }

    #[test]
    fn an_hour_without_a_surcharge_pays_from_the_first_pause() {
        let free = Price {
            cache_write_1h: 3.75,
            ..CLAUDE
        };
        let pauses = |within_hour| Pauses {
            within_hour,
            longer: 9,
        };
        assert!(!pauses(0).hour_pays(&free));
        assert!(pauses(1).hour_pays(&free));
    }

    #[test]
    fn pauses_are_counted_between_their_edges() {
        let warm = Warm {
            at: Timestamp(1_000),
            model: "m".to_owned(),
            credential: None,
            thinking: None,
            left: 9,
            hour: false,
            shortened: false,
        };
        let after = |pause| {
            let pauses = Pauses::default().and(Some(&warm), Timestamp(1_000 + pause));
            (pauses.within_hour, pauses.longer)
        };
        assert_eq!(after(SHORT_MS), (0, 0));
        assert_eq!(after(SHORT_MS + 1), (1, 0));
        assert_eq!(after(HOUR_MS), (1, 0));
        assert_eq!(after(HOUR_MS + 1), (0, 1));
        assert_eq!(
            Pauses::default().and(None, Timestamp(HOUR_MS * 3)),
            Pauses::default()
        );
    }

    /// The bill of a session whose calls come after these pauses (minutes), each with 2,000 tokens more than the last. The
    /// provider drops a prompt after its lifetime; `asks` chooses the lifetime whenever the prompt must be written again.
    fn bill(pauses: &[u64], asks: impl Fn(Pauses) -> bool) -> f64 {
        let (mut prompt, mut at, mut usd) = (20_000.0, Timestamp(1), 0.0);
        let mut counted = Pauses::default();
        let mut warm: Option<Warm> = None;
        for pause in pauses {
            at = Timestamp(at.0 + pause * 60_000);
            counted = counted.and(warm.as_ref(), at);
            let lasting = warm.take().filter(|warm| at.since_ms(warm.at) <= warm.holds_ms());
            let hour = lasting.as_ref().map_or_else(|| asks(counted), |warm| warm.hour);
            let write = if hour { CLAUDE.hour() } else { CLAUDE.cache_write };
            let (read, written) = if lasting.is_some() {
                (prompt, 2_000.0)
            } else {
                (0.0, prompt + 2_000.0)
            };
            usd += (read * CLAUDE.cache_read + written * write) / 1e6;
            prompt += 2_000.0;
            warm = Some(Warm {
                at,
                model: String::new(),
                credential: None,
                thinking: None,
                left: 1,
                hour,
                shortened: false,
            });
        }
        usd
    }

    #[test]
    fn the_choice_costs_little_more_than_the_better_lifetime_known_in_advance() {
        let every = |n: usize, pause: u64| -> Vec<u64> {
            (0..60)
                .map(|call| if call % n == n - 1 { pause } else { 1 })
                .collect()
        };
        for pauses in [
            every(1, 1),
            every(1, 10),
            every(6, 10),
            every(20, 10),
            every(6, 90),
            every(6, 600),
            [every(6, 90), every(6, 20)].concat(),
        ] {
            let ours = bill(&pauses, |pauses| pauses.hour_pays(&CLAUDE));
            let (short, hour) = (bill(&pauses, |_| false), bill(&pauses, |_| true));
            assert!(
                ours <= short.min(hour) * 1.35,
                "{ours:.3} instead of {short:.3} or {hour:.3}: {pauses:?}"
            );
        }
        // A person answers every sixth call after 20 minutes: nearly half of the bill is saved.
        let pauses = every(6, 20);
        let (ours, short) = (
            bill(&pauses, |pauses| pauses.hour_pays(&CLAUDE)),
            bill(&pauses, |_| false),
        );
        assert!(ours < short * 0.55, "{ours:.3} instead of {short:.3}");
    }
}
