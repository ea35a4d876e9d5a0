//! Values that are right and that this version cannot follow yet: they stop the start, so that none is silently ignored.

use crate::error::Problem;
use crate::load::Loaded;
use crate::session::{ContextConfig, Network, SandboxChoice};
use crate::settings::Settings;
use agentd_protocol::SandboxLevel;

/// Every value that asks for something that is not there yet.
pub(crate) fn unsupported(loaded: &Loaded) -> Vec<Problem> {
    let settings = &loaded.settings;
    let mut asked = context(settings);
    asked.extend(sandbox(settings));
    asked.extend(models(settings));
    let problem = |(key, fix): (String, String)| Problem {
        origin: loaded.origins.get(&key).cloned(),
        key,
        what: "this is not in this version".to_owned(),
        fix,
    };
    asked.into_iter().map(problem).collect()
}

/// A key, and what to do.
type Asked = (String, String);

fn asked(key: impl Into<String>, fix: impl Into<String>) -> Asked {
    (key.into(), fix.into())
}

#[expect(
    clippy::float_cmp,
    reason = "the question is whether somebody wrote another value, not whether it is near"
)]
fn context(settings: &Settings) -> Vec<Asked> {
    let (now, default) = (&settings.context, ContextConfig::default());
    let rows = [
        ("compact_at", now.compact_at != default.compact_at, "0.8"),
        (
            "keep_recent_tokens",
            now.keep_recent_tokens != default.keep_recent_tokens,
            "20000",
        ),
        (
            "reserve_tokens",
            now.reserve_tokens != default.reserve_tokens,
            "16384",
        ),
        ("max_messages", now.max_messages != default.max_messages, "0"),
    ];
    rows.into_iter()
        .filter(|(_, changed, _)| *changed)
        .map(|(key, _, default)| {
            let fix = format!("leave it at {default}: conversations are sent whole");
            asked(format!("context.{key}"), fix)
        })
        .collect()
}

fn sandbox(settings: &Settings) -> Vec<Asked> {
    let sandbox = &settings.sandbox;
    let mut rows = Vec::new();
    if matches!(sandbox.level, SandboxChoice::Isolated | SandboxChoice::Confined) {
        rows.push(asked(
            "sandbox.level",
            "give \"auto\" or \"none\": commands run unsandboxed",
        ));
    }
    if sandbox.require != SandboxLevel::None {
        rows.push(asked(
            "sandbox.require",
            "give \"none\" (commands then run unsandboxed), or run no sessions here",
        ));
    }
    if matches!(sandbox.network, Network::Hosts(_)) {
        rows.push(asked(
            "sandbox.network",
            "leave it at \"none\": what commands reach is up to the permission rules",
        ));
    }
    rows
}

fn models(settings: &Settings) -> Vec<Asked> {
    let exec = settings
        .providers
        .iter()
        .filter(|(_, provider)| provider.credentials.iter().any(|one| one.exec.is_some()))
        .map(|(name, _)| {
            asked(
                format!("providers.{name}.credentials"),
                "take the exec credential out; use env or file",
            )
        });
    let fallbacks = settings
        .models
        .iter()
        .filter(|(_, model)| !model.fallbacks.is_empty())
        .map(|(name, _)| {
            asked(
                format!("models.{name}.fallbacks"),
                "leave it empty; a model call that fails for good ends its turn",
            )
        });
    exec.chain(fallbacks).collect()
}
