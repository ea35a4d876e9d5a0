//! One lane of the queue: groups share by weight, and the sessions of a group take turns. Pure.

use crate::queue::Waiter;
use agentd_actor_kit::Ask;
use agentd_protocol::SessionId;
use agentd_store::Want;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// The cost of one call to a group of weight 0.001, in virtual time.
const UNIT: u64 = 1_000 << 20;
/// Idle groups are forgotten above this number of groups.
const MANY_GROUPS: usize = 1_024;

/// The waiters of one group for one model: sessions take turns, and each keeps the order of its own calls.
#[derive(Debug)]
struct Ring<T> {
    /// Sorted by turn number.
    turns: VecDeque<(u64, SessionId)>,
    sessions: HashMap<SessionId, (u64, VecDeque<Waiter<T>>)>,
}

impl<T> Ring<T> {
    fn new() -> Self {
        Self {
            turns: VecDeque::new(),
            sessions: HashMap::new(),
        }
    }

    fn push(&mut self, waiter: Waiter<T>, turn: u64) {
        let session = waiter.ask.session;
        let (_, own) = self.sessions.entry(session).or_insert_with(|| {
            self.turns.push_back((turn, session));
            (turn, VecDeque::new())
        });
        own.push_back(waiter);
    }

    fn front(&self) -> Option<(u64, &Waiter<T>)> {
        let (turn, session) = self.turns.front()?;
        Some((*turn, self.sessions.get(session)?.1.front()?))
    }

    fn take(&mut self, next_turn: u64) -> Option<Waiter<T>> {
        let (_, session) = self.turns.pop_front()?;
        let (turn, own) = self.sessions.get_mut(&session)?;
        let waiter = own.pop_front();
        if own.is_empty() {
            self.sessions.remove(&session);
        } else {
            *turn = next_turn;
            self.turns.push_back((next_turn, session));
        }
        waiter
    }

    /// Removes the next waiter if its caller is gone. Its session keeps its turn.
    fn take_gone(&mut self, gone: fn(&T) -> bool) -> Option<Waiter<T>> {
        let (_, session) = self.turns.front()?;
        let (_, own) = self.sessions.get_mut(session)?;
        let waiter = own.pop_front_if(|waiter| gone(&waiter.place))?;
        if own.is_empty() {
            self.sessions.remove(session);
            self.turns.pop_front();
        }
        Some(waiter)
    }

    /// The position of a session, from 0.
    fn index(&self, session: SessionId) -> Option<usize> {
        let (turn, _) = self.sessions.get(&session)?;
        self.turns.binary_search_by_key(turn, |(turn, _)| *turn).ok()
    }
}

/// The next group and model, and the groups before it that are held up.
pub(crate) type Next = (Arc<str>, Arc<str>, Vec<Arc<str>>);

#[derive(Debug)]
struct Group<T> {
    /// Its virtual time: the group with the least goes next.
    time: u64,
    step: u64,
    waiting: usize,
    /// By model; never empty.
    rings: BTreeMap<Arc<str>, Ring<T>>,
}

/// One lane.
#[derive(Debug)]
pub(crate) struct Line<T> {
    /// The configured weights.
    weights: BTreeMap<String, f64>,
    /// The weights that replace them on this node of a fleet, in thousandths.
    shares: HashMap<String, u32>,
    groups: BTreeMap<Arc<str>, Group<T>>,
    /// Groups with waiters, by their virtual time.
    order: BTreeSet<(u64, Arc<str>)>,
    /// The virtual time of the last served group.
    now: u64,
    waiting: usize,
    turns: u64,
    /// The number of groups left by the last clean-up.
    kept: usize,
}

