//! Memory budget for the answers of all running model calls. Each answer may always hold [`FREE`] bytes, so a normal
//! answer never fails because of large ones (I6); only the excess counts against the budget.

use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of each answer that do not count.
pub(crate) const FREE: u64 = 256 * 1024;

/// The budget of this process; `limits.answers_bytes`.
pub(crate) static ROOM: Room = Room::new(512 << 20);

/// Sets how many bytes all running answers may hold together.
pub fn set_answers_bytes(most: u64) {
    ROOM.most.store(most, Ordering::Relaxed);
}

/// A byte budget that answers share.
#[derive(Debug)]
pub(crate) struct Room {
    most: AtomicU64,
    taken: AtomicU64,
}

impl Room {
    pub(crate) const fn new(most: u64) -> Self {
        Self {
            most: AtomicU64::new(most),
            taken: AtomicU64::new(0),
        }
    }

    /// Reserves nothing yet; the returned guard tracks one answer.
    pub(crate) const fn hold(&'static self) -> Held {
        Held {
            room: self,
            counted: 0,
        }
    }
}

/// The share of one answer; released on drop.
#[derive(Debug)]
pub(crate) struct Held {
    room: &'static Room,
    counted: u64,
}

impl Held {
    /// Grows the share to this many bytes.
    ///
    /// # Errors
    /// Returns the budget, if all answers together would exceed it.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), u64> {
        let wanted = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_sub(FREE);
        let more = wanted.saturating_sub(self.counted);
        if more == 0 {
            return Ok(());
        }
        let most = self.room.most.load(Ordering::Relaxed);
        let fits = |taken: u64| taken.checked_add(more).filter(|sum| *sum <= most);
        self.room
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| most)?;
        self.counted = wanted;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE_BYTES: usize = 256 * 1024;

    #[test]
    fn i6_large_answers_share_a_number_of_bytes_and_small_ones_never_wait_for_them() {
        static ROOM: Room = Room::new(1_000);
        let (mut first, mut second) = (ROOM.hold(), ROOM.hold());
        first.grow(FREE_BYTES + 600).unwrap();
        second.grow(FREE_BYTES + 400).unwrap();
        assert_eq!(second.grow(FREE_BYTES + 401), Err(1_000), "one byte too many");
        first.grow(FREE_BYTES + 600).unwrap();
        let mut small = ROOM.hold();
        small.grow(FREE_BYTES).unwrap();
        assert_eq!(small.grow(FREE_BYTES + 1), Err(1_000));
        drop(first);
        small.grow(FREE_BYTES + 600).unwrap();
        drop((second, small));
        assert_eq!(ROOM.taken.load(Ordering::Relaxed), 0);
    }
}
