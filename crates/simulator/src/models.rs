//! The models: their configuration, their admission (the real one), and the course of calls.

use crate::messages::{Happening, News};
use crate::options::{Flaw, Knob, Options};
use crate::speech::piece_of;
use crate::workers::{Work, Worker};
use crate::world::World;
use agentd_actor_kit::{Ask, CallOutcome, Grant, Lane, Outlook, Refusal};
use agentd_model_client::{Admission, Setup, Step};
use agentd_protocol::{
    Advice, CallId, FailureClass, Price, RefusedItem, ThinkingLevel, Timestamp, TurnError,
};
use agentd_provider::Rates;
use agentd_settings::{RatesConfig, SchedulerConfig};
use agentd_turn::{ModelFacts, ModelFailure, TABLE};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The configured models: name, provider, fallbacks.
const MODELS: [(&str, &str, &[&str]); 2] = [("sonnet", "p", &["haiku"]), ("haiku", "q", &[])];

/// A place in the admission queue, and whether it is still wanted.
#[derive(Debug, Clone)]
pub(crate) struct QueueEntry {
    worker: u64,
    waits: Arc<AtomicBool>,
}

fn gone(place: &QueueEntry) -> bool {
    !place.waits.load(Ordering::Relaxed)
}

/// Calls are equal only if they are the same call.
impl PartialEq for QueueEntry {
    fn eq(&self, other: &Self) -> bool {
        self.worker == other.worker
    }
}

/// One attempt in progress.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: (CallId, u32),
    facts: ModelFacts,
    provider: &'static str,
    tokens: u64,
    credential: Option<String>,
    insists: bool,
    /// It writes a summary, which is not shown to viewers.
    pub(crate) summary: bool,
    place: Option<QueueEntry>,
    grant: Option<Grant>,
    /// The number of pieces still to come.
    pieces: u64,
}

impl Call {
    pub(crate) fn new(
        id: (CallId, u32),
        facts: &ModelFacts,
        tokens: u64,
        (credential, insists): (Option<String>, bool),
    ) -> Self {
        Self {
            id,
            facts: facts.clone(),
            provider: if facts.provider == "q" { "q" } else { "p" },
            tokens,
            credential,
            insists,
            summary: false,
            place: None,
            grant: None,
            pieces: 0,
        }
    }
}

/// All providers of the node. A restart discards what was learned.
#[derive(Debug)]
pub(crate) struct Models {
    window: u64,
    credentials: Vec<String>,
    pub(crate) providers: BTreeMap<&'static str, Provider>,
}

/// One provider.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) admission: Admission<QueueEntry>,
    alarm: u64,
}

impl Models {
    pub(crate) fn new(options: &Options, now: Timestamp) -> Self {
        let names = ["a", "b", "c"].into_iter().map(String::from);
        let credentials: Vec<String> = names.take(options.get(Knob::Credentials) as usize).collect();
        let mut providers = BTreeMap::new();
        for (_, name, _) in MODELS {
            let setup = Setup {
                permits: options.get(Knob::Permits),
                share: None,
                credentials: credentials.clone(),
                rates: RatesConfig {
                    requests: options.get(Knob::Rate).into(),
                    ..RatesConfig::default()
                },
                scheduler: SchedulerConfig::default(),
                patience_ms: 30_000,
            };
            let admission = Admission::new(setup, now, gone);
            providers.insert(name, Provider { admission, alarm: 0 });
        }
        Self {
            window: u64::from(options.get(Knob::Window)) * 1_000,
            credentials,
            providers,
        }
    }

    pub(crate) fn facts(&self, name: &str) -> Result<ModelFacts, TurnError> {
        let found = MODELS.iter().find(|(known, ..)| *known == name);
        let (name, provider, fallbacks) = found.ok_or_else(|| TurnError {
            class: "invalid_request".into(),
            message: format!("there is no model {name}"),
        })?;
        Ok(ModelFacts {
            provider: (*provider).into(),
            model: format!("{name}-5"),
            credentials: self.credentials.clone(),
            fallbacks: fallbacks.iter().map(|name| (*name).into()).collect(),
            thinking: Some(ThinkingLevel::High),
            window: self.window,
            max_output: self.window / 8,
            min_cache_tokens: Some(500),
            cache_hour: Some(Price::RATIOS),
            counts: false,
            images: true,
        })
    }
}

