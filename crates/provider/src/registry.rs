//! The models of a daemon: which are usable, which are not and why, and which one is the default.

use crate::script::Script;
use crate::secret::Secret;
use crate::spec::{ModelSpec, dialect_name};
use agentd_protocol::{CircuitState, ModelStatus};
use agentd_settings::Dialect;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model that cannot be used, and the fix. The turn ends with `initialization_failed`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot use model {name}: {reason}")]
pub struct Unusable {
    /// The configured name, or the requested one.
    pub name: String,
    /// The reason, and the fix.
    pub reason: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) dialect: Option<Dialect>,
    /// The model, or the reason why it cannot be used.
    pub(crate) spec: Result<Arc<ModelSpec>, String>,
    pub(crate) note: String,
    /// It needs no key, and its server did not answer the probe.
    pub(crate) untried: bool,
    /// It was removed, and only the turns that use it already may call it.
    pub(crate) leaving: bool,
}

/// All configured models.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    pub(crate) models: BTreeMap<String, Entry>,
    pub(crate) default: String,
    pub(crate) why: String,
    /// Every key that was found, including keys that no usable model has.
    pub(crate) keys: Vec<Secret>,
}

impl Registry {
    /// Returns the model of this name; `auto` and the empty name mean the default.
    ///
    /// # Errors
    /// When there is no such model, or it is incomplete; the reason names the fix.
    pub fn get(&self, name: &str) -> Result<Arc<ModelSpec>, Unusable> {
        let name = if matches!(name, "" | "auto") {
            self.default.as_str()
        } else {
            name
        };
        let unusable = |reason: String| Unusable {
            name: name.to_owned(),
            reason,
        };
        match self.models.get(name) {
            None if name.is_empty() => Err(unusable(self.why.clone())),
            Some(entry) => entry.spec.clone().map_err(unusable),
            None => {
                let known: Vec<&str> = self.models.keys().map(String::as_str).collect();
                Err(unusable(format!(
                    "there is no such model under [models]; the known models are: {}",
                    known.join(", ")
                )))
            }
        }
    }

    /// The name of the default model; empty if there is none.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.default
    }

    /// Why that model is the default, or why there is none, for people.
    #[must_use]
    pub fn default_reason(&self) -> &str {
        &self.why
    }

    /// One row per model, by name. Other components know which calls run and which wait.
    #[must_use]
    pub fn rows(&self) -> Vec<ModelStatus> {
        let row = |(name, entry): (&String, &Entry)| ModelStatus {
            name: name.clone(),
            provider: entry.provider.clone(),
            model: entry.model.clone(),
            dialect: entry.dialect.map(dialect_name).unwrap_or_default().to_owned(),
            usable: entry.spec.is_ok(),
            note: entry
                .spec
                .as_ref()
                .map_or_else(Clone::clone, |_| entry.note.clone()),
            default: *name == self.default,
            context_window: entry.spec.as_ref().map_or(0, |spec| spec.context_window),
            images: entry.spec.as_ref().is_ok_and(|spec| spec.capabilities.images),
            images_known: entry
                .spec
                .as_ref()
                .is_ok_and(|spec| spec.capabilities.images_known),
            price: entry.spec.as_ref().ok().and_then(|spec| spec.price),
            running: 0,
            waiting: 0,
            permits: 0,
            paused_until: None,
            circuit: CircuitState::Closed,
            credentials: Vec::new(),
            untried: entry.untried,
            last_call: None,
        };
        let stay = self.models.iter().filter(|(_, entry)| !entry.leaving);
        stay.map(row).collect()
    }

    /// Takes over models of `before` that were removed: open turns may still call them, and nothing else may.
    pub fn let_finish(&mut self, before: &Self, names: &[String]) {
        for (name, entry) in names.iter().filter_map(|name| before.models.get_key_value(name)) {
            let entry = Entry {
                leaving: true,
                ..entry.clone()
            };
            self.models.insert(name.clone(), entry);
        }
    }

    /// The providers of usable models, each with its limit of concurrent calls.
    #[must_use]
    pub fn providers(&self) -> BTreeMap<String, u32> {
        let specs = self.models.values().filter_map(|entry| entry.spec.as_ref().ok());
        specs
            .map(|spec| (spec.provider.clone(), spec.max_concurrent))
            .collect()
    }

    /// The names of a provider's credentials, from its usable models.
    #[must_use]
    pub fn credentials(&self, provider: &str) -> Vec<String> {
        let mut specs = self.models.values().filter_map(|entry| entry.spec.as_ref().ok());
        specs
            .find(|spec| spec.provider == provider)
            .map(|spec| {
                spec.credentials
                    .iter()
                    .map(|credential| credential.name.clone())
                    .collect()
            })
            .unwrap_or_default()
    }

    /// All keys, for registration with the redaction (I8).
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.keys.iter()
    }

    /// Adds a model that is not in any file, such as the demo's.
    pub fn insert(&mut self, spec: ModelSpec, note: &str) {
        let name = spec.name.clone();
        let keys = spec
            .credentials
            .iter()
            .map(|credential| credential.secret.clone());
        self.keys.extend(keys);
        let entry = Entry {
            provider: spec.provider.clone(),
            model: spec.model.clone(),
            dialect: Some(spec.dialect),
            note: note.to_owned(),
            untried: false,
            leaving: false,
            spec: Ok(Arc::new(spec)),
        };
        self.models.insert(name, entry);
    }

    /// Adds a scripted model at a provider of its own.
    pub fn insert_scripted(&mut self, name: &str, provider: &str, script: Script, why: &str) {
        let mut spec = ModelSpec::scripted(name, Arc::new(script));
        provider.clone_into(&mut spec.provider);
        self.insert(spec, why);
    }

    /// Adds a scripted model and makes it the default.
    pub fn insert_scripted_default(&mut self, name: &str, script: Script, why: &str) {
        self.insert(ModelSpec::scripted(name, Arc::new(script)), why);
        name.clone_into(&mut self.default);
        why.clone_into(&mut self.why);
    }
}
