//! The models that sessions may use, each with the actor that grants permits for its calls.

use crate::request::Sample;
use agentd_actor_kit::{Handle, ModelMsg};
use agentd_protocol::{Price, RequestPart, TurnError};
use agentd_provider::{ModelSpec, Registry, may_count};
use agentd_settings::Live;
use agentd_turn::ModelFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The parts that a server refuses for all its models.
const OF_SERVER: [RequestPart; 4] = [
    RequestPart::CacheMarks,
    RequestPart::CacheHour,
    RequestPart::StreamOptions,
    RequestPart::DeveloperRole,
];

/// The configured models and the model clients, one per provider.
#[derive(Debug, Default)]
pub struct Models {
    registry: Live<Registry>,
    clients: BTreeMap<String, Handle<ModelMsg>>,
    samples: BTreeMap<String, Sample>,
    /// The parts of requests that providers refused, as some session learned. A restart asks them again.
    refused: Mutex<BTreeSet<(String, RequestPart)>>,
}

impl Models {
    /// Models, and the permit actor of each provider by name. Models that a reload adds have no sample.
    #[must_use]
    pub fn new(registry: Live<Registry>, clients: BTreeMap<String, Handle<ModelMsg>>) -> Self {
        let rows = registry.now().rows().into_iter();
        Self {
            samples: rows.map(|row| (row.name, Sample::new())).collect(),
            registry,
            clients,
            refused: Mutex::default(),
        }
    }

    /// Shares the lessons of one session about a provider's server with all sessions: adds them to `without`, or keeps them.
    pub(crate) fn share_lessons(&self, provider: &str, without: &mut Vec<RequestPart>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for part in OF_SERVER {
            let known = (provider.to_owned(), part);
            if without.contains(&part) {
                refused.insert(known);
            } else if refused.contains(&known) {
                without.push(part);
            }
        }
    }

    fn takes(&self, provider: &str, part: RequestPart) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        !refused.contains(&(provider.to_owned(), part))
    }

    /// The facts about a model that the core may know, or why it cannot be used.
    ///
    /// # Errors
    /// The model is not configured or has no credential; the text says how to fix it.
    pub fn facts(&self, name: &str) -> Result<ModelFacts, TurnError> {
        let (spec, _) = self.get(name)?;
        let names = spec.credentials.iter().map(|credential| credential.name.clone());
        Ok(ModelFacts {
            provider: spec.provider.clone(),
            model: spec.model.clone(),
            credentials: names.collect(),
            fallbacks: spec.fallbacks.clone(),
            thinking: spec.thinking,
            window: spec.context_window,
            max_output: spec.max_output.into(),
            min_cache_tokens: spec
                .compat
                .prompt_cache
                .then_some(spec.capabilities.min_cache_tokens),
            cache_hour: (spec.caches_for_an_hour() && self.takes(&spec.provider, RequestPart::CacheHour))
                .then(|| spec.price.filter(|price| price.input > 0.0))
                .map(|price| price.unwrap_or(Price::RATIOS)),
            counts: may_count(&spec),
            images: spec.capabilities.images,
        })
    }

    /// The shared part of the prefixes of a model's requests.
    pub(crate) fn sample(&self, name: &str) -> Option<&Sample> {
        self.samples.get(name)
    }

    /// A model that is ready to be called.
    pub(crate) fn get(&self, name: &str) -> Result<(Arc<ModelSpec>, Handle<ModelMsg>), TurnError> {
        let spec = self.registry.now().get(name).map_err(|unusable| TurnError {
            class: "initialization_failed".to_owned(),
            message: unusable.to_string(),
        })?;
        let client = self.clients.get(&spec.provider).ok_or_else(|| TurnError {
            class: "initialization_failed".to_owned(),
            message: format!("the provider {:?} is not running", spec.provider),
        })?;
        Ok((spec, client.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_learns_for_all_sessions_of_the_provider() {
        use RequestPart::{CacheMarks, LimitName, StreamOptions};
        let models = Models::default();
        let shared = |provider: &str, mut without: Vec<RequestPart>| {
            models.share_lessons(provider, &mut without);
            without
        };
        assert_eq!(
            shared("p", vec![StreamOptions, LimitName]),
            [StreamOptions, LimitName]
        );
        assert_eq!(
            shared("p", Vec::new()),
            [StreamOptions],
            "the limit is a matter of the model"
        );
        assert_eq!(shared("p", vec![CacheMarks]), [CacheMarks, StreamOptions]);
        assert_eq!(shared("q", Vec::new()), []);
    }
}
