//! The whole admission of one provider: decides which call may start next. Pure: time and entropy come in as stamps.

use crate::bucket::Charge;
use crate::circuit::{Circuit, Flow};
use crate::credential::{Call, Credentials, Index};
use crate::health::Cooldowns;
use crate::pace::Pace;
use crate::queue::{Pick, Queue, Waiter};
use crate::setup::{Notice, Setup, Step};
use crate::view::told;
use agentd_actor_kit::{Ask, CallOutcome, Grant, Lane, Outlook, Refusal};
use agentd_protocol::{FailureClass, LastCall, Stamp, Timestamp};
use agentd_provider::Rates;
use agentd_settings::RatesConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A permit that is dropped sooner than this counts as unused: its caller was already gone.
const UNUSED_MS: u64 = 50;
/// Refused calls return one after the other, within this time at most.
const SPREAD_MS: u64 = 10 * 60 * 1_000;
/// After a failure of the provider, where the circuit admits calls slowly, they return within the length of the pause,
/// but spread over at least this time.
const LEAST_SPREAD_MS: u64 = 1_000;
/// The bounds of the interval between two returning calls; the lower one applies when the pace is unknown.
const SPREAD_STEP_MS: (u64, u64) = (10, 1_000);
/// A smaller window is a parsing error and is not learned.
const LEAST_WINDOW: u64 = 256;

/// A call in flight.
#[derive(Debug)]
pub(super) struct Running {
    credential: Index,
    charge: Charge,
    since: Timestamp,
    pub(super) lane: Lane,
    pub(super) group: Arc<str>,
}

/// The calls that were refused because of a pause.
#[derive(Debug)]
struct Refused {
    /// The end of the pause.
    until: Timestamp,
    /// The time over which they return.
    spread_ms: u64,
    count: u64,
}

/// The admission of one provider. `T` is where an answer is delivered.
#[derive(Debug)]
pub struct Admission<T> {
    /// The configured limit of calls in flight, and this node's part of it; absent: all.
    pub(super) limit: u32,
    pub(super) share: Option<u32>,
    pub(super) rates: RatesConfig,
    pub(super) patience_ms: u64,
    /// Whether the caller has stopped waiting.
    gone: fn(&T) -> bool,
    pub(super) queue: Queue<T>,
    pub(super) credentials: Credentials,
    pub(super) circuit: Circuit,
    pub(super) pace: Pace,
    pub(super) running: BTreeMap<u64, Running>,
    granted: u64,
    pub(super) windows: BTreeMap<String, u64>,
    /// By model: the pause that caused the refusals.
    refused: BTreeMap<String, Refused>,
    wake: Option<Timestamp>,
    pub(super) last_call: Option<LastCall>,
    /// The models that the server does not have, and when it said so. Bounded by the configuration.
    pub(super) absent: BTreeMap<String, Timestamp>,
}

impl<T> Admission<T> {
    /// An admission without calls; `gone` says whether a caller has stopped waiting.
    pub fn new(setup: Setup, now: Timestamp, gone: fn(&T) -> bool) -> Self {
        let mut new = Self {
            limit: 1,
            share: setup.share,
            rates: setup.rates,
            patience_ms: setup.patience_ms,
            gone,
            queue: Queue::new(&setup.scheduler.weights, setup.scheduler.max_waiting),
            credentials: Credentials::new(Cooldowns::of(&setup.scheduler)),
            circuit: Circuit::new(&setup.scheduler, 1),
            pace: Pace::default(),
            running: BTreeMap::new(),
            granted: 0,
            windows: BTreeMap::new(),
            refused: BTreeMap::new(),
            wake: None,
            last_call: None,
            absent: BTreeMap::new(),
        };
        new.configure(
            setup.permits,
            setup.credentials,
            &setup.rates,
            setup.patience_ms,
            now,
        );
        new
    }

    /// Queues a call, or refuses it if the queue is full. A call that insists ends its model's pauses: one call probes.
    pub fn acquire(&mut self, ask: Ask, place: T, now: Timestamp) -> Option<Step<T>> {
        if ask.insists {
            self.credentials.try_again(&ask.model, now);
            self.circuit.try_again(now);
        }
        let Err(Waiter { place, .. }) = self.queue.line_up(Waiter { ask, place }) else {
            return None;
        };
        let waiting = self.queue.len();
        let refusal = Refusal {
            class: FailureClass::Overloaded,
            message: format!("{waiting} calls are already waiting for this provider"),
            retry_after_ms: self
                .pace
                .eta_ms(waiting, now)
                .unwrap_or(0)
                .clamp(5_000, SPREAD_MS),
        };
        Some(Step::Refused(place, refusal))
    }

