//! The credentials of one provider: selects one for each call, and learns from the outcome. Pure.

use crate::bucket::{Buckets, Charge};
use crate::health::{Cooldowns, Health, Well};
use agentd_protocol::{CredentialStatus, FailureClass, Timestamp};
use agentd_provider::Rates;
use agentd_settings::RatesConfig;
use std::collections::BTreeMap;

/// After a rate limit halved the concurrency, it grows by one per round of answers: as many as the current concurrency,
/// and at least this many.
const LEAST_ANSWERS: u32 = 8;
/// The name that the status shows for the nameless credential of a server without keys.
const NAMELESS: &str = "none";

/// No credential is available for a model now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shut {
    /// When one becomes available, if time alone suffices.
    pub(crate) opens: Option<Timestamp>,
}

/// The concurrency limit of one credential: halved when the server reports a rate limit, raised by one after
/// several answers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    /// The size after rate limits, until it has grown to `most`. A smaller share for a while does not change it.
    learned: Option<u32>,
    most: u32,
    answers: u32,
    /// Calls with a smaller number started before the last halving.
    fresh_from: u64,
}

impl Window {
    const fn resize(&mut self, permits: u32) {
        self.most = permits;
    }

    fn size(&self) -> u32 {
        self.learned.map_or(self.most, |size| size.min(self.most))
    }

    fn answered(&mut self) {
        let Some(size) = self.learned.filter(|size| *size < self.most) else {
            return;
        };
        self.answers += 1;
        if self.answers >= size.max(LEAST_ANSWERS) {
            self.answers = 0;
            self.learned = Some(size + 1).filter(|size| *size < self.most);
        }
    }

    fn limited(&mut self, (number, next): (u64, u64), running: u32) {
        if number >= self.fresh_from {
            self.learned = Some((self.size().min(running) / 2).max(1));
            self.answers = 0;
            self.fresh_from = next;
        }
    }
}

/// One credential with one model.
#[derive(Debug, Default)]
struct Account {
    health: Health,
    /// The limits that the server reported.
    learned: Buckets,
}

#[derive(Debug)]
struct Slot {
    name: Option<String>,
    /// It is no longer configured; calls in flight may still return.
    retired: bool,
    running: u32,
    last_used: u64,
    window: Window,
    configured: Buckets,
    accounts: BTreeMap<String, Account>,
}

/// Whether one credential admits a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    /// Not before this time.
    Until(Timestamp),
    /// Only after another call ends.
    Busy,
}

impl Slot {
    const fn new(name: Option<String>, permits: u32, configured: Buckets) -> Self {
        Self {
            name,
            retired: false,
            running: 0,
            last_used: 0,
            window: Window {
                learned: None,
                most: permits,
                answers: 0,
                fresh_from: 0,
            },
            configured,
            accounts: BTreeMap::new(),
        }
    }

    fn well(&self, model: &str, now: Timestamp) -> Well {
        self.accounts
            .get(model)
            .map_or(Well::Yes, |account| account.health.well(now))
    }

    fn gate(&self, model: &str, charge: &Charge, now: Timestamp) -> Gate {
        if self.retired {
            return Gate::Busy;
        }
        match self.well(model, now) {
            Well::No { until, .. } => return Gate::Until(until),
            Well::Probing => return Gate::Busy,
            Well::Yes | Well::Probe => {}
        }
        if self.running >= self.window.size() {
            return Gate::Busy;
        }
        let learned = self
            .accounts
            .get(model)
            .map_or(0, |account| account.learned.opens_in(charge, now));
        match learned.max(self.configured.opens_in(charge, now)) {
            0 => Gate::Open,
            ms => Gate::Until(now.plus_ms(ms)),
        }
    }

    fn change(&mut self, model: &str, taken: &Charge, returned: &Charge, now: Timestamp) {
        self.configured.change(taken, returned, now);
        if let Some(account) = self.accounts.get_mut(model) {
            account.learned.change(taken, returned, now);
        }
    }
}

/// The index of a credential.
pub(crate) type Index = usize;