impl<T> Line<T> {
    pub(crate) fn new(weights: &BTreeMap<String, f64>) -> Self {
        Self {
            weights: weights.clone(),
            shares: HashMap::new(),
            groups: BTreeMap::new(),
            order: BTreeSet::new(),
            now: 0,
            waiting: 0,
            turns: 0,
            kept: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The groups with waiters, and how many they have.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        let waiting = self.groups.iter().filter(|(_, group)| group.waiting > 0);
        waiting.map(|(name, group)| (name, group.waiting))
    }

    /// The configured weight of a group in thousandths.
    pub(crate) fn weight(&self, group: &str) -> u32 {
        thousandths(self.weights.get(group).copied().unwrap_or(1.0))
    }

    /// Sets the weights that count on this node of a fleet.
    pub(crate) fn weigh<'a>(&mut self, weights: impl Iterator<Item = &'a Want>) {
        let shares = weights.map(|want| (want.group.clone(), want.weight)).collect();
        if self.shares != shares {
            self.shares = shares;
            let names: Vec<Arc<str>> = self.groups.keys().cloned().collect();
            for name in names {
                let step = self.step(&name);
                if let Some(group) = self.groups.get_mut(&name) {
                    group.step = step;
                }
            }
        }
    }

    /// The cost of one call to a group, in virtual time.
    fn step(&self, group: &str) -> u64 {
        let weight = self.shares.get(group).copied();
        (UNIT / u64::from(weight.unwrap_or_else(|| self.weight(group)).max(1))).max(1)
    }