    /// The next outcome for a waiting call. Call it after every change until it returns `None`.
    pub fn next(&mut self, now: Timestamp) -> Option<Step<T>> {
        self.wake = None;
        if self.queue.len() == 0 {
            return None;
        }
        if let Some((model, until, class)) = self.long_pause(now) {
            return self.refuse(&model, until, class, now);
        }
        if self.running() >= self.permits() {
            return None;
        }
        match self.circuit.flow(now) {
            Flow::Open => {}
            Flow::Until(until) => {
                self.wake = Some(until);
                return None;
            }
            Flow::Probing => return None,
        }
        let mut held = BTreeSet::new();
        while let Some(pick) = self.queue.pick(&held) {
            if self.queue.take_gone(&pick, self.gone).is_some() {
                continue;
            }
            let ask = self.queue.front(&pick)?;
            let charge = Charge::of(ask);
            match self
                .credentials
                .choose(&ask.model, ask.credential.as_deref(), &charge, now)
            {
                Ok(credential) => return self.grant(&pick, credential, charge, now),
                Err(shut) => {
                    self.wake = [self.wake, shut.opens].into_iter().flatten().min();
                    held.insert(pick.model);
                }
            }
        }
        None
    }

    /// When another call may become possible, once [`Self::next`] has returned `None`.
    #[must_use]
    pub const fn wake(&self) -> Option<Timestamp> {
        self.wake
    }

