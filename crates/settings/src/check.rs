//! Checks for values that have the right type but are invalid.

mod http;
mod index;
mod models;
mod network;
mod side_calls;

use crate::error::Problem;
use crate::load::Loaded;
use crate::origin::Origin;
use crate::ranges::{BOUNDED_BY, ranges};
use crate::settings::Settings;
use crate::store::StoreKind;
use crate::unsupported::unsupported;
use crate::webhook::{OnExpiry, is_address};
use agentd_protocol::{label_word, nearest};

/// The maximum number of regular expressions in `loop.intent_patterns`.
const MAX_PATTERNS: usize = 64;
/// The maximum number of addresses in `permission.escalate_to`.
const MAX_LEVELS: usize = 8;

/// The levels of a log filter.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

struct Check<'a> {
    loaded: &'a Loaded,
    problems: Vec<Problem>,
}

/// Collects all invalid values.
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
    check.tuning();
    check.choices();
    check.web();
    check.network();
    check.hooks();
    check.asking();
    check.mcp();
    check.agents();
    check.placement();
    check.index();
    check.http();
    check.log();
    check.side_calls();
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

    fn is_operators(&self, key: &str) -> bool {
        self.loaded.origins.get(key).is_some_and(Origin::is_operator)
    }

    fn within(&mut self, key: &str, value: u64, low: u64, high: u64) {
        let bound = BOUNDED_BY.iter().find(|(bounded, _)| *bounded == key);
        let bound = bound.filter(|(_, other)| !self.is_operators(key) && self.is_operators(other));
        if let Some((_, other)) = bound {
            let what = format!("it does not go with {key}, which is {value}");
            let fix =
                format!("set {key}, too, or give another value here: {key} must be from {low} to {high}");
            return self.require((low..=high).contains(&value), other, &what, &fix);
        }
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
        for (key, value, low, high) in ranges(settings) {
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
        let what = format!("{turns} is not a valid limit");
        self.require(
            turns >= -1,
            "loop.max_turns",
            &what,
            "give -1, 0 or a number of steps",
        );
        let what = format!("{share} is not a share of the window");
        let good = share > 0.0 && share <= 1.0;
        self.require(good, "context.compact_at", &what, "give a share such as 0.8");
        let most = self.settings().context.max_messages;
        let what = format!("{most} messages leave no room for a call and its result");
        let good = most == 0 || most >= 4;
        self.require(
            good,
            "context.max_messages",
            &what,
            "give 0 for no limit, or at least 4",
        );
        let what = format!("{usd} is not an amount");
        let good = usd.is_finite() && usd >= 0.0;
        self.require(
            good,
            "budget.session.usd",
            &what,
            "give dollars, or 0 for no limit",
        );
    }

    fn store(&mut self) {
        let store = &self.settings().store;
        let (url, kind) = (&store.url, store.kind());
        // Everything that shows a URL hides the password before the host only.
        let in_query = kind == Some(StoreKind::Postgres) && url.contains("password=");
        let both = !store.password_env.is_empty() && !store.password_file.is_empty();
        let what = format!("{:?} is not a store URL", crate::view::mask_url(url));
        self.require(
            kind.is_some(),
            "store.url",
            &what,
            &format!("give {}", StoreKind::URLS),
        );
        self.require(
            !in_query,
            "store.url",
            "the password does not belong in the query",
            "give it in store.password_file or store.password_env",
        );
        self.require(
            !both,
            "store.password_env",
            "there are two sources of the password",
            "give only one of store.password_env and store.password_file",
        );
    }

    fn web(&mut self) {
        if let Err(entry) = self.settings().tools.web.opened() {
            self.require(
                false,
                "tools.web.allow_private",
                &format!("{entry:?} is not a network, address or host"),
                "give \"10.0.0.0/8\", \"10.1.2.3\", \"wiki.example\" or \"wiki.example:8080\"",
            );
        }
    }

    /// A word that is no level would be the name of a module, and agentd would log nothing.
    fn log(&mut self) {
        let level = self.settings().log.level.clone();
        let words = level.split(',').map(str::trim);
        for word in words.filter(|word| !word.contains('=') && !LEVELS.contains(word)) {
            let what = format!("{word:?} is not a level");
            let fix = format!("give one of {}, and modules as NAME=LEVEL", LEVELS.join(", "));
            self.require(false, "log.level", &what, &fix);
        }
    }

    fn agents(&mut self) {
        if let Some((key, what, fix)) = self.settings().agents.problem() {
            self.require(false, key, &what, fix);
        }
    }

    fn placement(&mut self) {
        if let Some((key, what, fix)) = self.settings().fleet.local_users.problem() {
            self.require(false, key, &what, fix);
        }
        if let Some(path) = self.settings().node.bad_shared_path() {
            let what = format!("{path:?} is not a plain absolute path");
            let fix = "write it from / on, without .., a double slash or a slash at the end: \"/srv/agents\"";
            self.require(false, "node.shared_paths", &what, fix);
        }
        let labels = &self.settings().node.labels;
        let bad = labels
            .iter()
            .find(|(key, value)| !label_word(key) || !label_word(value));
        if let Some((key, value)) = bad.map(|(key, value)| (key.clone(), value.clone())) {
            let what = format!("{key:?} = {value:?} is not a label that sessions can require");
            let fix = "use letters, digits and . _ - /, as in { gpu = \"yes\" }";
            self.require(false, &format!("node.labels.{key}"), &what, fix);
        }
    }

    fn hooks(&mut self) {
        if let Some((n, what, fix)) = self.settings().hooks.problem() {
            self.require(false, &format!("hooks.run[{n}]"), what, fix);
        }
    }

    fn mcp(&mut self) {
        if let Some((key, what, fix)) = self.settings().mcp.problem() {
            self.require(false, &key, what, fix);
        }
    }

    /// The recipients of questions, and how questions end.
    fn asking(&mut self) {
        let permission = self.settings().permission.clone();
        if let Err(bad) = permission.protected() {
            self.require(false, "permission.unprotected", &bad.what(), bad.fix());
        }
        let webhook = ("permission.webhook.url", &permission.webhook.url);
        let levels = permission
            .escalate_to
            .iter()
            .map(|url| ("permission.escalate_to", url));
        for (key, url) in [webhook]
            .into_iter()
            .filter(|(_, url)| !url.is_empty())
            .chain(levels)
        {
            let what = format!("{:?} is not a valid webhook URL", crate::view::mask_url(url));
            self.require(
                is_address(url),
                key,
                &what,
                "give https://HOST/PATH, without a user name",
            );
        }
        let count = permission.escalate_to.len();
        self.require(
            count <= MAX_LEVELS,
            "permission.escalate_to",
            &format!("too many addresses: {count}"),
            &format!("give at most {MAX_LEVELS}"),
        );
        let escalates = permission.on_expiry == OnExpiry::Escalate;
        self.require(
            !escalates || count > 0,
            "permission.on_expiry",
            "no address to escalate to",
            "give permission.escalate_to = [\"https://…\"], or another on_expiry",
        );
        self.require(
            !escalates || permission.ask_timeout.is_some(),
            "permission.on_expiry",
            "approvals never expire, so agentd would never escalate one",
            "give permission.ask_timeout = \"30m\", or another on_expiry",
        );
    }

    fn workspaces(&mut self) {
        let workspace = self.settings().workspace.clone();
        let bad = workspace.bad_include();
        self.require(
            bad.is_none(),
            "workspace.include",
            &format!("{:?} is not a path in a repository", bad.unwrap_or_default()),
            "give relative paths such as node_modules, without `..` and outside of .git",
        );
        let all = workspace.directories.keys().all(|dir| dir.starts_with('/'));
        self.require(
            all,
            "workspace.directories",
            "a path is not absolute",
            "give paths such as \"/srv/app\" = \"worktree\"",
        );
        self.require(
            workspace.author().is_some(),
            "workspace.author",
            &format!("{:?} is not a name with an address", workspace.author),
            "give it as \"Name <address>\"",
        );
    }

    /// A key whose value names a provider or a model.
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
        let what = format!("too many patterns: {}", patterns.len());
        let fix = format!("give at most {MAX_PATTERNS}");
        self.require(
            patterns.len() <= MAX_PATTERNS,
            "loop.intent_patterns",
            &what,
            &fix,
        );
        for pattern in &patterns {
            let built = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
            let what = format!("{pattern:?} is not a valid regular expression");
            self.require(built.is_ok(), "loop.intent_patterns", &what, "fix or remove it");
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
            "invalid name of an environment variable",
            "give names such as CARGO_HOME",
        );
        let absolute = |path: &String| path.starts_with('/') && path.len() > 1;
        let all = self.settings().sandbox.read.iter().all(absolute);
        self.require(
            all,
            "sandbox.read",
            "a path is not absolute, or is the root directory",
            "give paths such as /srv/toolchains",
        );
        self.workspaces();
        let good = !self.settings().log.level.trim().is_empty();
        self.require(
            good,
            "log.level",
            "it is empty",
            "give info, debug, warn or a filter",
        );
    }
}
