//! Admission when all connections are taken: a new connection replaces an idle one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The maximum number of connections beyond the seats that may still be closing.
const CLOSING: usize = 64;

/// How the seats are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// All seats.
    pub most: usize,
    /// The seats, at most half of all, for clients that hold none yet.
    pub reserved: usize,
    /// The seats that connections without a greeting may hold together.
    pub strangers: usize,
    /// How long a connection without a greeting cannot be replaced.
    pub grace: Duration,
}

/// A connection as seen by admission.
#[derive(Debug)]
struct Occupant<K> {
    client: K,
    greeted: bool,
    /// Requests in flight and subscriptions.
    work: usize,
    /// Requests of which the client has still to send a part.
    reading: usize,
    since: Instant,
    close: Arc<Notify>,
    closing: bool,
}

impl<K> Occupant<K> {
    /// When another connection may replace it; `None` while it is busy.
    fn replaceable(&self, grace: Duration) -> Option<Instant> {
        if self.closing || (self.work > 0 && self.reading == 0) {
            return None;
        }
        Some(if self.greeted {
            self.since
        } else {
            self.since + grace
        })
    }
}

#[derive(Debug)]
struct Table<K> {
    occupants: BTreeMap<u64, Occupant<K>>,
    next: u64,
}

/// All connections. `K` tells clients apart.
#[derive(Debug)]
pub struct Seats<K> {
    shares: Shares,
    table: Mutex<Table<K>>,
    /// A seat may have become available.
    changed: Notify,
}

impl<K: Ord> Seats<K> {
    /// Seats without occupants.
    #[must_use]
    pub fn new(shares: Shares) -> Arc<Self> {
        let most = shares.most.max(1);
        let shares = Shares {
            most,
            reserved: shares.reserved.min(most / 2),
            strangers: shares.strangers.clamp(1, most),
            ..shares
        };
        Arc::new(Self {
            shares,
            table: Mutex::new(Table {
                occupants: BTreeMap::new(),
                next: 0,
            }),
            changed: Notify::new(),
        })
    }

    /// Takes a seat for a connection of a client; `None` while all others are busy.
    pub fn take(self: &Arc<Self>, client: K) -> Option<Seat<K>> {
        let mut table = self.lock();
        table.make_room(self.shares, &client).ok()?;
        Some(self.sit(&mut table, client))
    }

    /// Takes a seat for a connection of a client, as soon as there is one.
    pub async fn wait(self: &Arc<Self>, client: K) -> Seat<K> {
        loop {
            let due = {
                let mut table = self.lock();
                match table.make_room(self.shares, &client) {
                    Ok(()) => return self.sit(&mut table, client),
                    Err(Full { due }) => due,
                }
            };
            let due = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = due => {}
            }
        }
    }

    fn sit(self: &Arc<Self>, table: &mut Table<K>, client: K) -> Seat<K> {
        let id = table.next;
        table.next += 1;
        let close = Arc::new(Notify::new());
        let occupant = Occupant {
            client,
            greeted: false,
            work: 0,
            reading: 0,
            since: Instant::now(),
            close: Arc::clone(&close),
            closing: false,
        };
        table.occupants.insert(id, occupant);
        Seat {
            id,
            seats: Arc::clone(self),
            close,
        }
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Occupant<K>)) {
        if let Some(occupant) = self.lock().occupants.get_mut(&id) {
            change(occupant);
        }
        self.changed.notify_one();
    }
}

impl<K> Seats<K> {
    fn lock(&self) -> MutexGuard<'_, Table<K>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// There is no seat: until `due`, if no occupant leaves or changes.
struct Full {
    due: Option<Instant>,
}

impl<K: Ord> Table<K> {
    /// Tells an occupant to leave if there is no free seat for a connection of this client.
    fn make_room(&mut self, shares: Shares, client: &K) -> Result<(), Full> {
        let (mut taken, mut strangers, mut own) = (0, 0, false);
        for occupant in self.occupants.values().filter(|occupant| !occupant.closing) {
            taken += 1;
            strangers += usize::from(!occupant.greeted);
            own |= occupant.client == *client;
        }
        let open = if own {
            shares.most - shares.reserved
        } else {
            shares.most
        };
        if taken < open && strangers < shares.strangers {
            return Ok(());
        }
        if self.occupants.len() - taken >= CLOSING {
            return Err(Full { due: None });
        }
        let victim = self.idlest(shares.grace)?;
        if let Some(occupant) = self.occupants.get_mut(&victim) {
            occupant.closing = true;
            occupant.close.notify_one();
        }
        Ok(())
    }