    /// Adds a waiter; returns its group and model.
    pub(crate) fn push(&mut self, waiter: Waiter<T>) -> (Arc<str>, Arc<str>) {
        self.forget();
        let turn = self.turn();
        let name = match self.groups.get_key_value(waiter.ask.group.as_str()) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(waiter.ask.group.as_str()),
        };
        let (now, step) = (self.now, self.step(&name));
        let group = self.groups.entry(Arc::clone(&name)).or_insert_with(|| Group {
            time: now,
            step,
            waiting: 0,
            rings: BTreeMap::new(),
        });
        if group.waiting == 0 {
            group.time = group.time.max(now);
            self.order.insert((group.time, Arc::clone(&name)));
        }
        group.waiting += 1;
        self.waiting += 1;
        let model = match group.rings.get_key_value(waiter.ask.model.as_str()) {
            Some((model, _)) => Arc::clone(model),
            None => Arc::from(waiter.ask.model.as_str()),
        };
        group
            .rings
            .entry(Arc::clone(&model))
            .or_insert_with(Ring::new)
            .push(waiter, turn);
        (name, model)
    }

    /// The next group and model, skipping models that are held up.
    pub(crate) fn pick(&self, held: &BTreeSet<Arc<str>>) -> Option<Next> {
        let mut passed_over = Vec::new();
        for (_, name) in &self.order {
            let rings = self.groups.get(name)?.rings.iter();
            let first = rings
                .filter(|(model, _)| !held.contains(*model))
                .filter_map(|(model, ring)| Some((ring.front()?.0, model)))
                .min();
            match first {
                Some((_, model)) => return Some((Arc::clone(name), Arc::clone(model), passed_over)),
                None => passed_over.push(Arc::clone(name)),
            }
        }
        None
    }

    /// The first group, in order of turns, with a waiter for this model.
    pub(crate) fn first_with(&self, model: &str) -> Option<Arc<str>> {
        let has = |name: &Arc<str>| {
            self.groups
                .get(name)
                .is_some_and(|group| group.rings.contains_key(model))
        };
        self.order
            .iter()
            .map(|(_, name)| name)
            .find(|name| has(name))
            .cloned()
    }

    pub(crate) fn front(&self, group: &str, model: &str) -> Option<&Ask> {
        let (_, waiter) = self.groups.get(group)?.rings.get(model)?.front()?;
        Some(&waiter.ask)
    }

    pub(crate) fn has(&self, group: &str, model: &str, session: SessionId) -> bool {
        let ring = self.groups.get(group).and_then(|group| group.rings.get(model));
        ring.is_some_and(|ring| ring.sessions.contains_key(&session))
    }

    /// Removes the next waiter of this group and model.
    pub(crate) fn take(&mut self, name: &Arc<str>, model: &str) -> Option<Waiter<T>> {
        let turn = self.turn();
        self.remove(name, model, |ring| ring.take(turn))
    }

    /// Removes the next waiter of this group and model if its caller is gone.
    pub(crate) fn take_gone(
        &mut self,
        name: &Arc<str>,
        model: &str,
        gone: fn(&T) -> bool,
    ) -> Option<Waiter<T>> {
        self.remove(name, model, |ring| ring.take_gone(gone))
    }

    fn remove(
        &mut self,
        name: &Arc<str>,
        model: &str,
        take: impl FnOnce(&mut Ring<T>) -> Option<Waiter<T>>,
    ) -> Option<Waiter<T>> {
        let group = self.groups.get_mut(name)?;
        let ring = group.rings.get_mut(model)?;
        let waiter = take(ring)?;
        if ring.turns.is_empty() {
            group.rings.remove(model);
        }
        group.waiting = group.waiting.saturating_sub(1);
        self.waiting = self.waiting.saturating_sub(1);
        if group.waiting == 0 {
            self.order.remove(&(group.time, Arc::clone(name)));
        }
        Some(waiter)
    }

    /// Charges a call to a group. Groups that were passed over are held up: their time advances all the same.
    pub(crate) fn served(&mut self, name: &Arc<str>, passed_over: &[Arc<str>]) {
        let Some(group) = self.groups.get(name) else {
            return;
        };
        self.now = self.now.max(group.time);
        let (now, later) = (self.now, group.time.saturating_add(group.step));
        self.retime(name, later);
        for name in passed_over {
            self.retime(name, now);
        }
    }

    /// The approximate position of a session, from 1: the waiters of its own group before it, and those that each other
    /// group may send in that time, by its weight.
    pub(crate) fn position(&self, name: &str, model: &str, session: SessionId) -> Option<usize> {
        let group = self.groups.get(name)?;
        let index = group.rings.get(model)?.index(session)?;
        let before = |other: &Group<T>| {
            let time = u128::from(group.time) + u128::from(group.step) * index as u128;
            let gap = time.saturating_sub(u128::from(other.time));
            let turns = gap.div_ceil(u128::from(other.step));
            usize::try_from(turns).unwrap_or(usize::MAX).min(other.waiting)
        };
        let others = self.order.iter().filter(|(_, other)| **other != *name);
        let others = others.filter_map(|(_, other)| self.groups.get(other));
        Some(others.map(before).sum::<usize>().saturating_add(index + 1))
    }

    fn retime(&mut self, name: &Arc<str>, time: u64) {
        if let Some(group) = self.groups.get_mut(name) {
            if group.waiting > 0 {
                self.order.remove(&(group.time, Arc::clone(name)));
                self.order.insert((time, Arc::clone(name)));
            }
            group.time = time;
        }
    }

    /// Forgets idle groups, except those whose time is ahead: leaving and returning must not be an advantage. If very
    /// many remain, it forgets those, too: each made few calls, so one free call does no harm. It runs again only when the
    /// number of groups has doubled, so that a single call does not pay for all groups.
    fn forget(&mut self) {
        if self.groups.len() <= MANY_GROUPS.max(2 * self.kept) {
            return;
        }
        let now = self.now;
        self.groups
            .retain(|_, group| group.waiting > 0 || group.time > now);
        if self.groups.len() > 2 * MANY_GROUPS {
            self.groups.retain(|_, group| group.waiting > 0);
        }
        self.kept = self.groups.len();
    }

    const fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}

/// A weight in thousandths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to a range that fits"
)]
fn thousandths(weight: f64) -> u32 {
    let weight = if weight.is_finite() { weight } else { 1.0 };
    (weight.clamp(0.001, 1_000.0) * 1_000.0).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_actor_kit::Lane;

    #[test]
    fn groups_that_come_once_are_forgotten() {
        let mut line = Line::new(&BTreeMap::new());
        let mut most = 0;
        for number in 0..20_000_u64 {
            let ask = Ask {
                session: SessionId::from_parts(number, [0; 10]),
                model: "m".to_owned(),
                credential: None,
                group: format!("team {number}"),
                lane: Lane::Interactive,
                input_tokens: 0,
                output_tokens: 0,
                insists: false,
            };
            let (group, model) = line.push(Waiter { ask, place: () });
            assert!(line.take(&group, &model).is_some());
            line.served(&group, &[]);
            most = most.max(line.groups.len());
        }
        assert!(most <= 4 * MANY_GROUPS + 1, "{most}");
    }
}
