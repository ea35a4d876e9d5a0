//! Values that have the right type and make no sense.

use crate::error::Problem;
use crate::load::Loaded;
use crate::models::{Dialect, ModelConfig, ProviderConfig};
use crate::settings::Settings;
use crate::suggest::nearest;
use crate::unsupported::unsupported;
use std::collections::BTreeSet;

/// The most regular expressions in `loop.intent_patterns`.
const MAX_PATTERNS: usize = 64;

struct Check<'a> {
    loaded: &'a Loaded,
    problems: Vec<Problem>,
}

/// Everything that is out of range.
pub(crate) fn check(loaded: &Loaded) -> Vec<Problem> {
    let mut check = Check {
        loaded,
        problems: Vec::new(),
    };
    check.numbers();
    check.amounts();
    check.store();
    for (name, provider) in &loaded.settings.providers {
        check.provider(name, provider);
    }
    for (name, model) in &loaded.settings.models {
        check.model(name, model);
    }
    check.choices();
    if check.problems.is_empty() {
        check.problems = unsupported(loaded);
    }
    check.problems
}

impl Check<'_> {
    fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    fn require(&mut self, good: bool, key: &str, what: &str, fix: &str) {
        if !good {
            let origin = self.loaded.origins.get(key).cloned();
            self.problems.push(Problem {
                origin,
                key: key.to_owned(),
                what: what.to_owned(),
                fix: fix.to_owned(),
            });
        }
    }

    fn within(&mut self, key: &str, value: u64, low: u64, high: u64) {
        let fix = format!("give a value from {low} to {high}");
        self.require(
            (low..=high).contains(&value),
            key,
            &format!("{value} is out of range"),
            &fix,
        );
    }

    fn numbers(&mut self) {
        let settings = self.settings();
        let rows = [
            turns(settings),
            deadlines(settings),
            tools(settings),
            limits(settings),
        ]
        .concat();
        for (key, value, low, high) in rows {
            self.within(key, value, low, high);
        }
    }

    fn amounts(&mut self) {
        let settings = self.settings();
        let (turns, share, usd) = (
            settings.r#loop.max_turns,
            settings.context.compact_at,
            settings.budget.session.usd,
        );
        let what = format!("{turns} means nothing");
        self.require(
            turns >= -1,
            "loop.max_turns",
            &what,
            "give -1, 0 or a number of steps",
        );
        let what = format!("{share} is no share of the window");
        let good = share > 0.0 && share <= 1.0;
        self.require(good, "context.compact_at", &what, "give a share such as 0.8");
        let what = format!("{usd} is no amount");
        let good = usd.is_finite() && usd >= 0.0;
        self.require(
            good,
            "budget.session.usd",
            &what,
            "give dollars, or 0 for no limit",
        );
    }

    fn store(&mut self) {
        let url = &self.settings().store.url;
        let path = url.strip_prefix("sqlite:").is_some_and(|path| !path.is_empty());
        let good =
            path || url == "memory:" || url.starts_with("postgres://") || url.starts_with("postgresql://");
        let what = format!("{:?} is no store", crate::view::mask_url(url));
        self.require(
            good,
            "store.url",
            &what,
            "give sqlite:PATH, memory: or postgres://USER@HOST/DATABASE",
        );
    }

    fn provider(&mut self, name: &str, provider: &ProviderConfig) {
        let base = format!("providers.{name}");
        let url = &provider.base_url;
        let good = provider.dialect == Dialect::Scripted
            || url.starts_with("https://")
            || url.starts_with("http://");
        let what = format!("{:?} is no base URL", crate::view::mask_url(url));
        self.require(
            good,
            &format!("{base}.base_url"),
            &what,
            "give http://HOST or https://HOST, with the path if it has one",
        );
        self.within(
            &format!("{base}.max_concurrent"),
            u64::from(provider.max_concurrent),
            1,
            100_000,
        );
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

    fn model(&mut self, name: &str, model: &ModelConfig) {
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
                "a model cannot stand in for itself",
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
                "it has an amount below zero",
                "give US dollars per million tokens",
            );
        }
    }

    /// A key that names a provider or a model.
    fn named(&mut self, key: &str, name: &str, section: &str, providers: bool) {
        let settings = self.settings();
        let names: Vec<String> = if providers {
            settings.providers.keys().cloned().collect()
        } else {
            settings.models.keys().cloned().collect()
        };
        let fix = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("add [{section}.{name}], or name one of: {}", names.join(", ")),
        };
        let what = format!("there is no {name:?} under [{section}]");
        self.require(names.iter().any(|known| known == name), key, &what, &fix);
    }

    fn choices(&mut self) {
        let default = self.settings().model.default.clone();
        if default != "auto" {
            self.named("model.default", &default, "models", false);
        }
        let patterns = self.settings().r#loop.intent_patterns.clone();
        let what = format!("{} patterns are too many", patterns.len());
        let fix = format!("give at most {MAX_PATTERNS}");
        self.require(
            patterns.len() <= MAX_PATTERNS,
            "loop.intent_patterns",
            &what,
            &fix,
        );
        for pattern in &patterns {
            let built = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
            let what = format!("{pattern:?} is no regular expression");
            self.require(
                built.is_ok(),
                "loop.intent_patterns",
                &what,
                "mend it or take it out",
            );
        }
        let bad = self
            .settings()
            .sandbox
            .env
            .iter()
            .any(|name| name.is_empty() || name.contains(['=', '\0']));
        self.require(
            !bad,
            "sandbox.env",
            "it has a name that no variable can have",
            "give names such as CARGO_HOME",
        );
        let good = !self.settings().log.level.trim().is_empty();
        self.require(
            good,
            "log.level",
            "it is empty",
            "give info, debug, warn or a filter",
        );
    }
}

