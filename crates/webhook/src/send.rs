//! Sends each note in its own task, so that a slow receiver does not delay the others.

use crate::error::WebhookError;
use crate::note::Note;
use crate::schedule::{pause, worth_another_try};
use crate::signature::signature;
use agentd_fault_points as fault;
use agentd_name_lookup::Names;
use agentd_protocol::Timestamp;
use agentd_settings::{PermissionConfig, WebhookConfig};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The most notes in delivery at the same time, retry pauses included; further notes are dropped.
const ON_THE_WAY: usize = 256;
const KEY: &str = "x-agentd-delivery";
const TIME: &str = "x-agentd-timestamp";
const SIGNATURE: &str = "x-agentd-signature";

/// The configured receivers.
#[derive(Clone)]
pub struct Webhooks {
    config: WebhookConfig,
    /// Further receivers, one per missed deadline, in order.
    escalate_to: Vec<String>,
    secret: Option<Arc<str>>,
    client: Client,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    places: Arc<Semaphore>,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("signed", &self.secret.is_some())
            .finish_non_exhaustive()
    }
}

impl Webhooks {
    /// The configured webhooks, if there are any. `secret_of` looks up an environment variable, `now` returns the time.
    ///
    /// # Errors
    /// When the secret is missing, or the machine's TLS set-up does not work.
    pub fn new(
        config: &PermissionConfig,
        secret_of: impl Fn(&str) -> Option<String>,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Result<Option<Self>, WebhookError> {
        let webhook = config.webhook.clone();
        if webhook.url.is_empty() && config.escalate_to.is_empty() {
            return Ok(None);
        }
        let secret = match webhook.secret_env.as_str() {
            "" => None,
            name => {
                let secret = secret_of(name).filter(|secret| !secret.is_empty());
                let secret = secret.ok_or_else(|| WebhookError::NoSecret(name.to_owned()))?;
                agentd_text::register_secret(&secret);
                Some(Arc::from(secret))
            }
        };
        // An error means that another caller already installed a provider, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .timeout(Duration::from_millis(webhook.timeout_ms))
            .dns_resolver(Names::of_operator())
            // Only the operator decides where notes go, so redirects are not followed.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(WebhookError::Client)?;
        Ok(Some(Self {
            config: webhook,
            escalate_to: config.escalate_to.clone(),
            secret,
            client,
            now: Arc::new(now),
            places: Arc::new(Semaphore::new(ON_THE_WAY)),
        }))
    }

    /// Waits for a free place and sends a note: for callers with many notes that can wait.
    pub async fn send_in_turn(&self, note: &Note) {
        // The semaphore is never closed.
        drop(self.places.acquire().await);
        self.send(note);
    }

    /// Sends a note to its receivers without waiting for the delivery.
    pub fn send(&self, note: &Note) {
        for url in self.receivers(note.level) {
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                tracing::warn!(
                    note = note.key,
                    "dropping a webhook: {ON_THE_WAY} others are in flight"
                );
                return;
            };
            let (this, note) = (self.clone(), note.clone());
            tokio::spawn(async move {
                this.deliver(&url, &note).await;
                drop(place);
            });
        }
    }

    #[cfg(test)]
    pub(crate) fn on_the_way(&self) -> usize {
        ON_THE_WAY - self.places.available_permits()
    }

    /// The webhook receives every note; an escalation level has an additional receiver.
    fn receivers(&self, level: u32) -> Vec<String> {
        let own = level
            .checked_sub(1)
            .and_then(|level| self.escalate_to.get(usize::try_from(level).ok()?));
        let all = Some(&self.config.url).filter(|url| !url.is_empty());
        let mut receivers: Vec<String> = all.into_iter().chain(own).cloned().collect();
        receivers.dedup();
        receivers
    }

    async fn deliver(&self, url: &str, note: &Note) {
        let mut tried = 0;
        loop {
            let sent = match fault::point(fault::WEBHOOK_SEND) {
                Ok(()) => Ok(self.post(url, note).await),
                Err(injected) => Err(injected),
            };
            tried += 1;
            let (why, again) = match sent {
                Err(injected) => (injected.to_string(), true),
                Ok(Ok(answer)) if answer.status().is_success() => return,
                Ok(Ok(answer)) => (
                    answer.status().to_string(),
                    worth_another_try(answer.status().as_u16()),
                ),
                // The error's text would contain the URL, which may have a token in it.
                Ok(Err(error)) => (error.without_url().to_string(), true),
            };
            let Some(pause) = pause(tried, self.config.retries).filter(|_| again) else {
                tracing::warn!(note = note.key, tried, why, "could not deliver a webhook");
                return;
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn post(&self, url: &str, note: &Note) -> Result<Response, reqwest::Error> {
        let seconds = (self.now)().0 / 1_000;
        let mut request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(KEY, &note.key)
            .header(TIME, seconds);
        let secret = self.secret.as_ref();
        if let Some(signature) = secret.and_then(|secret| signature(secret.as_bytes(), seconds, &note.body)) {
            request = request.header(SIGNATURE, signature);
        }
        request.body(note.body.clone()).send().await
    }
}
