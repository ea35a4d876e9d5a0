//! Sums up the effect of the provider's prompt cache on a session, from the events of its log.

use agentd_protocol::{
    CacheBroken, CacheEffect, Event, EventBody, ModelFinished, ModelStarted, Price, Seq, Timestamp,
};
use std::collections::BTreeMap;

/// Providers drop a prefix that was not read for five minutes, unless its mark says an hour; none keeps it longer.
const SHORT_MS: u64 = 300_000;
const HOUR_MS: u64 = 3_600_000;
/// Fewer tokens than this are not a broken prefix: providers cache none so short.
const LEAST: u64 = 1_024;

/// The prices of models by their configured names.
pub type Prices = BTreeMap<String, Price>;

/// The extra cost in US dollars of sending these tokens again instead of reading them from the cache.
#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
fn resending(price: &Price, tokens: u64) -> f64 {
    (price.cache_write.max(price.input) - price.cache_read) * tokens as f64 / 1e6
}

/// The effect of the cache on a session.
#[derive(Debug, Default)]
pub struct CacheBill {
    effect: CacheEffect,
    /// The event up to which the conversation is in the cache, and the time of the last request that used it.
    warm: Option<Warm>,
    asked: Option<Asked>,
    /// The conversation was made shorter since the last answer.
    shortened: bool,
}

#[derive(Debug, Clone)]
struct Asked {
    seq: Seq,
    at: Timestamp,
    started: ModelStarted,
}

#[derive(Debug, Clone)]
struct Warm {
    asked: Asked,
    at: Timestamp,
    left: u64,
}

impl Warm {
    const fn holds_ms(&self) -> u64 {
        if self.asked.started.cache_hour {
            HOUR_MS
        } else {
            SHORT_MS
        }
    }
}

impl CacheBill {
    /// The effect so far.
    #[must_use]
    pub fn into_effect(self) -> CacheEffect {
        self.effect
    }

    /// Folds one event, in the order of the log.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most events do not change the prefix"
    )]
    pub fn apply(&mut self, event: &Event, prices: &Prices) {
        match &event.body {
            EventBody::ModelStarted(started) => {
                self.asked = Some(Asked {
                    seq: event.seq,
                    at: event.at,
                    started: started.clone(),
                });
            }
            EventBody::ModelFinished(finished) => self.answered(event, finished, prices),
            EventBody::ContextCompacted(_)
            | EventBody::ContextPruned(_)
            | EventBody::ContextTruncated(_)
            | EventBody::ContextTrimmed(_) => self.shortened = true,
            _ => {}
        }
    }

    fn answered(&mut self, event: &Event, finished: &ModelFinished, prices: &Prices) {
        let Some(asked) = self.asked.take() else { return };
        let usage = &finished.usage;
        let model = asked.started.configured.as_ref().unwrap_or(&asked.started.model);
        let price = prices.get(model);
        self.effect.saved_usd += price.map_or(0.0, |price| price.saved(usage));
        if let Some(warm) = &self.warm
            && warm.left >= LEAST
            && usage.cache_read < warm.left.div_ceil(2)
        {
            let lost = warm.left.saturating_sub(usage.cache_read);
            self.effect.broken.push(CacheBroken {
                seq: asked.seq,
                at: asked.at,
                why: why(warm, &asked, self.shortened),
                tokens: lost,
                cost_usd: price.map(|price| resending(price, lost)),
            });
        }
        let left = usage.cache_read.saturating_add(usage.cache_write);
        self.warm = (left > 0).then_some(Warm {
            asked,
            at: event.at,
            left,
        });
        self.shortened = false;
    }

    /// The event up to which the conversation is in the cache; 0: nothing is, or it has been dropped by now.
    #[must_use]
    pub fn cached_up_to(&self, model: &str, now: Timestamp) -> Seq {
        let warm = self.warm.as_ref().filter(|warm| {
            let started = &warm.asked.started;
            let same = started.configured.as_deref().unwrap_or(&started.model) == model;
            same && !self.shortened && now.since_ms(warm.at) <= warm.holds_ms()
        });
        warm.map_or(0, |warm| warm.asked.seq)
    }
}