impl World {
    /// Advances a call: it queues, has begun, sends another piece, or ends.
    pub(crate) fn call_goes_on(&mut self, number: u64, mut worker: Worker) {
        let (owner_session, now) = (worker.session, self.now);
        let Work::Model(call) = &mut worker.work else {
            return;
        };
        if call.grant.is_some() {
            return self.piece(number, worker);
        }
        let place = QueueEntry {
            worker: number,
            waits: Arc::new(AtomicBool::new(true)),
        };
        call.place = Some(place.clone());
        let ask = Ask {
            session: owner_session,
            model: call.facts.model.clone(),
            credential: call.credential.clone(),
            group: String::new(),
            lane: if number.is_multiple_of(3) {
                Lane::Background
            } else {
                Lane::Interactive
            },
            input_tokens: call.tokens,
            output_tokens: 100,
            insists: call.insists,
        };
        let (provider, id) = (call.provider, call.id);
        self.model_says(&mut worker, id, News::Waiting);
        self.here.workers.insert(number, worker);
        let providers = &mut self.here.models.providers;
        if let Some(found) = providers.get_mut(provider)
            && let Some(step) = found.admission.acquire(ask, place, now)
        {
            self.admitted(step);
        }
        self.admit(provider);
    }

    /// Grants free permits, and sets the provider's alarm for the rest.
    pub(crate) fn admit(&mut self, name: &'static str) {
        loop {
            let Some(provider) = self.here.models.providers.get_mut(name) else {
                return;
            };
            let Some(step) = provider.admission.next(self.now) else {
                break;
            };
            self.admitted(step);
        }
        if let Some(provider) = self.here.models.providers.get_mut(name)
            && let Some(at) = provider.admission.wake()
        {
            provider.alarm += 1;
            let alarm = Happening::Alarm {
                era: self.here.era,
                provider: name,
                number: provider.alarm,
            };
            self.post(at.since_ms(self.now).max(1), alarm);
        }
    }

    pub(crate) fn alarm(&mut self, name: &'static str, number: u64) {
        let provider = self.here.models.providers.get(name);
        let current = provider.map(|provider| provider.alarm);
        if current == Some(number) {
            self.admit(name);
        }
    }

    fn admitted(&mut self, step: Step<QueueEntry>) {
        match step {
            Step::Granted(place, grant) => {
                let Some(mut worker) = self.here.workers.remove(&place.worker) else {
                    // The requester is gone and drops its permit.
                    drop(self.give_back(&grant, &CallOutcome::Dropped));
                    return;
                };
                let window = grant.window;
                let pieces = self.dice.between(0, 4);
                let Work::Model(call) = &mut worker.work else {
                    return;
                };
                call.grant = Some(grant);
                call.pieces = pieces;
                let id = call.id;
                self.model_says(&mut worker, id, News::Granted(window));
                self.here.workers.insert(place.worker, worker);
                let after = match self.chance(Knob::Slow, 100) {
                    true => self.dice.between(10_000, 120_000),
                    false => self.dice.between(5, 400),
                };
                self.post(after, Happening::Worker(place.worker));
            }
            Step::Refused(place, refusal) => self.refused(place.worker, &refusal),
        }
    }

    fn refused(&mut self, number: u64, refusal: &Refusal) {
        let Some(mut worker) = self.here.workers.remove(&number) else {
            return;
        };
        let Work::Model(call) = &worker.work else { return };
        let (id, failure) = (
            call.id,
            ModelFailure {
                retry_after_ms: Some(refusal.retry_after_ms),
                refused: true,
                ..ModelFailure::new(refusal.class, refusal.message.clone())
            },
        );
        self.model_says(&mut worker, id, News::Failed(Box::new(failure)));
    }

    fn give_back(&mut self, grant: &Grant, outcome: &CallOutcome) -> Outlook {
        let mut stamp = self.dice.stamp(self.now);
        let name = if grant.model.starts_with("haiku") {
            "q"
        } else {
            "p"
        };
        match self.here.models.providers.get_mut(name) {
            Some(provider) => {
                provider
                    .admission
                    .release(grant, outcome, &Rates::default(), &mut stamp)
                    .0
            }
            None => Outlook::default(),
        }
    }

