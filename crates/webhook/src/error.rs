//! Errors in the configuration of webhooks.

/// Why webhooks cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The variable is not in the environment.
    #[error("permission.webhook.secret_env names {0:?}, which is unset or empty; set it, or remove the key")]
    NoSecret(String),
    /// The HTTP client or its TLS set-up does not work.
    #[error("cannot send webhooks: {0}")]
    Client(#[source] reqwest::Error),
}
