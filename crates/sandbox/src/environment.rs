//! The environment of commands: an allow-list.

use std::collections::BTreeMap;
use std::ffi::OsString;

const ALLOWED: [&str; 9] = [
    "HOME", "LANG", "LANGUAGE", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The environment of commands: it holds only variables that were added by name (I8).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The allowed part of `source` (the daemon's environment): the usual names, `LC_*`, and the names in `extra`.
    /// Values that are not UTF-8 are left out.
    pub fn allowed(source: impl IntoIterator<Item = (OsString, OsString)>, extra: &[String]) -> Self {
        let passes = |name: &str| {
            ALLOWED.contains(&name) || name.starts_with("LC_") || extra.iter().any(|allowed| allowed == name)
        };
        let mut env: BTreeMap<String, String> = source
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| passes(name))
            .collect();
        env.entry("PATH".to_owned())
            .or_insert_with(|| DEFAULT_PATH.to_owned());
        Self(env)
    }

    /// Returns a copy with one more variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// All variables.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i8_only_listed_names_pass() {
        let source = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "secret"),
            ("LD_PRELOAD", "/tmp/x.so"),
            ("BASH_ENV", "/tmp/x"),
            ("CARGO_HOME", "/c"),
        ];
        let env = Environment::allowed(
            source.map(|(name, value)| (OsString::from(name), OsString::from(value))),
            &["CARGO_HOME".to_owned()],
        );
        assert_eq!(
            env.iter().collect::<Vec<_>>(),
            [("CARGO_HOME", "/c"), ("LC_ALL", "C"), ("PATH", "/bin")]
        );
    }

    #[test]
    fn a_daemon_without_a_path_gives_commands_the_usual_one() {
        assert_eq!(
            Environment::allowed([], &[]).iter().collect::<Vec<_>>(),
            [("PATH", DEFAULT_PATH)]
        );
    }
}
