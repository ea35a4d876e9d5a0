//! Who waits, and who goes next. Pure.
//!
//! Interactive calls go before background ones, which still get a share. In a lane, groups share by weight (each has a
//! virtual time that advances by one over its weight with every call; the least goes next), in a group sessions take
//! turns, in a session it is first come, first served. A group that was idle or held up starts at the present virtual time:
//! nothing is saved up.

use crate::line::Line;
use agentd_actor_kit::{Ask, Lane};
use agentd_protocol::SessionId;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Of so many calls one is a background call, when there are any.
const BACKGROUND_EVERY: u32 = 16;

/// Somebody who waits. `T` is where the answer is delivered.
#[derive(Debug)]
pub(crate) struct Waiter<T> {
    pub(crate) ask: Ask,
    pub(crate) place: T,
}

/// Who would go next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pick {
    lane: Lane,
    group: Arc<str>,
    pub(crate) model: Arc<str>,
    /// Groups before it that are held up.
    passed_over: Vec<Arc<str>>,
}

/// All who wait at one provider.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    interactive: Line<T>,
    background: Line<T>,
    /// Interactive calls in a row while background calls waited.
    in_a_row: u32,
    waiting: usize,
    most: usize,
    /// How many wait for each model.
    models: BTreeMap<Arc<str>, usize>,
    /// Where a session's last call waits.
    homes: HashMap<SessionId, (Lane, Arc<str>, Arc<str>)>,
}

impl<T> Queue<T> {
    pub(crate) fn new(weights: &BTreeMap<String, f64>, most: u32) -> Self {
        Self {
            interactive: Line::new(weights),
            background: Line::new(weights),
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

    /// The models that somebody waits for.
    pub(crate) fn models(&self) -> impl Iterator<Item = &Arc<str>> {
        self.models.keys()
    }

    /// Lines somebody up; gives it back when the queue is full.
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

    /// Who goes next, among those whose model is not held up.
    pub(crate) fn pick(&self, held: &BTreeSet<Arc<str>>) -> Option<Pick> {
        let order = if self.in_a_row + 1 >= BACKGROUND_EVERY {
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

    /// The call that a pick stands for.
    pub(crate) fn front(&self, pick: &Pick) -> Option<&Ask> {
        self.lane(pick.lane).front(&pick.group, &pick.model)
    }

    /// Takes a pick out and counts it as served.
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

    /// Takes a pick out when it is gone: it is not served, and nobody loses a turn by it.
    pub(crate) fn take_gone(&mut self, pick: &Pick, gone: fn(&T) -> bool) -> Option<Waiter<T>> {
        let line = self.lane_mut(pick.lane);
        let waiter = line.take_gone(&pick.group, &pick.model, gone)?;
        self.left(&waiter.ask);
        Some(waiter)
    }

    /// Takes anybody out who waits for this model, in about the order in which they would go.
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

    /// Where the last call of a session stands, from 1, and which call is before all others of its kind.
    pub(crate) fn position(&self, session: SessionId) -> Option<(usize, &Ask)> {
        let (lane, group, model) = self.homes.get(&session)?;
        let line = self.lane(*lane);
        let own = line.position(group, model, session)?;
        let others = match lane {
            Lane::Interactive => 0,
            Lane::Background => {
                let share = own.saturating_mul(BACKGROUND_EVERY as usize - 1);
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
