//! What the log says of the outer loop: what one call has tried, and what the session keeps for its next calls.

use agentd_protocol::{ModelFailed, Remedy, RequestPart, ThinkingLevel, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// After a fallback the session stays with the other model for so long.
pub(crate) const AWAY_MS: u64 = 300_000;
/// A longer rest begins a new round: the call starts again with its own model and may use the fallbacks again.
pub(crate) const NEW_ROUND_MS: u64 = 60_000;
/// Providers and models of which something is remembered, so that a session's state is bounded.
const REMEMBERED: usize = 64;

/// What one model call has tried.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tries {
    /// The configured name of the model that the call is meant for.
    pub own: String,
    /// Models that were tried, by their configured names.
    pub models: BTreeSet<String>,
    /// All failed attempts.
    pub failed: u32,
    /// When the first of them failed.
    pub since: Option<Timestamp>,
    /// Credentials that were changed since the last model or rest.
    pub rotations: u32,
    /// Thinking levels that this model's errors led to.
    pub levels: Vec<ThinkingLevel>,
    /// Rests.
    pub parks: u32,
    /// Long tool results were cut for it.
    pub truncated: bool,
}

impl Tries {
    pub(crate) fn of(own: &str) -> Self {
        Self {
            own: own.to_owned(),
            ..Self::default()
        }
    }

    /// The session got another model: nothing was tried with it, but the budgets of the call go on.
    pub(crate) fn moved_to(&self, own: &str) -> Self {
        Self {
            own: own.to_owned(),
            failed: self.failed,
            since: self.since,
            parks: self.parks,
            truncated: self.truncated,
            ..Self::default()
        }
    }

    fn another_model(&mut self) {
        self.rotations = 0;
        self.levels.clear();
    }

    /// Counts a failed attempt. True: the next one starts with the own model again.
    pub(crate) fn failed(&mut self, failed: &ModelFailed, at: Timestamp) -> bool {
        self.failed = self.failed.saturating_add(1);
        self.since.get_or_insert(at);
        match &failed.remedy {
            Some(Remedy::Rotate { .. }) => self.rotations = self.rotations.saturating_add(1),
            Some(Remedy::Think { level }) => self.levels.push(*level),
            Some(Remedy::Fallback { model }) => {
                self.models.insert(model.clone());
                self.another_model();
            }
            Some(Remedy::TruncateResults) => self.truncated = true,
            Some(Remedy::Park) => {
                self.parks = self.parks.saturating_add(1);
                let wait = failed.retry_at.map_or(0, |until| until.since_ms(at));
                if wait > NEW_ROUND_MS {
                    self.models.clear();
                    self.another_model();
                    return true;
                }
            }
            Some(Remedy::Without { .. } | Remedy::Compact) | None => {}
        }
        false
    }
}

/// What a model's errors taught.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Taught {
    /// The thinking level that is asked for instead of the configured one.
    pub thinking: Option<ThinkingLevel>,
    /// What is left out of requests.
    pub without: BTreeSet<RequestPart>,
}

/// Calls go to another model for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    /// Whose place it takes.
    pub own: String,
    /// The other model.
    pub model: String,
    /// Until then; afterwards the next call tries its own model once.
    pub until: Timestamp,
}

/// What the last answer left in the provider's prompt cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warm {
    /// When.
    pub at: Timestamp,
    /// The configured name of the model.
    pub model: String,
    /// The credential.
    pub credential: Option<String>,
    /// How hard the model was asked to think.
    pub thinking: Option<ThinkingLevel>,
    /// Tokens.
    pub left: u64,
    /// The conversation was made shorter since.
    pub shortened: bool,
}

/// What the session keeps from one model call to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Outer {
    /// By provider the credential that was used last, because its prompt cache is warm.
    pub pins: BTreeMap<String, String>,
    /// By the configured name of a model what its errors taught.
    pub taught: BTreeMap<String, Taught>,
    /// Another model took the place of the session's own.
    pub away: Option<Away>,
    /// The prompt cache.
    pub warm: Option<Warm>,
}

impl Outer {
    pub(crate) fn pin(&mut self, provider: &str, credential: Option<&String>) {
        if let Some(credential) = credential {
            make_room(&mut self.pins, provider);
            self.pins.insert(provider.to_owned(), credential.clone());
        }
    }

    pub(crate) fn taught_of(&self, model: &str) -> Taught {
        self.taught.get(model).cloned().unwrap_or_default()
    }

    fn teach(&mut self, model: &str) -> &mut Taught {
        make_room(&mut self.taught, model);
        self.taught.entry(model.to_owned()).or_default()
    }

    /// Keeps what a failure changes for later calls: `own` is the call's model, `model` the one that failed.
    pub(crate) fn failed(
        &mut self,
        (own, model): (&str, &str),
        provider: &str,
        failed: &ModelFailed,
        at: Timestamp,
    ) {
        let leaves = matches!(failed.remedy, Some(Remedy::Fallback { .. } | Remedy::Park));
        if let Some(away) = &mut self.away
            && away.model == model
            && (leaves || failed.retry_at.is_none())
        {
            away.until = away.until.min(at);
        }
        match &failed.remedy {
            Some(Remedy::Rotate { credential }) => self.pin(provider, Some(credential)),
            Some(Remedy::Think { level }) => self.teach(model).thinking = Some(*level),
            Some(Remedy::Without { part }) => {
                self.teach(model).without.insert(*part);
            }
            Some(Remedy::Fallback { model }) if model != own => {
                self.away = Some(Away {
                    own: own.to_owned(),
                    model: model.clone(),
                    until: at.plus_ms(AWAY_MS),
                });
            }
            Some(Remedy::Fallback { .. } | Remedy::Compact | Remedy::TruncateResults | Remedy::Park)
            | None => {}
        }
    }

    /// The model answered: its own place is its own again.
    pub(crate) fn answered(&mut self, model: &str) {
        if self.away.as_ref().is_some_and(|away| away.own == model) {
            self.away = None;
        }
    }

    /// The model that stands in for `own` now.
    pub(crate) fn stand_in(&self, own: &str, now: Timestamp) -> Option<&str> {
        let away = self.away.as_ref()?;
        (away.own == own && now < away.until).then_some(away.model.as_str())
    }

    /// `model` failed so badly that another took its place, and has not answered since: one failure is enough.
    pub(crate) fn on_probation(&self, model: &str) -> bool {
        self.away.as_ref().is_some_and(|away| away.own == model)
    }
}

fn make_room<T>(kept: &mut BTreeMap<String, T>, name: &str) {
    if kept.len() >= REMEMBERED && !kept.contains_key(name) {
        kept.pop_first();
    }
}
