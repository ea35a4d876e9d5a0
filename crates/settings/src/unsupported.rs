//! Values that are right and that this version cannot follow yet: they stop the start, so that none is silently ignored.

use crate::error::Problem;
use crate::load::Loaded;
use crate::settings::Settings;

/// Every value that asks for something that is not there yet.
pub(crate) fn unsupported(loaded: &Loaded) -> Vec<Problem> {
    let settings = &loaded.settings;
    let asked = models(settings);
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
