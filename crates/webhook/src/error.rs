//! What can be wrong with the configuration of webhooks.

/// Why nobody can be told.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The environment has no such variable.
    #[error(
        "permission.webhook.secret_env names {0:?}, which is not set or empty; set it, or take the key out"
    )]
    NoSecret(String),
    /// The HTTP client or its TLS set-up is unusable.
    #[error("no webhook can be sent from here: {0}")]
    Client(#[source] reqwest::Error),
}
