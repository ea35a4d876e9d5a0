//! The environment of a git that must not read the user's settings.

use crate::environment::Environment;
use agentd_protected::{holds_secret, is_secret_line};
use std::path::PathBuf;

/// The files that git reads for a user.
const GIT: [&str; 2] = [".gitconfig", ".config/git/config"];

impl Environment {
    /// Returns the same environment for a git that skips the user's settings that it must not read, and still knows the
    /// author of its commits.
    #[must_use]
    pub fn without_secret_settings(self) -> Self {
        let home = self
            .iter()
            .find(|(name, _)| *name == "HOME")
            .map(|(_, home)| PathBuf::from(home));
        let Some(home) = home.filter(|home| home.is_absolute()) else {
            return self;
        };
        let files = GIT.map(|name| home.join(name));
        if !files.iter().any(|path| holds_secret(path)) {
            return self;
        }
        let known: Vec<(String, String)> = files
            .iter()
            .rev()
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .flat_map(|text| identity(&text))
            .collect();
        let count = known.len().to_string();
        let mut environment = self
            .with("GIT_CONFIG_GLOBAL", "/dev/null")
            .with("GIT_CONFIG_COUNT", count);
        for (at, (key, value)) in known.into_iter().enumerate() {
            environment = environment
                .with(format!("GIT_CONFIG_KEY_{at}"), key)
                .with(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        environment
    }
}

/// `user.name` and `user.email` from git's settings.
fn identity(text: &str) -> Vec<(String, String)> {
    let mut user = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            user = line.eq_ignore_ascii_case("[user]");
        }
        if let Some((key, value)) = line.split_once('=').filter(|_| user) {
            let key = key.trim().to_ascii_lowercase();
            let value = value.trim().trim_matches('"');
            if matches!(key.as_str(), "name" | "email") && !is_secret_line(value) {
                found.push((format!("user.{key}"), value.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confinement::readable;
    use agentd_protected::secret_settings;

    fn home(file: &str, text: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        home
    }

    fn is_readable(file: &str, text: &str) -> bool {
        let home = home(file, text);
        let environment = Environment::default().with("HOME", home.path().display().to_string());
        readable(&environment, &[]).contains(&home.path().join(file))
    }

    #[test]
    fn i8_redteam_settings_with_a_credential_are_not_readable() {
        let plain = "[user]\n\tname = Ana\n\temail = ana@example.com\n[url \"ssh://git@github.com/\"]\n\tinsteadOf = https://github.com/\n[credential]\n\thelper = store\n";
        assert!(is_readable(".gitconfig", plain), "positive control");
        assert!(
            is_readable(".cargo/config.toml", "[build]\njobs = 2\n"),
            "positive control"
        );
        for secret in [
            // git's documentation of url.<base>.insteadOf and http.extraHeader, as CI systems use them.
            "[url \"https://x-access-token:abcdef@github.com/\"]\n\tinsteadOf = https://github.com/",
            "[url \"https://ana@github.com/\"]\n\tinsteadOf = gh:",
            "[http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic eHl6",
            "[HTTP]\n\tEXTRAHEADER = X: y",
            "[github]\n\toauth = 0123456789abcdef",
            "[gitlab]\n\ttoken = 0123",
            "[credential]\n\thelper = \"!f() { echo password=hush; }; f\"",
            "[http]\n\tproxy = http://ana:hush@proxy:8080",
            "[sendemail]\n\tsmtpPass = hush\n\tsmtpPassword = x",
            "# ghp_0123456789",
        ] {
            assert!(
                !is_readable(".gitconfig", &format!("{plain}{secret}\n")),
                "{secret}"
            );
            assert!(
                !is_readable(".config/git/config", &format!("{plain}{secret}\n")),
                "{secret}"
            );
        }
        for secret in [
            "[registry]\ntoken = \"x\"",
            "[registries.a]\nindex = \"https://u:p@host/\"",
            "[env]\nAPI_KEY = \"x\"",
        ] {
            assert!(!is_readable(".cargo/config.toml", secret), "{secret}");
        }
        assert!(
            !is_readable(".gitconfig", &"x".repeat(300_000)),
            "too long to look at"
        );
    }

    #[test]
    fn git_without_its_settings_still_knows_the_author() {
        let home = home(
            ".gitconfig",
            "[user]\n name = Ana B\n email = \"ana@example.com\"\n signingkey = x\n[github]\n token = x\n",
        );
        let environment = Environment::default()
            .with("HOME", home.path().display().to_string())
            .without_secret_settings();
        let value = |name: &str| {
            environment
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        };
        assert_eq!(value("GIT_CONFIG_GLOBAL").as_deref(), Some("/dev/null"));
        assert_eq!(value("GIT_CONFIG_COUNT").as_deref(), Some("2"));
        assert_eq!(value("GIT_CONFIG_VALUE_0").as_deref(), Some("Ana B"));
        assert_eq!(value("GIT_CONFIG_VALUE_1").as_deref(), Some("ana@example.com"));
        assert_eq!(secret_settings(home.path()), [home.path().join(".gitconfig")]);
        let plain = Environment::default().with("HOME", "/nowhere");
        assert_eq!(plain.clone().without_secret_settings(), plain);
    }
}