    /// Calls in flight.
    #[must_use]
    pub fn running(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// A model with waiting calls that is closed for longer than a call may queue.
    fn long_pause(&self, now: Timestamp) -> Option<(Arc<str>, Timestamp, FailureClass)> {
        self.queue.models().find_map(|model| {
            let (until, class) = self.closed(model, now)?;
            (until.since_ms(now) > self.patience_ms).then(|| (Arc::clone(model), until, class))
        })
    }

    /// Until when this model is closed, and why: because of the provider, or of all credentials.
    pub(super) fn closed(&self, model: &str, now: Timestamp) -> Option<(Timestamp, FailureClass)> {
        let circuit = self
            .circuit
            .broken_until(now)
            .map(|until| (until, self.circuit.class()));
        let credentials = self.credentials.closed(model, now);
        [circuit, credentials]
            .into_iter()
            .flatten()
            .max_by_key(|(until, _)| *until)
    }

    fn refuse(
        &mut self,
        model: &str,
        until: Timestamp,
        class: FailureClass,
        now: Timestamp,
    ) -> Option<Step<T>> {
        let waiter = self.queue.take_any(model)?;
        let (least, most) = SPREAD_STEP_MS;
        let step = self.pace.step_ms(now).unwrap_or(least).clamp(least, most);
        let pause_ms = until.since_ms(now);
        let trouble = matches!(class, FailureClass::Transient | FailureClass::Overloaded);
        let longest = if trouble { pause_ms } else { SPREAD_MS };
        let fresh = || Refused {
            until,
            spread_ms: longest.clamp(LEAST_SPREAD_MS, SPREAD_MS),
            count: 0,
        };
        let refused = self.refused.entry(model.to_owned()).or_insert_with(fresh);
        if refused.until != until {
            *refused = fresh();
        }
        let retry_after_ms = pause_ms.saturating_add(refused.count.saturating_mul(step) % refused.spread_ms);
        refused.count = refused.count.saturating_add(1);
        let why = match class {
            FailureClass::RateLimited => "every credential is at its rate limit",
            FailureClass::QuotaExhausted => "every credential is out of quota",
            FailureClass::Auth => "the provider refused every credential",
            _ => "the provider keeps failing",
        };
        let refusal = Refusal {
            class,
            message: format!("not sent: {why} (see `agentctl models`); the next call is possible at {until}"),
            retry_after_ms,
        };
        Some(Step::Refused(waiter.place, refusal))
    }

    fn grant(&mut self, pick: &Pick, credential: Index, charge: Charge, now: Timestamp) -> Option<Step<T>> {
        let Waiter { ask, place } = self.queue.take(pick)?;
        self.granted += 1;
        let number = self.granted;
        let call = Call {
            credential,
            model: &ask.model,
            number,
            next: number + 1,
        };
        let finds_out = self.credentials.went(&call, &charge, now);
        let probe = self.circuit.went(number, now) || finds_out;
        // A call that finds a free permit says nothing about how long others queue.
        if self.queue.len() > 0 {
            self.pace.granted(now);
        }
        let running = Running {
            credential,
            charge,
            since: now,
            lane: pick.lane,
            group: Arc::clone(&pick.group),
        };
        self.running.insert(number, running);
        let grant = Grant {
            number,
            session: ask.session,
            credential: self.credentials.name(credential).map(str::to_owned),
            window: self.windows.get(&ask.model).copied(),
            model: ask.model,
            probe,
        };
        Some(Step::Granted(place, grant))
    }

    /// The server has begun to answer: a probe succeeds before the call ends.
    pub fn works(&mut self, grant: &Grant, now: Timestamp) {
        if let Some(running) = self.running.get(&grant.number) {
            let call = call(grant, running, self.granted);
            self.credentials.succeeded(&call);
            self.circuit.worked(grant.number, now);
        }
    }

    /// Takes a permit back. Returns what the session may expect, and any change that affects everyone.
    pub fn release(
        &mut self,
        grant: &Grant,
        outcome: &CallOutcome,
        rates: &Rates,
        stamp: &mut Stamp,
    ) -> (Outlook, Option<Notice>) {
        let now = stamp.at;
        let Some(running) = self.running.remove(&grant.number) else {
            return (Outlook::default(), None);
        };
        let call = call(grant, &running, self.granted);
        let used = match outcome {
            CallOutcome::Answered { usage } => Charge::used(usage),
            CallOutcome::Dropped if now.since_ms(running.since) < UNUSED_MS => Charge::default(),
            CallOutcome::Dropped => running.charge,
            CallOutcome::Failed { .. } => Charge::turned_away(),
        };
        self.credentials
            .came_back(&call, (&running.charge, &used), rates, now);
        let notice = self.judge(&call, outcome, stamp);
        let outlook = Outlook {
            other: self
                .credentials
                .other(running.credential, &grant.model, now)
                .map(str::to_owned),
            closed_ms: self
                .closed(&grant.model, now)
                .map(|(until, _)| until.since_ms(now)),
        };
        (outlook, notice)
    }

    /// Derives from a call's end the state of its credential and of the provider.
    fn judge(&mut self, call: &Call<'_>, outcome: &CallOutcome, stamp: &mut Stamp) -> Option<Notice> {
        let now = stamp.at;
        let (class, wish_ms) = match outcome {
            CallOutcome::Answered { .. } => {
                self.last_call = Some(LastCall {
                    at: now,
                    failed: None,
                });
                self.absent.remove(call.model);
                self.credentials.answered(call);
                self.circuit.worked(call.number, now);
                return None;
            }
            CallOutcome::Dropped => {
                self.credentials.ended(call, now);
                self.circuit.ended(call.number, now);
                return None;
            }
            CallOutcome::Failed {
                class,
                retry_after_ms,
                window,
                absent,
            } => {
                self.learn_window(call.model, *window);
                if *absent {
                    self.absent.insert(call.model.to_owned(), now);
                }
                (*class, *retry_after_ms)
            }
        };
        self.last_call = told(class, now).or(self.last_call);
        match class {
            FailureClass::RateLimited | FailureClass::QuotaExhausted | FailureClass::Auth => {
                self.circuit.worked(call.number, now);
                let ms = self.credentials.failed(call, class, wish_ms, now)?;
                let credential = self.credentials.name(call.credential).map(str::to_owned);
                Some(Notice::Cooling {
                    credential,
                    class,
                    ms,
                })
            }
            FailureClass::Overloaded | FailureClass::Transient => {
                self.credentials.ended(call, now);
                let numbers = (call.number, call.next);
                let ms = self.circuit.failed(numbers, class, wish_ms, stamp)?;
                Some(Notice::Broken { ms })
            }
            // The server read the request: it works, and the key is valid.
            FailureClass::ContextOverflow | FailureClass::ContentFilter | FailureClass::InvalidRequest => {
                self.credentials.succeeded(call);
                self.circuit.worked(call.number, now);
                None
            }
            FailureClass::Internal | FailureClass::Cancelled => {
                self.credentials.ended(call, now);
                self.circuit.ended(call.number, now);
                None
            }
        }
    }

    fn learn_window(&mut self, model: &str, window: Option<u64>) {
        if let Some(window) = window.filter(|window| *window >= LEAST_WINDOW) {
            let known = self.windows.entry(model.to_owned()).or_insert(window);
            *known = window.min(*known);
        }
    }
}

const fn call<'a>(grant: &'a Grant, running: &Running, granted: u64) -> Call<'a> {
    Call {
        credential: running.credential,
        model: grant.model.as_str(),
        number: grant.number,
        next: granted + 1,
    }
}

#[cfg(test)]
mod tests;