/// A call, as seen by its credential.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) credential: Index,
    pub(crate) model: &'a str,
    pub(crate) number: u64,
    /// The number of the next call.
    pub(crate) next: u64,
}

/// The credentials of one provider.
#[derive(Debug)]
pub(crate) struct Credentials {
    slots: Vec<Slot>,
    permits: u32,
    /// The limits of each credential.
    rates: RatesConfig,
    cooldowns: Cooldowns,
    used: u64,
}

impl Credentials {
    pub(crate) const fn new(cooldowns: Cooldowns) -> Self {
        Self {
            slots: Vec::new(),
            permits: 0,
            rates: RatesConfig {
                requests: 0,
                input_tokens: 0,
                output_tokens: 0,
            },
            cooldowns,
            used: 0,
        }
    }

    /// Applies reloaded names; a server without keys has one nameless credential. A credential that was refused or out of
    /// quota is probed again, because its key may have changed.
    pub(crate) fn configure(&mut self, names: Vec<String>, now: Timestamp) {
        let wanted: Vec<Option<String>> = if names.is_empty() {
            vec![None]
        } else {
            names.into_iter().map(Some).collect()
        };
        for slot in &mut self.slots {
            slot.retired = !wanted.contains(&slot.name);
            for account in slot.accounts.values_mut() {
                account.health.try_another_key(now);
            }
        }
        for name in wanted {
            if !self.slots.iter().any(|slot| slot.name == name) {
                let slot = Slot::new(name, self.permits, Buckets::configured(&self.rates, now));
                self.slots.push(slot);
            }
        }
    }

    /// Applies other limits. The used part of a rate stays used.
    pub(crate) fn resize(&mut self, permits: u32, rates: &RatesConfig, now: Timestamp) {
        (self.permits, self.rates) = (permits, *rates);
        for slot in &mut self.slots {
            slot.window.resize(permits);
            slot.configured.resize(rates, now);
        }
    }

    pub(crate) fn name(&self, credential: Index) -> Option<&str> {
        self.slots.get(credential)?.name.as_deref()
    }

    /// Chooses the credential for a call: the requested one if it is available, because its cache is warm; else the one
    /// with the fewest calls, and of these the least recently used.
    pub(crate) fn choose(
        &self,
        model: &str,
        asked: Option<&str>,
        charge: &Charge,
        now: Timestamp,
    ) -> Result<Index, Shut> {
        let mut opens = None;
        let mut best = None;
        for (index, slot) in self.slots.iter().enumerate() {
            match slot.gate(model, charge, now) {
                Gate::Open if asked.is_some() && slot.name.as_deref() == asked => return Ok(index),
                Gate::Open => {
                    let rank = (slot.running, slot.last_used, index);
                    best = Some(best.map_or(rank, |best| rank.min(best)));
                }
                Gate::Until(until) => opens = Some(opens.map_or(until, |opens| until.min(opens))),
                Gate::Busy => {}
            }
        }
        best.map(|(_, _, index)| index).ok_or(Shut { opens })
    }

    /// Until when all credentials are unavailable for this model, and why; `None` if one is available or being probed.
    pub(crate) fn closed(&self, model: &str, now: Timestamp) -> Option<(Timestamp, FailureClass)> {
        let mut first: Option<(Timestamp, FailureClass)> = None;
        for slot in self.slots.iter().filter(|slot| !slot.retired) {
            let Well::No { until, class } = slot.well(model, now) else {
                return None;
            };
            if first.is_none_or(|(earliest, _)| until < earliest) {
                first = Some((until, class));
            }
        }
        first
    }

    /// Another credential that is available for this model.
    pub(crate) fn other(&self, than: Index, model: &str, now: Timestamp) -> Option<&str> {
        let well = self.slots.iter().enumerate().filter(|(index, slot)| {
            *index != than && !slot.retired && matches!(slot.well(model, now), Well::Yes | Well::Probe)
        });
        let (_, slot) = well.min_by_key(|(_, slot)| (slot.running, slot.last_used))?;
        slot.name.as_deref()
    }

