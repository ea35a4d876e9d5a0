//! Decides which settings a reload changes while the daemon runs, and which need a restart. Pure.

use crate::layer::dotted;
use crate::load::Loaded;
use crate::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// The result of a reload.
#[derive(Debug, Clone, PartialEq)]
pub struct Reload {
    /// The new settings, except for values that need a restart.
    pub loaded: Loaded,
    /// The keys that have changed.
    pub changed: Vec<String>,
    /// The keys that keep their old values until a restart.
    pub restart: Vec<String>,
}

impl Loaded {
    /// Takes over from `read` the values that may change while the daemon runs.
    #[must_use]
    pub fn reload(&self, read: Self) -> Reload {
        let settings = live(&self.settings, &read.settings);
        let (old, new, wanted) = (leaves(&self.settings), leaves(&settings), leaves(&read.settings));
        let restart = differing(&new, &wanted);
        let mut origins = read.origins;
        for key in &restart {
            let below = format!("{key}[");
            let of_key = |name: &String| name == key || name.starts_with(&below);
            origins.retain(|name, _| !of_key(name));
            let kept = self.origins.iter().filter(|(name, _)| of_key(name));
            origins.extend(kept.map(|(name, origin)| (name.clone(), origin.clone())));
        }
        Reload {
            changed: differing(&old, &new),
            restart,
            loaded: Self { settings, origins },
        }
    }
}

/// The old settings with the new values of everything that is read on each use. A provider has an actor that starts
/// with the daemon, so a new provider needs a restart, and so do its models.
fn live(old: &Settings, new: &Settings) -> Settings {
    let mut settings = old.clone();
    settings.model = new.model.clone();
    settings.providers.clone_from(&new.providers);
    settings
        .providers
        .retain(|name, _| old.providers.contains_key(name));
    settings.models.clone_from(&new.models);
    settings
        .models
        .retain(|_, model| old.providers.contains_key(&model.provider));
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

/// Each key with its value, as TOML.
fn leaves(settings: &Settings) -> BTreeMap<String, Value> {
    let mut leaves = BTreeMap::new();
    let table = Table::try_from(settings).unwrap_or_default();
    collect(table, &mut Vec::new(), &mut leaves);
    leaves
}

fn collect(table: Table, path: &mut Vec<String>, leaves: &mut BTreeMap<String, Value>) {
    for (name, value) in table {
        path.push(name);
        match value {
            Value::Table(inner) => collect(inner, path, leaves),
            value => {
                leaves.insert(dotted(path), value);
            }
        }
        path.pop();
    }
}

fn differing(a: &BTreeMap<String, Value>, b: &BTreeMap<String, Value>) -> Vec<String> {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter()
        .filter(|key| a.get(*key) != b.get(*key))
        .cloned()
        .collect()
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
        let reload = old.reload(loaded(change, &keys, 2));
        assert_eq!(reload.restart, ["limits.connections", "permission.unprotected"]);
        let price = |key| format!("models.sonnet.price.{key}");
        let mut changed: Vec<String> = ["cache_read", "cache_write", "input", "output"].map(price).into();
        changed.push("retry.max_retries".to_owned());
        assert_eq!(reload.changed, changed);
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
        let reload = old.reload(loaded(
            |settings| {
                let provider = settings.providers.remove("ollama").unwrap();
                settings.providers.insert("mine".to_owned(), provider);
                settings.models.get_mut("ollama").unwrap().provider = "mine".to_owned();
            },
            &[],
            1,
        ));
        let settings = &reload.loaded.settings;
        assert!(!settings.providers.contains_key("mine") && !settings.models.contains_key("ollama"));
        assert!(reload.restart.iter().any(|key| key == "providers.mine.base_url"));
        assert!(
            reload
                .restart
                .iter()
                .all(|key| key.starts_with("providers.mine.") || key.starts_with("models.ollama."))
        );
        assert!(
            reload
                .changed
                .iter()
                .any(|key| key == "providers.ollama.base_url")
        );
    }

    #[test]
    fn the_same_settings_change_nothing() {
        let old = loaded(|_| {}, &[], 1);
        let reload = old.reload(old.clone());
        assert_eq!((reload.changed, reload.restart), (Vec::new(), Vec::new()));
        assert_eq!(reload.loaded, old);
    }
}
