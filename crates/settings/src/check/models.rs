//! Checks providers, their models, and the model parameters.

use super::Check;
use crate::models::{Dialect, ModelConfig, ProviderConfig};
use std::collections::{BTreeMap, BTreeSet};

/// Paths of the methods that agentd calls. A provider's documentation often shows them as part of its address.
const METHODS: [&str; 5] = [
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/api/chat",
];

impl Check<'_> {
    pub(super) fn provider(&mut self, name: &str, provider: &ProviderConfig) {
        let base = format!("providers.{name}");
        let url = &provider.base_url;
        let good = provider.dialect == Dialect::Scripted
            || url.starts_with("https://")
            || url.starts_with("http://");
        let what = format!("{:?} is not a base URL", crate::view::mask_url(url));
        self.require(
            good,
            &format!("{base}.base_url"),
            &what,
            "give http://HOST or https://HOST, with the path if it has one",
        );
        let method = METHODS
            .iter()
            .find(|method| url.trim_end_matches('/').ends_with(**method));
        self.require(
            method.is_none(),
            &format!("{base}.base_url"),
            &format!("it ends with {}, which agentd adds itself", method.unwrap_or(&"")),
            "give the part before it, such as https://HOST/v1",
        );
        self.require(
            self.loaded.origins.contains_key(&format!("{base}.dialect")),
            &format!("{base}.dialect"),
            "it is missing",
            "give the protocol of the server: \"openai-chat\" for most, or another one of config/agentd.toml",
        );
        self.within(
            &format!("{base}.max_concurrent"),
            u64::from(provider.max_concurrent),
            1,
            100_000,
        );
        self.headers(&base, &provider.headers);
        let key = format!("{base}.credentials");
        let mut names = BTreeSet::new();
        for credential in &provider.credentials {
            let name = &credential.name;
            let fresh = !name.is_empty() && names.insert(name.as_str());
            self.require(
                fresh,
                &key,
                &format!("the name {name:?} is empty or used twice"),
                "give each credential its own name",
            );
            let what = format!("credential {name:?} needs exactly one source");
            self.require(
                credential.source().is_some(),
                &key,
                &what,
                "give one of env = \"VARIABLE\" and file = \"PATH\"",
            );
        }
    }

    /// A value may be a secret, so the message does not show it.
    fn headers(&mut self, base: &str, headers: &BTreeMap<String, String>) {
        for (name, value) in headers {
            let key = format!("{base}.headers.{name}");
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            self.require(
                !name.is_empty() && name.bytes().all(token),
                &key,
                &format!("{name:?} is not a valid header name"),
                "give a name of letters, digits and dashes, such as x-team",
            );
            self.require(
                !value.chars().any(char::is_control),
                &key,
                "the value contains control characters",
                "give printable characters only",
            );
        }
    }

    pub(super) fn model(&mut self, name: &str, model: &ModelConfig) {
        let base = format!("models.{name}");
        self.named(&format!("{base}.provider"), &model.provider, "providers", true);
        let good = !model.model.is_empty();
        self.require(
            good,
            &format!("{base}.model"),
            "it is empty",
            "give the name that the provider uses",
        );
        self.within(
            &format!("{base}.context_window"),
            model.context_window,
            1_024,
            100_000_000,
        );
        let window = model.context_window.saturating_sub(1).max(1);
        self.within(
            &format!("{base}.max_output"),
            u64::from(model.max_output),
            1,
            window,
        );
        for fallback in &model.fallbacks {
            let key = format!("{base}.fallbacks");
            self.require(
                fallback != name,
                &key,
                "a model cannot be its own fallback",
                "name another model",
            );
            self.named(&key, fallback, "models", false);
        }
        if let Some(price) = model.price {
            let good = [price.input, price.output, price.cache_read, price.cache_write]
                .iter()
                .all(|usd| usd.is_finite() && *usd >= 0.0);
            self.require(
                good,
                &format!("{base}.price"),
                "a price must not be negative",
                "give US dollars per million tokens",
            );
        }
    }

    /// The model parameters and the scheduler weights.
    pub(super) fn tuning(&mut self) {
        let settings = self.settings();
        let temperatures: Vec<(String, f64)> = settings
            .models
            .iter()
            .filter_map(|(name, model)| Some((format!("models.{name}.temperature"), model.temperature?)))
            .collect();
        let weights: Vec<(String, f64)> = settings
            .scheduler
            .weights
            .iter()
            .map(|(name, weight)| (format!("scheduler.weights.{name}"), *weight))
            .collect();
        for (key, value) in temperatures {
            let what = format!("{value} is not a valid temperature");
            self.require((0.0..=2.0).contains(&value), &key, &what, "give 0.0 to 2.0");
        }
        for (key, value) in weights {
            let what = format!("{value} is not a valid weight");
            let good = (0.001..=1_000_000.0).contains(&value);
            self.require(good, &key, &what, "give a number such as 1.0 or 3.0");
        }
    }
}