    /// A person reports that the problem with a model is solved: one call per credential probes.
    pub(crate) fn try_again(&mut self, model: &str, now: Timestamp) {
        let accounts = self
            .slots
            .iter_mut()
            .filter_map(|slot| slot.accounts.get_mut(model));
        accounts.for_each(|account| account.health.try_again(now));
    }

    /// Records the start of a call. Returns whether it probes the credential.
    pub(crate) fn went(&mut self, call: &Call<'_>, charge: &Charge, now: Timestamp) -> bool {
        self.used += 1;
        let used = self.used;
        let Some(slot) = self.slots.get_mut(call.credential) else {
            return false;
        };
        slot.running = slot.running.saturating_add(1);
        slot.last_used = used;
        if !slot.accounts.contains_key(call.model) {
            slot.accounts.insert(call.model.to_owned(), Account::default());
        }
        slot.change(call.model, charge, &Charge::default(), now);
        let account = slot.accounts.get_mut(call.model);
        account.is_some_and(|account| account.health.went(call.number))
    }

    /// Records the end of a call: returns its permit and the difference between estimate and use, and learns the limits
    /// that the server reported.
    pub(crate) fn came_back(
        &mut self,
        call: &Call<'_>,
        (estimate, used): (&Charge, &Charge),
        rates: &Rates,
        now: Timestamp,
    ) {
        let Some(slot) = self.slots.get_mut(call.credential) else {
            return;
        };
        slot.running = slot.running.saturating_sub(1);
        slot.change(call.model, used, estimate, now);
        if let Some(account) = slot.accounts.get_mut(call.model) {
            account.learned.learn(rates, now);
        }
    }

    /// Records that the server accepted a call: the credential works.
    pub(crate) fn succeeded(&mut self, call: &Call<'_>) {
        if let Some(account) = self.account(call) {
            account.health.succeeded(call.number);
        }
    }

    /// Records a complete answer.
    pub(crate) fn answered(&mut self, call: &Call<'_>) {
        self.succeeded(call);
        if let Some(slot) = self.slots.get_mut(call.credential) {
            slot.window.answered();
        }
    }

    /// Records the end of a call that says nothing about the credential.
    pub(crate) fn ended(&mut self, call: &Call<'_>, now: Timestamp) {
        if let Some(account) = self.account(call) {
            account.health.ended(call.number, now);
        }
    }

    /// Records a failure of the credential. Returns the length of the cooldown, if it is new.
    pub(crate) fn failed(
        &mut self,
        call: &Call<'_>,
        class: FailureClass,
        wish_ms: Option<u64>,
        now: Timestamp,
    ) -> Option<u64> {
        let cooldowns = self.cooldowns;
        let numbers = (call.number, call.next);
        if class == FailureClass::RateLimited
            && let Some(slot) = self.slots.get_mut(call.credential)
        {
            // The failed call was already subtracted.
            let running = slot.running.saturating_add(1);
            slot.window.limited(numbers, running);
        }
        let account = self.account(call)?;
        account.health.failed(numbers, class, wish_ms, &cooldowns, now)
    }

    /// The health of each credential for each model that was ever called.
    pub(crate) fn told(&self, now: Timestamp) -> Vec<(String, CredentialStatus)> {
        let mut told: Vec<_> = self
            .slots
            .iter()
            .filter(|slot| !slot.retired)
            .flat_map(|slot| {
                slot.accounts.iter().map(|(model, account)| {
                    let (health, until, class, failures) = account.health.told(now);
                    let status = CredentialStatus {
                        name: slot.name.clone().unwrap_or_else(|| NAMELESS.to_owned()),
                        health,
                        running: slot.running,
                        until,
                        class,
                        failures,
                        buckets: slot.configured.told(&account.learned, now),
                    };
                    (model.clone(), status)
                })
            })
            .collect();
        told.sort_by(|(a, _), (b, _)| a.cmp(b));
        told
    }

    /// All models that were ever called.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        self.slots
            .iter()
            .flat_map(|slot| slot.accounts.keys().map(String::as_str))
    }

    fn account(&mut self, call: &Call<'_>) -> Option<&mut Account> {
        self.slots.get_mut(call.credential)?.accounts.get_mut(call.model)
    }
}

#[cfg(test)]
mod tests;
