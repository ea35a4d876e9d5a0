//! The status of a provider's admission. Pure.

use crate::bucket::Charge;
use crate::state::Admission;
use agentd_actor_kit::{Ask, Hold, Lane, ProviderStatus, QueuePosition};
use agentd_protocol::{FailureClass, LastCall, SessionId, Timestamp};
use agentd_store::Want;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The message of a failed call about its provider, if there is one.
pub(crate) const fn told(class: FailureClass, at: Timestamp) -> Option<LastCall> {
    let failed = match class {
        FailureClass::Internal | FailureClass::Cancelled => return None,
        // The provider read the request, so it works.
        FailureClass::ContextOverflow | FailureClass::ContentFilter | FailureClass::InvalidRequest => None,
        FailureClass::RateLimited
        | FailureClass::QuotaExhausted
        | FailureClass::Auth
        | FailureClass::Overloaded
        | FailureClass::Transient => Some(class),
    };
    Some(LastCall { at, failed })
}

impl<T> Admission<T> {
    /// The position of a waiting session's last call.
    pub(crate) fn place(&self, session: SessionId, now: Timestamp) -> Option<QueuePosition> {
        let (position, first) = self.queue.position(session)?;
        let closed = self
            .closed(&first.model, now)
            .map(|(until, _)| until.since_ms(now));
        let hold = if self.circuit.holds(now) {
            Some(Hold::Circuit)
        } else if closed.is_some() || self.wants_a_rate(first, now) {
            Some(Hold::Rate)
        } else {
            None
        };
        let eta_ms = self.pace.eta_ms(position, now);
        Some(QueuePosition {
            position: u32::try_from(position).unwrap_or(u32::MAX),
            of: u32::try_from(self.queue.len()).unwrap_or(u32::MAX),
            eta_ms: eta_ms.map_or(closed, |eta| Some(eta.max(closed.unwrap_or(0)))),
            hold,
        })
    }

    /// Whether a call waits for a rate limit rather than a permit.
    fn wants_a_rate(&self, ask: &Ask, now: Timestamp) -> bool {
        let asked = ask.credential.as_deref();
        let shut = self
            .credentials
            .choose(&ask.model, asked, &Charge::of(ask), now)
            .err();
        shut.is_some_and(|shut| shut.opens.is_some())
    }

    /// The current status.
    pub(crate) fn status(&self, now: Timestamp) -> ProviderStatus {
        ProviderStatus {
            running: self.running(),
            waiting: u32::try_from(self.queue.len()).unwrap_or(u32::MAX),
            permits: self.permits(),
            limit: self.limit,
            wants: self.wants(),
            paused_until: self.paused_until(now),
            circuit: self.circuit.told(),
            credentials: self.credentials.told(now),
            windows: self
                .windows
                .iter()
                .map(|(model, tokens)| (model.clone(), *tokens))
                .collect(),
            last_call: self.last_call,
            absent: self
                .absent
                .iter()
                .map(|(model, at)| (model.clone(), *at))
                .collect(),
        }
    }

    /// The calls in flight and those that wait, by lane and group.
    fn wants(&self) -> Vec<Want> {
        let mut calls: BTreeMap<(Lane, &Arc<str>), u32> = BTreeMap::new();
        for (lane, group, waiting) in self.queue.groups() {
            *calls.entry((lane, group)).or_default() += u32::try_from(waiting).unwrap_or(u32::MAX);
        }
        for running in self.running.values() {
            *calls.entry((running.lane, &running.group)).or_default() += 1;
        }
        let wants = calls.into_iter().map(|((lane, group), calls)| Want {
            background: lane == Lane::Background,
            group: group.to_string(),
            weight: self.queue.weight(group),
            calls,
        });
        wants.collect()
    }

    /// A provider is paused while its circuit is open, or while every model that was ever called is closed.
    fn paused_until(&self, now: Timestamp) -> Option<Timestamp> {
        let models: BTreeSet<&str> = self.credentials.models().collect();
        let ends: Option<Vec<Timestamp>> = models
            .into_iter()
            .map(|model| Some(self.closed(model, now)?.0))
            .collect();
        let first = ends.and_then(|ends| ends.into_iter().min());
        first.or_else(|| self.circuit.broken_until(now))
    }
}
