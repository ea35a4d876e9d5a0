//! Several nodes on one store, and what goes wrong with them: they stop for a while, are cut off from the store, and have
//! clocks that jump.

use crate::here::Node;
use crate::messages::{Happening, Message, Order};
use crate::nodes::TTL_MS;
use crate::options::Knob;
use crate::world::World;
use agentd_actor_kit::Published;
use agentd_protocol::Timestamp;
use agentd_store::{Append, Outcome, StoreError};
use agentd_turn::Violation;

/// How long the store may keep a request that does not arrive, until it is tried again.
pub(crate) const AGAIN_MS: u64 = 1_000;
/// The pause of a reader that cannot reach the store.
pub(crate) const READ_AGAIN_MS: u64 = 5_000;
/// When the nodes see what one has written.
const SEEN_MS: u64 = 100;
/// How much longer leases are at rest.
const CALM_MS: u64 = 60_000;
/// The longest jump of a wall clock.
const JUMP_MS: u64 = 120_000;

impl World {
    pub(crate) fn is_fleet(&self) -> bool {
        self.options.get(Knob::Nodes) > 1
    }

    /// Looks at another node.
    pub(crate) fn go_to(&mut self, number: u64) {
        if let Some(mut node) = self.others.remove(&number) {
            std::mem::swap(&mut node, &mut self.here);
            self.others.insert(node.number, node);
        }
        self.now = Timestamp(self.clock + self.here.ahead_ms);
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        std::iter::once(&self.here).chain(self.others.values())
    }

    /// A random node; the only one costs no random number.
    pub(crate) fn any_node(&mut self) -> u64 {
        match self.is_fleet() {
            true => self.dice.below(self.options.get(Knob::Nodes).into()),
            false => self.here.number,
        }
    }

    /// Whether the store cannot be reached from here.
    pub(crate) const fn is_cut(&self) -> bool {
        self.clock < self.here.cut_until || self.clock < self.disk.nodes.started
    }

    /// An append reaches the disk. Every node reads the log of the fleet.
    pub(crate) fn append(&mut self, append: Append, lose: bool) -> Result<Outcome, Violation> {
        let (session, events) = (append.session, append.events.clone());
        let outcome = self.disk.append(append, self.here.me(), lose)?;
        if let Outcome::Committed { cursor, .. } = outcome
            && self.is_fleet()
        {
            let eras: Vec<(u64, u64)> = self.nodes().map(|node| (node.number, node.era)).collect();
            for (number, era) in eras {
                let published = Published {
                    session,
                    cursor,
                    events: events.clone(),
                };
                self.post_at(number, SEEN_MS, Happening::Feed { era, published });
            }
        }
        Ok(outcome)
    }

    /// An append of a node that is cut off: it may arrive, but no answer does. The store's client tries it again.
    pub(crate) fn append_cut(&mut self, from: u64, append: Append, until: u64) {
        if self.dice.percent(20)
            && let Err(violation) = self.append(append.clone(), false)
        {
            return self.fail(violation);
        }
        if self.clock + AGAIN_MS < until {
            let (era, append) = (self.here.era, Box::new(append));
            let again = Happening::Disk {
                era,
                from,
                append,
                until,
            };
            self.post(AGAIN_MS, again);
        } else {
            self.here.feed.unsure(append.session);
            self.tell(from, 4, Message::Stored(Some(Outcome::Unknown)));
        }
    }

    /// A command reached a node, and another one has its session: it is passed on. False if there is no such node.
    pub(crate) fn pass_on(&mut self, order: &Order) -> bool {
        let me = self.here.me().filter(|_| order.message.is_none());
        let owner = me.and_then(|me| self.disk.nodes.owner(order.session, me));
        let Some(owner) = owner.filter(|_| !self.is_cut()) else {
            return false;
        };
        self.tickets.insert(order.ticket, Box::new(order.clone()));
        let after = self.dice.between(1, 20);
        self.post_at(owner, after, Happening::Send(Box::new(order.clone())));
        true
    }

    /// Something goes wrong with the node that the world looks at, or with the store. In the middle of every run, a busy
    /// node stops until the others have taken over its sessions: when it goes on, its appends must be refused.
    pub(crate) fn fleet_faults(&mut self) {
        if self.actions == self.options.get(Knob::Actions) / 2 {
            let busiest = self.nodes().max_by_key(|node| (node.loops.len(), node.number));
            let number = busiest.map_or(0, |node| node.number);
            self.go_to(number);
            return self.freeze(TTL_MS * 2);
        }
        let number = self.any_node();
        self.go_to(number);
        if self.chance(Knob::Freeze, 100) {
            let within = self.dice.between(1_000, TTL_MS * 3);
            self.freeze(within);
        }
        if self.chance(Knob::Cut, 100) {
            let within = self.dice.between(1_000, TTL_MS * 5);
            self.here.cut_until = self.clock + within;
            self.say_here(|| format!("is cut off for {within} ms"));
        }
        if self.chance(Knob::Restart, 100) {
            let within = self.dice.between(1_000, TTL_MS * 2);
            self.disk.nodes.started = self.clock + within;
            self.say(|| format!("the store restarts within {within} ms"));
        }
        if self.chance(Knob::Jump, 100) {
            self.here.ahead_ms = self.dice.below(JUMP_MS);
            self.now = Timestamp(self.clock + self.here.ahead_ms);
            self.say_here(|| "has another time".to_owned());
        }
    }

    fn freeze(&mut self, within: u64) {
        if self.here.alive && self.here.frozen.is_none() {
            self.say_here(|| format!("is stopped for {within} ms"));
            self.here.frozen = Some(Vec::new());
            let era = self.here.era;
            self.post(within, Happening::Thaw { era });
        }
    }

    /// A stopped node goes on, with all that has reached it.
    pub(crate) fn thaw(&mut self) {
        for happening in self.here.frozen.take().into_iter().flatten() {
            self.post(0, happening);
        }
        self.say_here(|| "goes on".to_owned());
    }

    /// Keeps what reaches a stopped node. Questions on their way reach the store even so.
    pub(crate) fn hold(&mut self, happening: Happening) -> Option<Happening> {
        let goes_on = matches!(
            happening,
            Happening::Disk { .. }
                | Happening::Asked { .. }
                | Happening::Thaw { .. }
                | Happening::Person
                | Happening::Calm
        );
        match &mut self.here.frozen {
            Some(held) if !goes_on => {
                held.push(happening);
                None
            }
            Some(_) | None => Some(happening),
        }
    }

    /// The reason why the fleet itself is not at rest.
    pub(crate) fn fleet_unrest(&self) -> Option<String> {
        let down = self.nodes().find(|node| !node.alive || node.frozen.is_some());
        if let Some(node) = down {
            return Some(format!("node {} is down", node.number));
        }
        let gone = |node: &&Node| node.me().is_some_and(|me| self.disk.nodes.is_dead(me));
        let gone = self.nodes().find(gone);
        gone.map(|node| format!("node {} is gone to the others", node.number))
    }

    /// The faults end.
    pub(crate) fn heal(&mut self) {
        self.disk.nodes.started = self.disk.nodes.started.min(self.clock);
        self.disk.nodes.calm_ms = CALM_MS;
        self.here.cut_until = 0;
        self.others.values_mut().for_each(|node| node.cut_until = 0);
    }
}

/// The store does not answer.
pub(crate) fn unreachable() -> StoreError {
    StoreError::Unreachable {
        server: "the store".to_owned(),
        why: "it does not answer".to_owned(),
    }
}
