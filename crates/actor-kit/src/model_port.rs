//! What a model client understands: admission to one provider.

use agentd_actor_core::Done;
use agentd_protocol::{CredentialStatus, FailureClass, LastCall, SessionId, Timestamp, Usage};
use agentd_provider::{Counted, Rates};
use agentd_settings::RatesConfig;
use ractor::ActorRef;
use std::time::Duration;

/// How long a call that ended waits to hear what may come next.
const OUTLOOK_WITHIN: Duration = Duration::from_secs(2);

/// Who goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Somebody waits for the answer.
    Interactive,
    /// Nobody does.
    Background,
}

/// What a call asks of its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Whose call.
    pub session: SessionId,
    /// The provider's name of the model: health and rates are counted by credential and model.
    pub model: String,
    /// The credential that this session used before: its prompt cache is warm. Another is given when that one is not well.
    pub credential: Option<String>,
    /// The group that shares the provider by weight.
    pub group: String,
    /// Who goes first.
    pub lane: Lane,
    /// About how many tokens are sent.
    pub input_tokens: u64,
    /// At most how many tokens are answered.
    pub output_tokens: u64,
    /// A person wants it tried now: what is left alone after failures is tried again by one call.
    pub insists: bool,
}

/// How a model call used its permit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CallOutcome {
    /// It was dropped before it knew.
    #[default]
    Dropped,
    /// It answered.
    Answered {
        /// What it used.
        usage: Usage,
    },
    /// It failed; the server may have said how long to wait.
    Failed {
        /// The class.
        class: FailureClass,
        /// The server's wish.
        retry_after_ms: Option<u64>,
        /// The window that the server told, in tokens.
        window: Option<u64>,
    },
}

/// What a permit is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Tells permits apart.
    pub number: u64,
    /// Whose.
    pub session: SessionId,
    /// The provider's name of the model.
    pub model: String,
    /// The credential to use; none where the provider needs none.
    pub credential: Option<String>,
    /// The window that this model was found to have, where it is smaller than configured.
    pub window: Option<u64>,
    /// This call finds out whether the provider or the credential works again; others wait for it.
    pub probe: bool,
}

/// The right to have one model call in flight. Given back when dropped, also by a kill or a panic.
#[derive(Debug)]
pub struct CallPermit {
    client: ActorRef<ModelMsg>,
    grant: Option<Grant>,
}

impl CallPermit {
    /// A permit of this client; only the client makes them.
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

    /// The window that this model was found to have.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.grant.as_ref()?.window
    }

    /// The provider answers: where this call is to find that out, nobody waits for its end.
    pub fn works(&mut self) {
        if let Some(grant) = self.grant.as_mut().filter(|grant| grant.probe) {
            let _ = self.client.cast(ModelMsg::Works { grant: grant.clone() });
            grant.probe = false;
        }
    }

    /// Gives the permit back and hears what the session may expect of another attempt. A client that is down has nothing
    /// to say.
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

/// What another attempt of the same session may expect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outlook {
    /// Another credential that is well now.
    pub other: Option<String>,
    /// No call of this model is admitted for so long, whatever the credential.
    pub closed_ms: Option<u64>,
}

/// What comes of asking.
#[derive(Debug)]
pub enum Admitted {
    /// Go.
    Granted(CallPermit),
    /// Not now, and not so soon that waiting in line makes sense.
    Refused(Refusal),
}

/// Why a call is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The class that the failures before had.
    pub class: FailureClass,
    /// In words.
    pub message: String,
    /// It makes sense to ask again after this.
    pub retry_after_ms: u64,
}

/// Where a call stands in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub position: u32,
    /// How many wait in all.
    pub of: u32,
    /// About how long it will take, where that can be told.
    pub eta_ms: Option<u64>,
    /// Why nobody is admitted now.
    pub hold: Option<Hold>,
}

/// Why nobody is admitted although permits may be free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A rate limit, the server's or the configured one.
    Rate,
    /// The provider fails; one call finds out when it works again.
    Circuit,
}

/// The state of a provider's admission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderStatus {
    /// Calls in flight.
    pub running: u32,
    /// Calls that wait for a permit.
    pub waiting: u32,
    /// Permits in all.
    pub permits: u32,
    /// Nobody is admitted before then.
    pub paused_until: Option<Timestamp>,
    /// Health by the provider's name of a model, then by credential.
    pub credentials: Vec<(String, CredentialStatus)>,
    /// Windows that models were found to have.
    pub windows: Vec<(String, u64)>,
    /// How the last call ended that told something of the provider.
    pub last_call: Option<LastCall>,
}

/// Messages of a model client.
#[derive(Debug)]
pub enum ModelMsg {
    /// Wait for a permit.
    Acquire {
        /// For what.
        ask: Ask,
        /// The permit, or why not. An asker that is gone is skipped; of one that goes just then the permit comes back by its drop.
        done: Done<Admitted>,
    },
    /// A permit came back.
    Release {
        /// Which.
        grant: Grant,
        /// How it was used.
        outcome: CallOutcome,
        /// What the server said about its limits.
        rates: Box<Rates>,
        /// Who wants to know what may come next.
        done: Option<Done<Outlook>>,
    },
    /// The provider answers a call that is to find out whether it works.
    Works {
        /// Which.
        grant: Grant,
    },
    /// Where does the waiting call of this session stand; of several, the last?
    Place {
        /// Whose.
        session: SessionId,
        /// `None`: none of its calls waits.
        done: Done<Option<Place>>,
    },
    /// Is it of use to ask this model's server for a count?
    MayCount {
        /// The provider's name of the model.
        model: String,
        /// The answer.
        done: Done<bool>,
    },
    /// What came of asking for one.
    Counted {
        /// The provider's name of the model.
        model: String,
        /// What.
        counted: Counted,
    },
    /// Something may be possible now that was not (private timer).
    Wake {
        /// The generation of the timer.
        generation: u64,
    },
    /// The configuration was read again. Calls in flight go on.
    Configure {
        /// How many calls may be in flight.
        permits: u32,
        /// The names of the credentials.
        credentials: Vec<String>,
        /// What one credential may use in a minute.
        rates: RatesConfig,
        /// A longer pause is not waited for in line.
        patience_ms: u64,
    },
    /// How things stand.
    Status {
        /// The answer.
        done: Done<ProviderStatus>,
    },
}
