//! Decides which settings a reload changes while the daemon runs, and which need a restart. Pure.

use crate::layer::dotted;
use crate::load::Loaded;
use crate::settings::Settings;
use std::collections::BTreeSet;
use toml::{Table, Value};

/// The parts of the settings that are in use during a reload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InUse {
    /// Providers whose actors run. An actor starts with the daemon.
    pub providers: BTreeSet<String>,
    /// The models of open turns.
    pub models: BTreeSet<String>,
}

/// The result of a reload.
#[derive(Debug, Clone, PartialEq)]
pub struct Reload {
    /// The new settings, except for values that need a restart.
    pub loaded: Loaded,
    /// The keys that have changed; a table that is new or gone counts as one.
    pub changed: Vec<String>,
    /// The keys that keep their old values until a restart.
    pub restart: Vec<String>,
    /// Models that were removed, and stay for open turns.
    pub kept: Vec<String>,
}

const MODELS: &str = "models";
const PROVIDERS: &str = "providers";

/// The key of a model or provider.
fn of(section: &str, name: &str) -> String {
    dotted(&[section.to_owned(), name.to_owned()])
}

impl Loaded {
    /// Takes over from `read` the values that may change while the daemon runs. What open turns use stays.
    #[must_use]
    pub fn reload(&self, read: Self, in_use: &InUse) -> Reload {
        let mut settings = live(&self.settings, &read.settings, &in_use.providers);
        let kept = keep(&mut settings, &self.settings, &in_use.models);
        let keys: Vec<String> = kept.iter().map(|(section, name)| of(section, name)).collect();
        let mut restart = differing(&settings, &read.settings);
        restart.retain(|key| !keys.contains(key));
        let mut origins = read.origins;
        for key in restart.iter().chain(&keys) {
            let of_key = |name: &String| {
                let rest = name.strip_prefix(key.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
            };
            origins.retain(|name, _| !of_key(name));
            let before = self.origins.iter().filter(|(name, _)| of_key(name));
            origins.extend(before.map(|(name, origin)| (name.clone(), origin.clone())));
        }
        let models = kept.into_iter().filter(|(section, _)| *section == MODELS);
        Reload {
            changed: differing(&self.settings, &settings),
            restart,
            kept: models.map(|(_, name)| name).collect(),
            loaded: Self { settings, origins },
        }
    }
}

/// The old settings with the new values of everything that is read on each use. A provider without an actor needs a restart,
/// and so do its models.
fn live(old: &Settings, new: &Settings, actors: &BTreeSet<String>) -> Settings {
    let mut settings = old.clone();
    settings.model = new.model.clone();
    settings.providers.clone_from(&new.providers);
    settings.providers.retain(|name, _| actors.contains(name));
    settings.models.clone_from(&new.models);
    settings
        .models
        .retain(|_, model| actors.contains(&model.provider));
    settings.r#loop = new.r#loop.clone();
    // The HTTP client is created only once.
    settings.retry = crate::RetryConfig {
        connect_ms: old.retry.connect_ms,
        ..new.retry.clone()
    };
    settings.context = new.context.clone();
    settings.side_calls = new.side_calls.clone();
    settings.budget = new.budget.clone();
    settings.workspace = new.workspace.clone();
    let (unprotected, webhook) = (old.permission.unprotected.clone(), old.permission.webhook.clone());
    let escalate_to = old.permission.escalate_to.clone();
    settings.permission = crate::PermissionConfig {
        unprotected,
        webhook,
        escalate_to,
        ..new.permission.clone()
    };
    settings
}

/// Puts back the models that open turns use, with what they fall back to and their providers. Returns both, with
/// their sections.
fn keep(
    settings: &mut Settings,
    old: &Settings,
    used: &BTreeSet<String>,
) -> BTreeSet<(&'static str, String)> {
    let (mut open, mut seen): (Vec<&String>, BTreeSet<&String>) = (used.iter().collect(), BTreeSet::new());
    let mut kept = BTreeSet::new();
    while let Some(name) = open.pop() {
        let Some(model) = old.models.get(name).filter(|_| seen.insert(name)) else {
            continue;
        };
        open.extend(&model.fallbacks);
        if settings.models.contains_key(name) {
            continue;
        }
        settings.models.insert(name.clone(), model.clone());
        kept.insert((MODELS, name.clone()));
        if let (false, Some(provider)) = (
            settings.providers.contains_key(&model.provider),
            old.providers.get(&model.provider),
        ) {
            settings
                .providers
                .insert(model.provider.clone(), provider.clone());
            kept.insert((PROVIDERS, model.provider.clone()));
        }
    }
    kept
}

/// The keys whose values differ. A table that only one side has is one key: its contents would only make a long list.
fn differing(a: &Settings, b: &Settings) -> Vec<String> {
    let table = |settings: &Settings| Table::try_from(settings).unwrap_or_default();
    let mut keys = Vec::new();
    compare(&table(a), &table(b), &mut Vec::new(), &mut keys);
    keys
}

fn compare(a: &Table, b: &Table, path: &mut Vec<String>, keys: &mut Vec<String>) {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for name in names {
        path.push(name.clone());
        match (a.get(name), b.get(name)) {
            (Some(Value::Table(a)), Some(Value::Table(b))) => compare(a, b, path, keys),
            (a, b) if a != b => keys.push(dotted(path)),
            _ => {}
        }
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    fn loaded(change: impl FnOnce(&mut Settings), keys: &[&str], line: usize) -> Loaded {
        let mut settings = Settings::default();
        change(&mut settings);
        let origin = |key: &&str| ((*key).to_owned(), Origin::File("a.toml".into(), line));
        Loaded {
            settings,
            origins: keys.iter().map(origin).collect(),
        }
    }

    fn in_use(start: &Loaded, models: &[&str]) -> InUse {
        InUse {
            providers: start.settings.providers.keys().cloned().collect(),
            models: models.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn live_keys_change_and_others_are_named() {
        let keys = ["retry.max_retries", "limits.connections"];
        let old = loaded(|_| {}, &keys, 1);
        let change = |settings: &mut Settings| {
            settings.retry.max_retries = 9;
            settings.limits.connections = 7;
            settings.permission.unprotected.clear();
            settings.models.get_mut("sonnet").unwrap().price = None;
        };
        let reload = old.reload(loaded(change, &keys, 2), &in_use(&old, &[]));
        assert_eq!(reload.restart, ["limits.connections", "permission.unprotected"]);
        assert_eq!(reload.changed, ["models.sonnet.price", "retry.max_retries"]);
        let settings = &reload.loaded.settings;
        assert_eq!(
            (settings.retry.max_retries, settings.limits.connections),
            (9, old.settings.limits.connections)
        );
        let line = |key: &str| reload.loaded.origins[key].to_string();
        assert_eq!(
            (line(keys[0]), line(keys[1])),
            ("a.toml:2".to_owned(), "a.toml:1".to_owned())
        );
    }

    #[test]
    fn a_new_provider_waits_for_a_restart_and_a_removed_one_goes() {
        let old = loaded(|_| {}, &[], 1);
        let reload = old.reload(
            loaded(
                |settings| {
                    let provider = settings.providers.remove("ollama").unwrap();
                    settings.providers.insert("mine".to_owned(), provider);
                    settings.models.get_mut("ollama").unwrap().provider = "mine".to_owned();
                },
                &[],
                1,
            ),
            &in_use(&old, &[]),
        );
        let settings = &reload.loaded.settings;
        assert!(!settings.providers.contains_key("mine") && !settings.models.contains_key("ollama"));
        assert_eq!(reload.restart, ["models.ollama", "providers.mine"]);
        assert_eq!(reload.changed, ["models.ollama", "providers.ollama"]);
        // Its actor still runs, so it comes back without a restart.
        let back = reload.loaded.reload(old.clone(), &in_use(&old, &[]));
        assert_eq!((back.restart, back.loaded), (Vec::new(), old));
    }

    #[test]
    fn what_open_turns_use_stays_until_they_end() {
        let change = |settings: &mut Settings| {
            let (mut model, provider) = (
                settings.models["ollama"].clone(),
                settings.providers["ollama"].clone(),
            );
            settings.providers.insert("mine".to_owned(), provider);
            model.provider = "mine".to_owned();
            settings.models.insert("spare".to_owned(), model.clone());
            model.fallbacks = vec!["spare".to_owned(), "mine".to_owned()];
            settings.models.insert("mine".to_owned(), model);
        };
        let old = loaded(change, &["providers.mine.base_url", "models.mine.model"], 1);
        let empty = || loaded(|_| {}, &[], 1);
        let reload = old.reload(empty(), &in_use(&old, &["mine", "gone"]));
        assert_eq!(reload.kept, ["mine", "spare"]);
        assert_eq!((&reload.changed, &reload.restart), (&Vec::new(), &Vec::new()));
        assert_eq!(reload.loaded, old);
        let after = reload.loaded.reload(empty(), &in_use(&old, &[]));
        assert_eq!(after.changed, ["models.mine", "models.spare", "providers.mine"]);
        assert_eq!((after.kept, after.loaded), (Vec::new(), empty()));
    }

    #[test]
    fn the_same_settings_change_nothing() {
        let old = loaded(|_| {}, &[], 1);
        let reload = old.reload(old.clone(), &in_use(&old, &[]));
        assert_eq!((reload.changed, reload.restart), (Vec::new(), Vec::new()));
        assert_eq!(reload.loaded, old);
    }
}
