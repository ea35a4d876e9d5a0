//! The state of the outer loop, from the log: the attempts of one call, and the facts kept for later calls.

use crate::attempts::cache_lifetime::Pauses;
use crate::attempts::left_out::LeftOut;
use agentd_protocol::{ModelFailed, Remedy, RequestPart, ThinkingLevel, Timestamp};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How long the session stays with the other model after a fallback.
pub(crate) const AWAY_MS: u64 = 300_000;
/// A longer parking begins a new round: the call restarts with its own model and may use the fallbacks again.
pub(crate) const NEW_ROUND_MS: u64 = 60_000;
/// The most providers and models to remember, so that a session's state stays bounded.
const REMEMBERED: usize = 64;

/// The remedies that one model call has tried.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Tries {
    /// The configured name of the model that the call was meant for.
    pub own: String,
    /// The models that were tried, by configured name.
    pub models: BTreeSet<String>,
    /// The number of failed attempts.
    pub failed: u32,
    /// When the first of them failed.
    pub since: Option<Timestamp>,
    /// Credential switches since the last change of model or parking.
    pub rotations: u32,
    /// Thinking levels that were tried because of this model's errors.
    pub levels: Vec<ThinkingLevel>,
    /// The number of parkings.
    pub parks: u32,
    /// Long tool results were cut for this call.
    pub truncated: bool,
    /// Attempts that left out items which the provider may refuse.
    #[serde(skip_serializing_if = "is_zero")]
    pub omissions: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde requires")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Tries {
    pub(crate) fn of(own: &str) -> Self {
        Self {
            own: own.to_owned(),
            ..Self::default()
        }
    }

    /// The session was switched to another model: its tries start over, but the budgets of the call continue.
    pub(crate) fn moved_to(&self, own: &str) -> Self {
        Self {
            own: own.to_owned(),
            failed: self.failed,
            since: self.since,
            parks: self.parks,
            truncated: self.truncated,
            omissions: self.omissions,
            ..Self::default()
        }
    }

    fn another_model(&mut self) {
        self.rotations = 0;
        self.levels.clear();
    }

    /// Counts a failed attempt. True: the next one starts with the call's own model again.
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
            Some(Remedy::LeaveOut { .. }) => self.omissions = self.omissions.saturating_add(1),
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

/// The facts learned from a model's errors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Taught {
    /// The thinking level to request instead of the configured one.
    pub thinking: Option<ThinkingLevel>,
    /// Request parts to leave out.
    pub without: BTreeSet<RequestPart>,
    /// Items to leave out.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
}

/// A temporary switch of calls to another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Away {
    /// The model that is replaced.
    pub own: String,
    /// The other model.
    pub model: String,
    /// The end of the switch; the first call after it tries its own model once.
    pub until: Timestamp,
}

/// The state of the provider's prompt cache after the last answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warm {
    /// The time of the answer.
    pub at: Timestamp,
    /// The configured name of the model.
    pub model: String,
    /// The credential.
    pub credential: Option<String>,
    /// The thinking level of the request.
    pub thinking: Option<ThinkingLevel>,
    /// Tokens.
    pub left: u64,
    /// The provider keeps them for an hour, not for five minutes.
    pub hour: bool,
    /// The conversation has been made shorter since.
    pub shortened: bool,
}

/// The state that the session carries over from one model call to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Outer {
    /// The credential last used per provider, because its prompt cache is warm.
    pub pins: BTreeMap<String, String>,
    /// The facts learned from errors, by the model's configured name.
    pub taught: BTreeMap<String, Taught>,
    /// The stand-in for the session's own model, if any.
    pub away: Option<Away>,
    /// The state of the prompt cache.
    pub warm: Option<Warm>,
    /// How long the session waited between its calls.
    pub pauses: Pauses,
    /// People were told that the provider caches nothing.
    pub told_unread: bool,
    /// People were told that the model does not see the images up to now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub told_unseen: bool,
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

    /// Records what a failure changes for later calls: `own` is the call's model, `model` the one that failed.
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
            Some(Remedy::LeaveOut { items, among }) => {
                self.teach(model).left_out.replace(items, among);
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

    /// A new call of the model begins.
    pub(crate) fn begins(&mut self, model: &str) {
        if let Some(taught) = self.taught.get_mut(model) {
            taught.left_out.begin();
        }
    }

    /// The model answered: if it had a stand-in, it takes its own place again.
    pub(crate) fn answered(&mut self, model: &str) {
        if self.away.as_ref().is_some_and(|away| away.own == model) {
            self.away = None;
        }
        if let Some(taught) = self.taught.get_mut(model) {
            taught.left_out.answered();
        }
    }

    /// The current stand-in for `own`.
    pub(crate) fn stand_in(&self, own: &str, now: Timestamp) -> Option<&str> {
        let away = self.away.as_ref()?;
        (away.own == own && now < away.until).then_some(away.model.as_str())
    }

    /// `model` failed so badly that another replaced it, and has not answered since: one more failure is enough.
    pub(crate) fn on_probation(&self, model: &str) -> bool {
        self.away.as_ref().is_some_and(|away| away.own == model)
    }
}

fn make_room<T>(kept: &mut BTreeMap<String, T>, name: &str) {
    if kept.len() >= REMEMBERED && !kept.contains_key(name) {
        kept.pop_first();
    }
}
