//! The store's table of nodes and owners: what PostgreSQL decides in `crates/store-postgres` (`schema/1.sql`, `fleet.rs`),
//! on the store's own clock. The fencing of appends itself is that of the real store in memory.

use crate::options::Flaw;
use agentd_protocol::{Placing, SessionId};
use agentd_store::{Beat, StoreError};
use agentd_turn::{Held, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a silent node keeps its sessions.
pub(crate) const TTL_MS: u64 = 10_000;

/// One incarnation of a node.
#[derive(Debug)]
struct Row {
    name: u64,
    lease_until: u64,
    dead: bool,
    placing: Placing,
}

/// The place of a session.
#[derive(Debug)]
struct Place {
    owner: Option<u64>,
    /// The name of the node that claimed it last.
    node: Option<u64>,
    root: SessionId,
}

/// The table. Without incarnations it decides nothing: the store has one user.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    rows: BTreeMap<u64, Row>,
    places: BTreeMap<SessionId, Place>,
    /// When the server started.
    pub(crate) started: u64,
    /// Leases are longer by this: at rest, signs of life are rare, so that long waits are simulated fast.
    pub(crate) calm_ms: u64,
    flaw: Flaw,
}

impl Nodes {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            ..Self::default()
        }
    }

    /// `join_1`: an earlier incarnation with the same data directory has ended.
    pub(crate) fn join(&mut self, name: u64, now: u64) -> u64 {
        for row in self.rows.values_mut().filter(|row| row.name == name) {
            row.dead = true;
        }
        let id = self.rows.len() as u64 + 1;
        let row = Row {
            name,
            lease_until: now + TTL_MS + self.calm_ms,
            dead: false,
            placing: Placing::Open,
        };
        self.rows.insert(id, row);
        id
    }

    /// `RENEW` and `REAP`.
    pub(crate) fn beat(&mut self, me: u64, now: u64) -> Result<Beat, StoreError> {
        let row = self.rows.get_mut(&me).filter(|row| !row.dead);
        let row = row.ok_or(StoreError::NodeLost)?;
        row.lease_until = now + TTL_MS + self.calm_ms;
        let placing = row.placing;
        if now > self.started + TTL_MS {
            for (id, row) in &mut self.rows {
                row.dead |= *id != me && row.lease_until < now;
            }
        }
        let others = self.rows.iter().filter(|(id, row)| **id != me && !row.dead);
        let ends = others.filter_map(|(_, row)| row.lease_until.checked_sub(now));
        let next_end = ends.min().map(Duration::from_millis);
        Ok(Beat { placing, next_end })
    }

    /// Whether others took note of its end.
    pub(crate) fn is_dead(&self, id: u64) -> bool {
        self.rows.get(&id).is_none_or(|row| row.dead)
    }

    /// The first append of a session.
    pub(crate) fn created(&mut self, session: SessionId, parent: Option<SessionId>, me: Option<u64>) {
        let above = parent.and_then(|parent| self.places.get(&parent));
        let place = Place {
            owner: me,
            node: me.and_then(|me| self.rows.get(&me)).map(|row| row.name),
            root: above.map_or(session, |above| above.root),
        };
        self.places.entry(session).or_insert(place);
    }

    /// Another live node that has the session or a relative.
    fn holder(&self, session: SessionId, me: u64) -> Option<u64> {
        let root = self.places.get(&session)?.root;
        let family = self.places.values().filter(|place| place.root == root);
        let mut owners = family.filter_map(|place| place.owner);
        owners.find(|owner| *owner != me && !self.is_dead(*owner))
    }

    /// The name of that node.
    pub(crate) fn owner(&self, session: SessionId, me: u64) -> Option<u64> {
        let holder = self.holder(session, me)?;
        self.rows.get(&holder).map(|row| row.name)
    }

    pub(crate) fn is_mine(&self, session: SessionId, me: u64) -> bool {
        self.places
            .get(&session)
            .is_some_and(|place| place.owner == Some(me))
    }

    /// `claim_1`: returns whether the session comes from another node.
    pub(crate) fn claim(&mut self, session: SessionId, me: u64) -> Result<bool, StoreError> {
        let row = self.rows.get(&me).filter(|row| !row.dead);
        let name = row.ok_or(StoreError::NodeLost)?.name;
        if let Some(owner) = self.owner(session, me) {
            let node = owner.to_string();
            return Err(StoreError::Elsewhere { session, node });
        }
        let place = self.places.get_mut(&session);
        let place = place.ok_or(StoreError::NotFound(session))?;
        place.owner = Some(me);
        let before = place.node.replace(name);
        Ok(before.is_some_and(|before| before != name))
    }

    /// `adopt_1`: this node's share of the trees that continue by themselves (`awake`) and have no live owner. Returns the
    /// sessions that change hands.
    pub(crate) fn adopt(&mut self, me: u64, now: u64, awake: &[SessionId]) -> Vec<SessionId> {
        let open = |row: &&Row| !row.dead && row.placing == Placing::Open;
        if self.rows.get(&me).filter(open).is_none() {
            return Vec::new();
        }
        let nodes = self
            .rows
            .values()
            .filter(open)
            .filter(|row| row.lease_until > now)
            .count();
        let owned = awake.iter().filter(|session| self.is_mine(**session, me)).count();
        let share = awake.len().div_ceil(nodes.max(1)).saturating_sub(owned).max(1);
        let orphan = |session: &&SessionId| {
            let owner = self.places.get(session).and_then(|place| place.owner);
            let gone = owner.is_none_or(|owner| self.is_dead(owner)) && self.holder(**session, me).is_none();
            gone || (self.flaw == Flaw::AdoptLive && owner != Some(me))
        };
        let roots = awake
            .iter()
            .filter(orphan)
            .filter_map(|session| self.places.get(session));
        let roots: BTreeSet<SessionId> = roots.map(|place| place.root).collect();
        let chosen: BTreeSet<SessionId> = roots.into_iter().take(share).collect();
        let mut taken = Vec::new();
        for (session, place) in &mut self.places {
            if chosen.contains(&place.root) && place.owner != Some(me) {
                place.owner = Some(me);
                taken.push(*session);
            }
        }
        taken
    }

    /// `HAND_OVER`: gives up all sessions but these and their relatives.
    pub(crate) fn hand_over(&mut self, me: u64, keep: &[SessionId]) {
        let kept = keep.iter().filter_map(|session| self.places.get(session));
        let kept: BTreeSet<SessionId> = kept.map(|place| place.root).collect();
        for place in self.places.values_mut() {
            if place.owner == Some(me) && !kept.contains(&place.root) {
                place.owner = None;
            }
        }
    }

    /// Ends the membership.
    pub(crate) fn leave(&mut self, me: u64) {
        if let Some(row) = self.rows.get_mut(&me) {
            row.dead = true;
        }
    }

    pub(crate) fn place(&mut self, name: u64, placing: Placing) {
        for row in self.rows.values_mut().filter(|row| row.name == name && !row.dead) {
            row.placing = placing;
        }
    }

    /// I9: the sessions of a live node stay where they are. `owner` was the owner before.
    pub(crate) fn may_take(&self, owner: Option<u64>, me: u64) -> Held {
        match owner {
            Some(owner) if owner != me && !self.is_dead(owner) => {
                let what = format!("incarnation {me} takes a session of the live incarnation {owner}");
                Err(Violation::of("I9", what))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The owners of all sessions.
    pub(crate) fn owners(&self) -> BTreeMap<SessionId, Option<u64>> {
        let owners = self.places.iter();
        owners.map(|(session, place)| (*session, place.owner)).collect()
    }
}