    /// Handles the kill of a call's worker.
    pub(crate) fn call_dropped(&mut self, call: Call) {
        if let Some(place) = &call.place {
            place.waits.store(false, Ordering::Relaxed);
        }
        let Some(grant) = call.grant.filter(|_| self.disk.flaw != Flaw::LostPermit) else {
            return;
        };
        self.give_back(&grant, &CallOutcome::Dropped);
        self.admit(call.provider);
    }

    /// Sends the next piece of an answer, or its end.
    fn piece(&mut self, number: u64, mut worker: Worker) {
        let Work::Model(call) = &mut worker.work else {
            return;
        };
        let (id, provider) = (call.id, call.provider);
        let summary = call.summary;
        if call.pieces > 0 {
            call.pieces -= 1;
            if let Some(grant) = call.grant.as_mut().filter(|grant| grant.probe)
                && let Some(provider) = self.here.models.providers.get_mut(provider)
            {
                provider.admission.works(grant, self.now);
                grant.probe = false;
            }
            let text = piece_of(&mut self.dice);
            if !summary {
                self.model_says(&mut worker, id, News::Text(text));
            }
            self.here.workers.insert(number, worker);
            self.admit(provider);
            let after = self.dice.between(1, 200);
            return self.post(after, Happening::Worker(number));
        }
        let Some(grant) = call.grant.take() else { return };
        let tokens = call.tokens;
        let facts = call.facts.clone();
        let news = match self.failure(&facts, tokens) {
            Some(failure) => {
                let outcome = CallOutcome::Failed {
                    class: failure.class,
                    retry_after_ms: failure.retry_after_ms,
                    window: match failure.advice {
                        Some(Advice::Window { tokens, .. }) => Some(tokens),
                        _ => None,
                    },
                    absent: false,
                };
                let outlook = self.give_back(&grant, &outcome);
                News::Failed(Box::new(ModelFailure {
                    credential: grant.credential,
                    other_credential: outlook.other,
                    retry_after_ms: failure.retry_after_ms.max(outlook.closed_ms),
                    ..failure
                }))
            }
            None => {
                let answer = self.answer(tokens, summary, grant.credential.clone());
                self.give_back(&grant, &CallOutcome::Answered { usage: answer.usage });
                News::Answered(Box::new(answer))
            }
        };
        self.admit(provider);
        self.model_says(&mut worker, id, news);
    }

    fn failure(&mut self, facts: &ModelFacts, tokens: u64) -> Option<ModelFailure> {
        if !self.calm && tokens > facts.window {
            return Some(overflow(Some(facts.window), tokens));
        }
        if self.chance(Knob::Overflow, 100) {
            return Some(overflow(None, tokens));
        }
        if !self.chance(Knob::Fail, 100) {
            return None;
        }
        let class = self
            .dice
            .pick(&TABLE)
            .map_or(FailureClass::Transient, |row| row.class);
        let wishes = [
            None,
            None,
            Some(0),
            Some(1_500),
            Some(20_000),
            Some(90_000),
            Some(7_200_000),
        ];
        Some(ModelFailure {
            retry_after_ms: self.dice.pick(&wishes).copied().flatten(),
            advice: match self.dice.below(12) {
                0 => Some(Advice::Think(vec![ThinkingLevel::Low])),
                1 => Some(Advice::Think(Vec::new())),
                2 => Some(Advice::Miscalled {
                    name: "Read".to_owned(),
                    said: "{".to_owned(),
                }),
                3 => Some(Advice::Item(RefusedItem::Image { message: None })),
                4 => Some(Advice::Item(RefusedItem::Tool {
                    name: tokens.is_multiple_of(2).then(|| "Read".to_owned()),
                    index: Some(1),
                })),
                _ => None,
            },
            ..ModelFailure::new(class, "it failed")
        })
    }
}

fn overflow(tokens: Option<u64>, sent: u64) -> ModelFailure {
    ModelFailure {
        advice: tokens.map(|tokens| Advice::Window {
            tokens,
            sent: Some(sent),
        }),
        ..ModelFailure::new(FailureClass::ContextOverflow, "the prompt is too long")
    }
}
