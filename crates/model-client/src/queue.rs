//! The queue of waiting calls, which chooses the next one. Pure.
//!
//! Interactive calls go before background calls, which still get a share. Within a lane, groups share by weight: each has
//! a virtual time that advances by one over its weight with every call, and the least goes next. Within a group, sessions
//! take turns; within a session, calls go in order. A group that was idle or held up continues at the current virtual
//! time, so it saves nothing up.

use crate::line::Line;
use agentd_actor_kit::{Ask, Lane};
use agentd_protocol::SessionId;
use agentd_store::{BACKGROUND_EVERY, Share};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A waiting call. `T` is where the answer is delivered.
#[derive(Debug)]
pub(crate) struct Waiter<T> {
    pub(crate) ask: Ask,
    pub(crate) place: T,
}

/// A choice of the next call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) lane: Lane,
    pub(crate) group: Arc<str>,
    pub(crate) model: Arc<str>,
    /// The groups before it that are held up.
    passed_over: Vec<Arc<str>>,
}

/// All calls that wait for one provider.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    interactive: Line<T>,
    background: Line<T>,
    /// One call in this many is a background call, if any wait.
    background_every: u32,
    /// Consecutive interactive calls while background calls were waiting.
    in_a_row: u32,
    waiting: usize,
    most: usize,
    /// The number of waiting calls for each model.
    models: BTreeMap<Arc<str>, usize>,
    /// The lane, group and model of a session's last waiting call.
    homes: HashMap<SessionId, (Lane, Arc<str>, Arc<str>)>,
}

impl<T> Queue<T> {
    pub(crate) fn new(weights: &BTreeMap<String, f64>, most: u32) -> Self {
        Self {
            interactive: Line::new(weights),
            background: Line::new(weights),
            background_every: BACKGROUND_EVERY,
            in_a_row: 0,
            waiting: 0,
            most: usize::try_from(most.max(1)).unwrap_or(usize::MAX),
            models: BTreeMap::new(),
            homes: HashMap::new(),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.waiting
    }

    /// The lanes and groups with waiting calls, and how many wait.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Lane, &Arc<str>, usize)> {
        [Lane::Interactive, Lane::Background]
            .into_iter()
            .flat_map(|lane| {
                self.lane(lane)
                    .groups()
                    .map(move |(group, waiting)| (lane, group, waiting))
            })
    }

    /// The configured weight of a group in thousandths.
    pub(crate) fn weight(&self, group: &str) -> u32 {
        self.interactive.weight(group)
    }

    /// Shares between lanes and groups as this node of a fleet has to; groups that are not named have the configured weights.
    pub(crate) fn weigh(&mut self, share: &Share) {
        self.background_every = share.background_every.max(2);
        for lane in [Lane::Interactive, Lane::Background] {
            let own = share
                .weights
                .iter()
                .filter(|want| want.background == (lane == Lane::Background));
            self.lane_mut(lane).weigh(own);
        }
    }

    /// The models with waiting calls.
    pub(crate) fn models(&self) -> impl Iterator<Item = &Arc<str>> {
        self.models.keys()
    }

    /// Adds a waiter; returns it if the queue is full.
    pub(crate) fn line_up(&mut self, waiter: Waiter<T>) -> Result<(), Waiter<T>> {
        if self.waiting >= self.most {
            return Err(waiter);
        }
        let (lane, session) = (waiter.ask.lane, waiter.ask.session);
        let (group, model) = self.lane_mut(lane).push(waiter);
        *self.models.entry(Arc::clone(&model)).or_default() += 1;
        self.homes.insert(session, (lane, group, model));
        self.waiting += 1;
        Ok(())
    }

    /// Chooses the next call, skipping models that are held up.
    pub(crate) fn pick(&self, held: &BTreeSet<Arc<str>>) -> Option<Pick> {
        let order = if self.in_a_row + 1 >= self.background_every {
            [Lane::Background, Lane::Interactive]
        } else {
            [Lane::Interactive, Lane::Background]
        };
        order.into_iter().find_map(|lane| {
            let (group, model, passed_over) = self.lane(lane).pick(held)?;
            Some(Pick {
                lane,
                group,
                model,
                passed_over,
            })
        })
    }

    /// The call behind a pick.
    pub(crate) fn front(&self, pick: &Pick) -> Option<&Ask> {
        self.lane(pick.lane).front(&pick.group, &pick.model)
    }

    /// Removes the picked call and counts it as served.
    pub(crate) fn take(&mut self, pick: &Pick) -> Option<Waiter<T>> {
        let line = self.lane_mut(pick.lane);
        let waiter = line.take(&pick.group, &pick.model)?;
        line.served(&pick.group, &pick.passed_over);
        self.in_a_row = match pick.lane {
            Lane::Interactive if !self.background.is_empty() => self.in_a_row + 1,
            Lane::Interactive | Lane::Background => 0,
        };
        self.left(&waiter.ask);
        Some(waiter)
    }

    /// Removes the picked call if its caller is gone: it does not count as served, and no session loses a turn.
    pub(crate) fn take_gone(&mut self, pick: &Pick, gone: fn(&T) -> bool) -> Option<Waiter<T>> {
        let line = self.lane_mut(pick.lane);
        let waiter = line.take_gone(&pick.group, &pick.model, gone)?;
        self.left(&waiter.ask);
        Some(waiter)
    }

    /// Removes any call that waits for this model, in roughly the order of admission.
    pub(crate) fn take_any(&mut self, model: &str) -> Option<Waiter<T>> {
        let waiter = [Lane::Interactive, Lane::Background]
            .into_iter()
            .find_map(|lane| {
                let line = self.lane_mut(lane);
                let group = line.first_with(model)?;
                line.take(&group, model)
            })?;
        self.left(&waiter.ask);
        Some(waiter)
    }

    /// The position of a session's last call, from 1, and the first call of the same group and model.
    pub(crate) fn position(&self, session: SessionId) -> Option<(usize, &Ask)> {
        let (lane, group, model) = self.homes.get(&session)?;
        let line = self.lane(*lane);
        let own = line.position(group, model, session)?;
        let others = match lane {
            Lane::Interactive => 0,
            Lane::Background => {
                let share = own.saturating_mul(self.background_every as usize - 1);
                self.interactive.len().min(share)
            }
        };
        let position = own.saturating_add(others).min(self.waiting);
        Some((position, line.front(group, model)?))
    }

    fn left(&mut self, ask: &Ask) {
        self.waiting = self.waiting.saturating_sub(1);
        if let Some(count) = self.models.get_mut(ask.model.as_str()) {
            *count -= 1;
            if *count == 0 {
                self.models.remove(ask.model.as_str());
            }
        }
        if let Some((lane, group, model)) = self.homes.get(&ask.session)
            && !self.lane(*lane).has(group, model, ask.session)
        {
            self.homes.remove(&ask.session);
        }
    }

    const fn lane(&self, lane: Lane) -> &Line<T> {
        match lane {
            Lane::Interactive => &self.interactive,
            Lane::Background => &self.background,
        }
    }

    const fn lane_mut(&mut self, lane: Lane) -> &mut Line<T> {
        match lane {
            Lane::Interactive => &mut self.interactive,
            Lane::Background => &mut self.background,
        }
    }
}

#[cfg(test)]
mod tests;
