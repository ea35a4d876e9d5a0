//! Admission when all connections are taken: a new connection replaces an idle one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The maximum number of connections beyond the seats that may still be closing.
const CLOSING: usize = 64;

/// A connection as seen by admission.
#[derive(Debug)]
struct Occupant {
    process: i32,
    greeted: bool,
    /// Requests in flight and subscriptions.
    work: usize,
    since: Instant,
    close: Arc<Notify>,
    closing: bool,
}

#[derive(Debug, Default)]
struct Table {
    occupants: BTreeMap<u64, Occupant>,
    next: u64,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Seats {
    most: usize,
    reserved: usize,
    table: Mutex<Table>,
}

impl Seats {
    /// `reserved` of the `most` seats, but at most half of them, are for processes that hold none yet.
    pub(crate) fn new(most: usize, reserved: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            reserved: reserved.min(most / 2),
            table: Mutex::default(),
        })
    }

    /// Takes a seat for a connection of a process; `None` while all others are busy.
    pub(crate) fn take(self: &Arc<Self>, process: i32) -> Option<Seat> {
        let mut table = self.lock();
        let held = table.held();
        let taken: usize = held.values().sum();
        let open = if held.contains_key(&process) {
            self.most - self.reserved
        } else {
            self.most
        };
        if taken >= open {
            let closing = table.occupants.len() - taken;
            let victim = table.idlest(&held).filter(|_| closing < CLOSING)?;
            let occupant = table.occupants.get_mut(&victim)?;
            occupant.closing = true;
            occupant.close.notify_one();
        }
        let id = table.next;
        table.next += 1;
        let close = Arc::new(Notify::new());
        let occupant = Occupant {
            process,
            greeted: false,
            work: 0,
            since: Instant::now(),
            close: Arc::clone(&close),
            closing: false,
        };
        table.occupants.insert(id, occupant);
        drop(table);
        Some(Seat {
            id,
            seats: Arc::clone(self),
            close,
        })
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Occupant)) {
        if let Some(occupant) = self.lock().occupants.get_mut(&id) {
            change(occupant);
            occupant.since = Instant::now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The number of seats that each process holds.
    fn held(&self) -> BTreeMap<i32, usize> {
        let mut held = BTreeMap::new();
        for occupant in self.occupants.values().filter(|occupant| !occupant.closing) {
            *held.entry(occupant.process).or_default() += 1;
        }
        held
    }

    /// The connection to close: first those without a hello, then those of the process that holds the most, then the oldest.
    fn idlest(&self, held: &BTreeMap<i32, usize>) -> Option<u64> {
        let idle = self
            .occupants
            .iter()
            .filter(|(_, occupant)| occupant.work == 0 && !occupant.closing);
        let rank = |occupant: &Occupant| {
            (
                occupant.greeted,
                Reverse(held.get(&occupant.process)),
                occupant.since,
            )
        };
        idle.min_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)))
            .map(|(id, _)| *id)
    }
}

/// A connection's seat; dropping it frees the seat.
#[derive(Debug)]
pub(crate) struct Seat {
    id: u64,
    seats: Arc<Seats>,
    close: Arc<Notify>,
}

impl Seat {
    /// Records that the hello arrived.
    pub(crate) fn greeted(&self) {
        self.seats.change(self.id, |occupant| occupant.greeted = true);
    }

    /// Marks the connection as busy until the returned value is dropped.
    pub(crate) fn work(self: &Arc<Self>) -> Work {
        self.seats.change(self.id, |occupant| occupant.work += 1);
        Work(Arc::clone(self))
    }

    /// Waits until another connection needs the seat.
    pub(crate) async fn wanted(&self) {
        self.close.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().occupants.remove(&self.id);
    }
}

/// A request in flight or a subscription.
#[derive(Debug)]
pub(crate) struct Work(Arc<Seat>);

impl Drop for Work {
    fn drop(&mut self) {
        let seat = &self.0;
        seat.seats.change(seat.id, |occupant| {
            occupant.work = occupant.work.saturating_sub(1);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn wanted(seat: &Seat) -> bool {
        seat.wanted().now_or_never().is_some()
    }

    #[test]
    fn i6_connections_without_hello_close_before_idle_ones() {
        let seats = Seats::new(3, 0);
        let [idle, mute, busy] = [1, 2, 3].map(|process| Arc::new(seats.take(process).unwrap()));
        idle.greeted();
        let work = busy.work();
        let first = Arc::new(seats.take(9).unwrap());
        let first_work = first.work();
        assert!(wanted(&mute) && !wanted(&idle));
        let second = Arc::new(seats.take(9).unwrap());
        let second_work = second.work();
        assert!(wanted(&idle) && !wanted(&busy));
        // All are busy: no seat is available until one of them becomes idle.
        assert!(seats.take(8).is_none());
        drop(work);
        assert!(seats.take(8).is_some());
        assert!(wanted(&busy));
        drop((first_work, second_work));
    }

    #[test]
    fn i6_the_process_with_most_seats_gives_one_up_first() {
        let seats = Seats::new(3, 0);
        let [old, a, b] = [1, 2, 2].map(|process| seats.take(process).unwrap());
        for seat in [&old, &a, &b] {
            seat.greeted();
        }
        let _new = seats.take(3).unwrap();
        assert!(wanted(&a) && !wanted(&b) && !wanted(&old));
    }

    #[test]
    fn i6_some_seats_are_reserved_for_processes_without_one() {
        let seats = Seats::new(4, 1);
        let work = || {
            let seat = Arc::new(seats.take(1)?);
            Some(seat.work())
        };
        let all: Vec<Work> = std::iter::from_fn(work).take(9).collect();
        assert_eq!(all.len(), 3);
        let other = Arc::new(seats.take(2).unwrap());
        let _work = other.work();
        assert!(seats.take(3).is_none());
    }

    #[test]
    fn i6_connections_that_do_not_close_are_bounded() {
        let seats = Seats::new(1, 0);
        let all: Vec<Seat> = std::iter::from_fn(|| seats.take(1)).take(1_000).collect();
        assert_eq!(all.len(), 1 + CLOSING);
        drop(all);
        assert!(seats.take(1).is_some());
    }
}
