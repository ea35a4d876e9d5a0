//! Valid values that this version does not support yet. They prevent the start, so that none is silently ignored.

use crate::error::Problem;
use crate::load::Loaded;
use crate::settings::Settings;

/// All values that require a missing feature.
pub(crate) fn unsupported(loaded: &Loaded) -> Vec<Problem> {
    let settings = &loaded.settings;
    let asked = models(settings);
    let problem = |(key, fix): (String, String)| Problem {
        origin: loaded.origins.get(&key).cloned(),
        key,
        what: "this version does not support exec".to_owned(),
        fix,
    };
    asked.into_iter().map(problem).collect()
}

/// A key, and the remedy.
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
                "replace the exec credential with env or file",
            )
        });
    exec.collect()
}