    /// The connection to close: first those without a greeting, then those of the client that holds the most, then the
    /// oldest.
    fn idlest(&self, grace: Duration) -> Result<u64, Full> {
        let mut held: BTreeMap<&K, usize> = BTreeMap::new();
        for occupant in self.occupants.values().filter(|occupant| !occupant.closing) {
            *held.entry(&occupant.client).or_default() += 1;
        }
        let rank = |occupant: &Occupant<K>| {
            (
                occupant.greeted,
                Reverse(held.get(&occupant.client).copied()),
                occupant.since,
            )
        };
        let now = Instant::now();
        let (mut first, mut due): (Option<(&u64, &Occupant<K>)>, Option<Instant>) = (None, None);
        for (id, occupant) in &self.occupants {
            match occupant.replaceable(grace) {
                Some(when) if when <= now => match first {
                    Some((_, other)) if rank(other) <= rank(occupant) => {}
                    _ => first = Some((id, occupant)),
                },
                Some(when) => due = Some(due.map_or(when, |due| due.min(when))),
                None => {}
            }
        }
        first.map(|(id, _)| *id).ok_or(Full { due })
    }
}

/// A connection's seat; dropping it frees the seat.
#[derive(Debug)]
pub struct Seat<K> {
    id: u64,
    seats: Arc<Seats<K>>,
    close: Arc<Notify>,
}

impl<K: Ord> Seat<K> {
    /// Records that the client has said who it is.
    pub fn greeted(&self) {
        self.seats.change(self.id, |occupant| {
            occupant.greeted = true;
            occupant.since = Instant::now();
        });
    }

    /// Records that the connection belongs to this client, which has proved it.
    pub fn belongs_to(&self, client: K) {
        self.seats.change(self.id, |occupant| {
            occupant.client = client;
            occupant.greeted = true;
            occupant.since = Instant::now();
        });
    }

    /// Marks the connection as busy until the returned value is dropped.
    pub fn work(self: &Arc<Self>) -> Work<K> {
        self.seats.change(self.id, |occupant| {
            occupant.work += 1;
            occupant.since = Instant::now();
        });
        Work(Arc::clone(self))
    }

    /// Marks the connection as waiting for its client until the returned value is dropped. It can be replaced, although it
    /// has work.
    pub fn reading(self: &Arc<Self>) -> Reading<K> {
        self.seats.change(self.id, |occupant| occupant.reading += 1);
        Reading(Arc::clone(self))
    }
}

impl<K> Seat<K> {
    /// Waits until another connection needs the seat.
    pub async fn wanted(&self) {
        self.close.notified().await;
    }
}

impl<K> Drop for Seat<K> {
    fn drop(&mut self) {
        self.seats.lock().occupants.remove(&self.id);
        self.seats.changed.notify_one();
    }
}

/// A request in flight or a subscription.
#[derive(Debug)]
pub struct Work<K: Ord>(Arc<Seat<K>>);

impl<K: Ord> Drop for Work<K> {
    fn drop(&mut self) {
        let seat = &self.0;
        seat.seats.change(seat.id, |occupant| {
            occupant.work = occupant.work.saturating_sub(1);
            occupant.since = Instant::now();
        });
    }
}

/// A request that its client is still sending.
#[derive(Debug)]
pub struct Reading<K: Ord>(Arc<Seat<K>>);

impl<K: Ord> Drop for Reading<K> {
    fn drop(&mut self) {
        let seat = &self.0;
        seat.seats.change(seat.id, |occupant| {
            occupant.reading = occupant.reading.saturating_sub(1);
        });
    }
}

#[cfg(test)]
mod tests;
