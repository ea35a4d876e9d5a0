//! The messages of a model client: admission to one provider.

use agentd_actor_core::Done;
use agentd_protocol::{CircuitState, CredentialStatus, FailureClass, LastCall, SessionId, Timestamp, Usage};
use agentd_provider::{Counted, Rates};
use agentd_settings::RatesConfig;
use agentd_store::{Share, Want};
use ractor::ActorRef;
use std::time::Duration;

/// How long a call that has ended waits for the outlook on another attempt.
const OUTLOOK_WITHIN: Duration = Duration::from_secs(2);

/// The priority of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// A caller waits for the answer.
    Interactive,
    /// No caller waits for the answer.
    Background,
}

/// The requirements of a call that asks its provider for a permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The session that makes the call.
    pub session: SessionId,
    /// The provider's name of the model: health and rates are tracked per credential and model.
    pub model: String,
    /// The credential that this session used before: its prompt cache is warm. If it is unhealthy, another is granted.
    pub credential: Option<String>,
    /// The group that shares the provider by weight.
    pub group: String,
    /// The priority.
    pub lane: Lane,
    /// The approximate number of tokens to send.
    pub input_tokens: u64,
    /// The maximum number of tokens in the answer.
    pub output_tokens: u64,
    /// A person wants a try now: one call may use what is otherwise left alone after failures.
    pub insists: bool,
}

/// How a model call used its permit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CallOutcome {
    /// It was dropped without an outcome.
    #[default]
    Dropped,
    /// It answered.
    Answered {
        /// The tokens used.
        usage: Usage,
    },
    /// It failed; the server may have said how long to wait.
    Failed {
        /// The class.
        class: FailureClass,
        /// The delay that the server asked for.
        retry_after_ms: Option<u64>,
        /// The size of the window in tokens, if the server reported it.
        window: Option<u64>,
        /// The server does not have the model, or does not serve the API at its address.
        absent: bool,
    },
}

/// The terms of a permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// A number that distinguishes permits.
    pub number: u64,
    /// The session that holds it.
    pub session: SessionId,
    /// The provider's name of the model.
    pub model: String,
    /// The credential to use; none if the provider needs none.
    pub credential: Option<String>,
    /// The actual window of this model, if it proved smaller than configured.
    pub window: Option<u64>,
    /// This call tests whether the provider or the credential works again; other calls wait for it.
    pub probe: bool,
}

/// The right to have one model call in flight. Returned on drop, also after a kill or a panic.
#[derive(Debug)]
pub struct CallPermit {
    client: ActorRef<ModelMsg>,
    grant: Option<Grant>,
}

impl CallPermit {
    /// A permit of this client; only the client creates permits.
    #[must_use]
    pub const fn new(client: ActorRef<ModelMsg>, grant: Grant) -> Self {
        Self {
            client,
            grant: Some(grant),
        }
    }

    /// The credential to use.
    #[must_use]
    pub fn credential(&self) -> Option<&str> {
        self.grant.as_ref()?.credential.as_deref()
    }

    /// The actual window of this model, if known.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.grant.as_ref()?.window
    }

    /// Reports that the provider answers. If this call is a probe, the others need not wait for its end.
    pub fn works(&mut self) {
        if let Some(grant) = self.grant.as_mut().filter(|grant| grant.probe) {
            let _ = self.client.cast(ModelMsg::Works { grant: grant.clone() });
            grant.probe = false;
        }
    }

    /// Returns the permit and waits for the outlook on another attempt of the session. A client that is down gives an
    /// empty outlook.
    pub async fn give_back(mut self, outcome: CallOutcome, rates: Rates) -> Outlook {
        let Some(grant) = self.grant.take() else {
            return Outlook::default();
        };
        let (done, outlook) = Done::channel();
        let _ = self.client.cast(ModelMsg::Release {
            grant,
            outcome,
            rates: Box::new(rates),
            done: Some(done),
        });
        match tokio::time::timeout(OUTLOOK_WITHIN, outlook).await {
            Ok(Ok(outlook)) => outlook,
            Ok(Err(_)) | Err(_) => Outlook::default(),
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            let _ = self.client.cast(ModelMsg::Release {
                grant,
                outcome: CallOutcome::Dropped,
                rates: Box::default(),
                done: None,
            });
        }
    }
}