/// A key, its value, and the least and the most it may be.
type Row = (&'static str, u64, u64, u64);

const DAY_MS: u64 = 86_400_000;
const GIB: u64 = 1 << 30;

fn turns(s: &Settings) -> Vec<Row> {
    let l = &s.r#loop;
    vec![
        ("loop.turn_cap", l.turn_cap.into(), 1, 1_000_000),
        (
            "loop.incomplete_intent_retries",
            l.incomplete_intent_retries.into(),
            0,
            10,
        ),
        ("loop.max_parallel_tools", l.max_parallel_tools.into(), 1, 64),
        ("retry.max_retries", s.retry.max_retries.into(), 0, 100),
        ("node.wake_per_second", s.node.wake_per_second.into(), 1, 100_000),
        ("log.max_bytes", s.log.max_bytes, 65_536, 16 * GIB),
        ("log.files", s.log.files.into(), 1, 1_000),
    ]
}

fn deadlines(s: &Settings) -> Vec<Row> {
    let r = &s.retry;
    vec![
        ("retry.base_ms", r.base_ms, 1, DAY_MS),
        ("retry.cap_ms", r.cap_ms, r.base_ms, DAY_MS),
        ("retry.connect_ms", r.connect_ms, 1, DAY_MS),
        ("retry.first_byte_ms", r.first_byte_ms, 1, DAY_MS),
        ("retry.idle_ms", r.idle_ms, 1, DAY_MS),
        (
            "retry.total_ms",
            r.total_ms,
            r.idle_ms.max(r.first_byte_ms),
            DAY_MS,
        ),
    ]
}

fn tools(s: &Settings) -> Vec<Row> {
    let t = &s.tools;
    vec![
        ("tools.max_lines", t.max_lines.into(), 1, 1_000_000),
        ("tools.max_bytes", t.max_bytes, 256, 16_777_216),
        ("tools.max_file_bytes", t.max_file_bytes, 1, GIB),
        (
            "tools.bash_timeout_ms",
            t.bash_timeout_ms,
            1,
            t.bash_timeout_max_ms,
        ),
        ("tools.bash_timeout_max_ms", t.bash_timeout_max_ms, 1, DAY_MS),
        ("tools.max_running", t.max_running.into(), 1, 10_000),
        ("tools.spill_bytes", t.spill_bytes, 131_072, 16 * GIB),
    ]
}

fn limits(s: &Settings) -> Vec<Row> {
    let l = &s.limits;
    vec![
        ("limits.connections", l.connections.into(), 1, 1_000_000),
        ("limits.max_frame_bytes", l.max_frame_bytes, 65_536, GIB),
        (
            "limits.max_input_bytes",
            l.max_input_bytes,
            1,
            l.max_frame_bytes.saturating_sub(4_096),
        ),
        ("limits.queue_inputs", l.queue_inputs.into(), 1, 10_000),
        ("limits.sessions_hot", l.sessions_hot.into(), 1, 1_000_000),
        ("limits.attach_ring", l.attach_ring.into(), 16, 1_000_000),
        ("limits.attach_ring_bytes", l.attach_ring_bytes, 65_536, GIB),
        ("limits.blob_bytes", l.blob_bytes, 262_144, 16 * GIB),
        ("limits.list_rows", l.list_rows.into(), 1, 100_000),
    ]
}
