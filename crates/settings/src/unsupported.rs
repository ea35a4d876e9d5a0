//! Values that are right and that this version cannot follow yet: they stop the start, so that none is silently ignored.

use crate::error::Problem;
use crate::load::Loaded;
use crate::session::ContextConfig;
use crate::settings::Settings;

/// Every value that asks for something that is not there yet.
pub(crate) fn unsupported(loaded: &Loaded) -> Vec<Problem> {
    let settings = &loaded.settings;
    let mut asked = context(settings);
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
            "reserve_tokens",
            now.reserve_tokens != default.reserve_tokens,
            "16384",
        ),
        ("max_messages", now.max_messages != default.max_messages, "0"),
    ];
    rows.into_iter()
        .filter(|(_, changed, _)| *changed)
        .map(|(key, _, default)| {
            let fix = format!("leave it at {default}: conversations are compacted only when they do not fit");
            asked(format!("context.{key}"), fix)
        })
        .collect()
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
    exec.collect()
}