/// The outlook on another attempt of the same session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outlook {
    /// Another credential that is healthy now.
    pub other: Option<String>,
    /// No call of this model is admitted for this long, whatever the credential.
    pub closed_ms: Option<u64>,
}

/// The answer to a request for a permit.
#[derive(Debug)]
pub enum Admitted {
    /// The call may start.
    Granted(CallPermit),
    /// Not now, and not soon enough to wait in line.
    Refused(Refusal),
}

/// Why a call is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The class of the earlier failures.
    pub class: FailureClass,
    /// The reason, in words.
    pub message: String,
    /// After this time it makes sense to ask again.
    pub retry_after_ms: u64,
}

/// The place of a call in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePosition {
    /// From 1.
    pub position: u32,
    /// How many calls wait in all.
    pub of: u32,
    /// The approximate remaining wait, if it can be estimated.
    pub eta_ms: Option<u64>,
    /// Why no call is admitted now.
    pub hold: Option<Hold>,
}

/// Why no call is admitted although permits may be free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A rate limit, either the server's or the configured one.
    Rate,
    /// The provider is failing; one call tests when it works again.
    Circuit,
}

/// The state of a provider's admission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderStatus {
    /// Calls in flight.
    pub running: u32,
    /// Calls that wait for a permit.
    pub waiting: u32,
    /// How many calls may be in flight: in a fleet, this node's share.
    pub permits: u32,
    /// The configured limit.
    pub limit: u32,
    /// The calls in flight and those that wait, by lane and group.
    pub wants: Vec<Want>,
    /// No call is admitted before this time.
    pub paused_until: Option<Timestamp>,
    /// The circuit breaker.
    pub circuit: CircuitState,
    /// Health by the provider's name of a model, then by credential.
    pub credentials: Vec<(String, CredentialStatus)>,
    /// The actual windows of models, as far as known.
    pub windows: Vec<(String, u64)>,
    /// The last call that revealed the state of the provider.
    pub last_call: Option<LastCall>,
    /// When the server last said that it does not have a model, by its name there. A later answer removes it.
    pub absent: Vec<(String, Timestamp)>,
}

/// Messages of a model client.
#[derive(Debug)]
pub enum ModelMsg {
    /// Wait for a permit.
    Acquire {
        /// The requirements.
        ask: Ask,
        /// The permit or the refusal. Skips a caller that is gone; if it goes just then, the drop returns the permit.
        done: Done<Admitted>,
    },
    /// A permit was returned.
    Release {
        /// The permit.
        grant: Grant,
        /// The outcome of the call.
        outcome: CallOutcome,
        /// The server's statements about its limits.
        rates: Box<Rates>,
        /// The receiver of the outlook on another attempt.
        done: Option<Done<Outlook>>,
    },
    /// A probe call reports that the provider answers.
    Works {
        /// The permit of the call.
        grant: Grant,
    },
    /// Ask for the place of this session's waiting call in line; of several calls, the last.
    QueuePosition {
        /// The session.
        session: SessionId,
        /// `None`: none of its calls is waiting.
        done: Done<Option<QueuePosition>>,
    },
    /// Ask whether a token count from this model's server is worth a request.
    MayCount {
        /// The provider's name of the model.
        model: String,
        /// The answer.
        done: Done<bool>,
    },
    /// The outcome of asking a server for a token count.
    Counted {
        /// The provider's name of the model.
        model: String,
        /// The outcome.
        counted: Counted,
    },
    /// A waiting call may be admissible now (private timer).
    Wake {
        /// The generation of the timer.
        generation: u64,
    },
    /// The configuration was read again. Calls in flight continue.
    Configure {
        /// How many calls may be in flight.
        permits: u32,
        /// The names of the credentials.
        credentials: Vec<String>,
        /// The rates per minute for one credential.
        rates: RatesConfig,
        /// Calls do not wait in line for a pause longer than this.
        patience_ms: u64,
    },
    /// This node's share of the limit changed: the other nodes of the fleet have the rest.
    Share {
        /// The permits and the weights; rates are divided in the same proportion as the permits.
        share: Share,
    },
    /// Ask for the state of the admission.
    Status {
        /// The answer.
        done: Done<ProviderStatus>,
    },
}
