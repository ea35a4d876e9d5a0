//! The errors of calls and of the configuration.

use crate::secret::Secret;
use crate::spec::{Credential, ModelSpec};
pub use agentd_protocol::Advice;
use agentd_protocol::FailureClass;

/// The longest message kept.
const MAX_MESSAGE: usize = 2_048;
/// Replaces a key.
const REDACTED: &str = "[redacted]";
/// A prefix of a key of at least this many bytes reveals something about it.
const TELLING: usize = 6;

/// Why an attempt failed. The class determines the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind of failure.
    pub class: FailureClass,
    /// The provider's message, bounded and without keys.
    pub message: String,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The wait that the provider requested.
    pub retry_after_ms: Option<u64>,
    /// How a changed request may succeed.
    pub advice: Option<Advice>,
}

impl ModelError {
    /// Creates an error.
    #[must_use]
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: bounded(message.into()),
            status: None,
            retry_after_ms: None,
            advice: None,
        }
    }

    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Transient, message)
    }

    /// Names a refused credential and the place where it was found.
    #[must_use]
    pub(crate) fn naming_credential(mut self, spec: &ModelSpec, credential: Option<&Credential>) -> Self {
        if self.class == FailureClass::Auth {
            let provider = &spec.provider;
            self.message += &match credential {
                Some(Credential { name, found_in, .. }) => {
                    format!("; credential {name} of provider {provider} comes from {found_in}")
                }
                None => {
                    format!("; provider {provider} has no credential: give it one in [providers.{provider}]")
                }
            };
        }
        self
    }

    /// Cuts the key, and anything else that looks like one, out of the message: some servers echo the request (I8).
    #[must_use]
    pub(crate) fn without(mut self, secret: Option<&Secret>) -> Self {
        if let Some(secret) = secret.filter(|secret| !secret.is_empty()) {
            self.message = self.message.replace(secret.expose(), REDACTED);
            // A quote is truncated, possibly in the middle of the key.
            if let Some(part) = begun(&self.message, secret.expose()) {
                self.message.truncate(self.message.len().saturating_sub(part));
                self.message.push_str(REDACTED);
            }
        }
        self.message = agentd_text::redact(&self.message).into_owned();
        self
    }
}

/// The length of the key prefix that the text ends with, if it is long enough to reveal something.
fn begun(text: &str, key: &str) -> Option<usize> {
    let parts = key.char_indices().map(|(end, _)| end);
    parts
        .rev()
        .take_while(|end| *end >= TELLING)
        .find(|end| key.get(..*end).is_some_and(|part| text.ends_with(part)))
}

fn bounded(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    }
    message
}

/// The error of a configured model, a script, or the HTTP client.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The HTTP client could not be built.
    #[error("could not create the HTTP client")]
    Client(#[source] reqwest::Error),
    /// A script is invalid.
    #[error("script {name}: {reason}")]
    Script {
        /// The script's file or name.
        name: String,
        /// The error and its place.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i8_an_echoed_key_is_cut_out_of_the_message() {
        let error = ModelError::transient("bad key abc-1 given").without(Some(&Secret::new("abc-1")));
        assert_eq!(error.message, "bad key [redacted] given");
        let key = Some(Secret::new("abcdef-123456"));
        for (said, message) in [
            ("the key abcdef-12345", "the key [redacted]"),
            ("the key abcdef", "the key [redacted]"),
            ("the key abcde", "the key abcde"),
        ] {
            assert_eq!(ModelError::transient(said).without(key.as_ref()).message, message);
        }
        let other = ModelError::transient("upstream sent Bearer abcdefghijklmnop1234567890").without(None);
        assert!(!other.message.contains("abcdefghijklmnop"), "{}", other.message);
    }

    #[test]
    fn a_refused_credential_is_named_with_its_place() {
        let refused = || ModelError::new(FailureClass::Auth, "HTTP 401: no");
        let mut spec = ModelSpec::scripted("m", std::sync::Arc::new(crate::script::Script::builtin()));
        let none = "HTTP 401: no; provider scripted has no credential: give it one in [providers.scripted]";
        assert_eq!(
            refused().naming_credential(&spec, spec.credential(None)).message,
            none
        );
        spec.credentials = vec![Credential {
            name: "main".into(),
            found_in: "A_KEY".into(),
            secret: Secret::new("abc-1"),
        }];
        let named = "HTTP 401: no; credential main of provider scripted comes from A_KEY";
        assert_eq!(
            refused().naming_credential(&spec, spec.credential(None)).message,
            named
        );
        assert_eq!(
            ModelError::transient("x")
                .naming_credential(&spec, spec.credential(None))
                .message,
            "x"
        );
    }

    #[test]
    fn a_message_is_cut_at_a_character() {
        let error = ModelError::transient("你".repeat(1_000));
        assert_eq!(error.message, "你".repeat(682));
    }
}