fn why(warm: &Warm, asked: &Asked, shortened: bool) -> String {
    let (then, now) = (&warm.asked.started, &asked.started);
    let name = |started: &ModelStarted| started.configured.as_ref().unwrap_or(&started.model).clone();
    let pause = asked.at.since_ms(warm.at);
    if name(then) != name(now) {
        format!("the model changed from {} to {}", name(then), name(now))
    } else if pause > HOUR_MS {
        "more than an hour passed".to_owned()
    } else if pause > warm.holds_ms() {
        format!("{} minutes passed", pause / 60_000)
    } else if then.credential != now.credential {
        "the credential changed".to_owned()
    } else if then.thinking != now.thinking {
        "the thinking level changed".to_owned()
    } else if shortened {
        "the conversation was shortened".to_owned()
    } else {
        "the tools or the system prompt changed, or the provider dropped it".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{EVENT_VERSION, Principal, SessionId};
    use serde_json::{Value, json};

    struct Log {
        bill: CacheBill,
        seq: Seq,
        at: u64,
    }

    impl Log {
        fn new() -> Self {
            let (bill, seq, at) = (CacheBill::default(), 0, 1_000);
            Self { bill, seq, at }
        }

        fn add(&mut self, body: Value) {
            self.seq += 1;
            let event = Event {
                v: EVENT_VERSION,
                session: SessionId::NIL,
                seq: self.seq,
                at: Timestamp(self.at),
                by: Principal::agentd(),
                turn: None,
                body: serde_json::from_value(body).unwrap(),
            };
            let price = Price {
                input: 3.0,
                output: 15.0,
                cache_read: 0.3,
                cache_write: 3.75,
                cache_write_1h: 0.0,
            };
            let prices = ["claude", "other"].map(|name| (name.to_owned(), price));
            self.bill.apply(&event, &prices.into());
        }

        fn call(&mut self, model: &str, thinking: &str, read: u64, write: u64) {
            let call = "0198c0de-0000-7000-8000-000000000001";
            self.add(json!({"type": "model.started", "call": call, "attempt": 1, "step": 1, "max_steps": 9,
                "provider": "p", "model": "m", "input_tokens_estimate": 9, "configured": model, "thinking": thinking}));
            self.add(json!({"type": "model.finished", "call": call, "attempt": 1, "content": [],
                "stop_reason": "end_turn", "latency": {"first_ms": 1, "total_ms": 2},
                "usage": {"input": 5, "output": 1, "cache_read": read, "cache_write": write, "reasoning": 0}}));
        }

        fn whys(&self) -> Vec<&str> {
            self.bill
                .effect
                .broken
                .iter()
                .map(|broken| broken.why.as_str())
                .collect()
        }
    }

    #[test]
    fn each_broken_prefix_has_its_reason_and_its_cost() {
        let mut log = Log::new();
        log.call("claude", "low", 0, 10_000);
        log.call("claude", "low", 10_000, 0);
        assert_eq!(log.whys(), Vec::<&str>::new());
        log.call("other", "low", 0, 10_000);
        log.call("other", "high", 0, 10_000);
        log.at += SHORT_MS;
        log.call("other", "high", 4_999, 5_001);
        log.at += SHORT_MS + 1;
        log.call("other", "high", 0, 10_000);
        log.at += HOUR_MS + 1;
        log.call("other", "high", 0, 10_000);
        log.add(json!({"type": "context.trimmed", "to_seq": 1, "messages": 1, "tokens_before": 9, "tokens_after": 8}));
        log.call("other", "high", 100, 10_000);
        assert_eq!(
            log.whys(),
            [
                "the model changed from claude to other",
                "the thinking level changed",
                "the tools or the system prompt changed, or the provider dropped it",
                "5 minutes passed",
                "more than an hour passed",
                "the conversation was shortened",
            ]
        );
        let last = log.bill.effect.broken.last().unwrap();
        assert_eq!(last.tokens, 9_900);
        // Written again for 3.75 instead of read for 0.30.
        assert!((last.cost_usd.unwrap() - 9_900.0 * 3.45 / 1e6).abs() < 1e-12);
    }

    #[test]
    fn a_partial_read_of_the_prefix_is_no_break() {
        let mut log = Log::new();
        log.call("claude", "low", 0, 10_000);
        log.call("claude", "low", 5_000, 5_000);
        assert_eq!(log.whys().len(), 0);
        log.call("claude", "low", 0, LEAST - 1);
        assert_eq!(log.whys().len(), 1);
        log.call("claude", "low", 0, LEAST - 1);
        assert_eq!(log.whys().len(), 1, "there was nothing to break");
    }

    #[test]
    fn a_sent_prefix_is_cached_until_it_expires() {
        let mut log = Log::new();
        log.call("claude", "low", 0, 10_000);
        let at = Timestamp(log.at);
        assert_eq!(log.bill.cached_up_to("claude", at), 1);
        assert_eq!(log.bill.cached_up_to("other", at), 0);
        assert_eq!(log.bill.cached_up_to("claude", Timestamp(log.at + SHORT_MS)), 1);
        assert_eq!(
            log.bill.cached_up_to("claude", Timestamp(log.at + SHORT_MS + 1)),
            0
        );
        // 10,000 tokens were written for 0.75 more than fresh input.
        assert!(
            (log.bill.effect.saved_usd + 0.0075).abs() < 1e-12,
            "{}",
            log.bill.effect.saved_usd
        );
        log.call("claude", "low", 10_000, 0);
        assert!(
            (log.bill.effect.saved_usd - 0.0195).abs() < 1e-12,
            "{}",
            log.bill.effect.saved_usd
        );
    }
}
