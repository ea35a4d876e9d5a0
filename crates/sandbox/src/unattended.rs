//! Variables for commands that nobody watches: no editor, no pager, no prompt, and no waiting for a network that is not there.

use crate::environment::Environment;

/// An editor that fails at once and says how to do without.
const NO_EDITOR: &str = "sh -c 'echo \"There is no editor here. Give the text with -m or -F, or keep it with --no-edit or \
GIT_EDITOR=true.\" >&2; exit 1' --";

/// Groups of variables with the same purpose, and their value. `CI` is not among them: it changes what builds and tests do.
const DEFAULTS: [(&[&str], &str); 12] = [
    (
        &["GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL", "EDITOR"],
        NO_EDITOR,
    ),
    (&["GIT_PAGER", "PAGER", "MANPAGER", "SYSTEMD_PAGER"], "cat"),
    (&["TERM"], "dumb"),
    (&["GIT_TERMINAL_PROMPT"], "0"),
    (&["GCM_INTERACTIVE"], "never"),
    (&["SSH_ASKPASS_REQUIRE"], "never"),
    (&["DEBIAN_FRONTEND"], "noninteractive"),
    (&["PIP_NO_INPUT"], "1"),
    (&["POETRY_NO_INTERACTION", "COMPOSER_NO_INTERACTION"], "1"),
    (&["GH_PROMPT_DISABLED"], "1"),
    // Checks for a newer version, which wait for their server.
    (&["npm_config_update_notifier"], "false"),
    (&["PIP_DISABLE_PIP_VERSION_CHECK", "GH_NO_UPDATE_NOTIFIER"], "1"),
];

/// Without a network, each of these programs would try again for up to a minute.
const NO_RETRIES: [&str; 3] = ["npm_config_fetch_retries", "PIP_RETRIES", "CARGO_NET_RETRY"];

impl Environment {
    /// The same environment for commands that nobody watches. If the operator lists a variable in `kept`, this leaves it and its
    /// group as they are.
    #[must_use]
    pub fn unattended(mut self, kept: &[String]) -> Self {
        for (names, value) in DEFAULTS {
            if names.iter().any(|name| kept.iter().any(|kept| kept == name)) {
                continue;
            }
            for name in names {
                self = self.with(*name, value);
            }
        }
        self
    }

    /// The same environment for commands that reach no network.
    pub(crate) fn without_network(mut self) -> Self {
        for name in NO_RETRIES {
            if !self.has(name) {
                self = self.with(name, "0");
            }
        }
        self
    }

    fn has(&self, name: &str) -> bool {
        self.iter().any(|(found, _)| found == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_daemon() -> Environment {
        let daemon = [("TERM", "xterm"), ("EDITOR", "vim"), ("PATH", "/bin")];
        daemon
            .into_iter()
            .fold(Environment::default(), |all, (name, value)| all.with(name, value))
    }

    fn value(environment: &Environment, name: &str) -> Option<String> {
        let found = environment.iter().find(|(found, _)| *found == name);
        found.map(|(_, value)| value.to_owned())
    }

    #[test]
    fn nothing_asks_or_pages_or_edits() {
        let environment = of_daemon().unattended(&[]);
        for (names, expected) in DEFAULTS {
            for name in names {
                assert_eq!(value(&environment, name).as_deref(), Some(expected), "{name}");
            }
        }
        assert_eq!(value(&environment, "PATH").as_deref(), Some("/bin"));
        assert_eq!(value(&environment, "CI"), None);
    }

    #[test]
    fn the_operator_has_the_last_word_for_a_whole_group() {
        let kept = ["EDITOR".to_owned(), "TERM".to_owned(), "MANPAGER".to_owned()];
        let environment = of_daemon().unattended(&kept);
        for (name, expected) in [
            ("EDITOR", Some("vim")),
            ("GIT_EDITOR", None),
            ("VISUAL", None),
            ("TERM", Some("xterm")),
            ("PAGER", None),
            ("GIT_TERMINAL_PROMPT", Some("0")),
        ] {
            assert_eq!(value(&environment, name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn without_a_network_nothing_tries_again_unless_somebody_says_so() {
        let environment = of_daemon().with("PIP_RETRIES", "3").without_network();
        assert_eq!(
            value(&environment, "npm_config_fetch_retries").as_deref(),
            Some("0")
        );
        assert_eq!(value(&environment, "PIP_RETRIES").as_deref(), Some("3"));
    }
}
