//! Metrics of the writer: how many appends share a transaction, and how long they take.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of the duration histogram: four per power of two, from a microsecond to an hour.
const CLASSES: usize = 4 * 32;

/// Counters since the store was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StoreMetrics {
    /// Requested changes: appends and smaller changes.
    pub changes: u64,
    /// The transactions that wrote these changes.
    pub batches: u64,
    /// The largest number of changes in one transaction.
    pub largest_batch: u64,
    /// Time from the request to the durable answer, in microseconds: median.
    pub change_us_p50: u64,
    /// The same: 95th percentile.
    pub change_us_p95: u64,
    /// The same: 99th percentile.
    pub change_us_p99: u64,
    /// Duration of a transaction with its sync, in microseconds: median.
    pub batch_us_p50: u64,
    /// The same: 99th percentile.
    pub batch_us_p99: u64,
}

/// The live counters.
#[derive(Debug, Default)]
pub struct Counters {
    largest: AtomicU64,
    changes: Durations,
    batches: Durations,
}

impl Counters {
    /// Records an answered change.
    pub fn change(&self, took: Duration) {
        self.changes.add(took);
    }

    /// Records a finished transaction with this number of changes.
    pub fn batch(&self, changes: usize, took: Duration) {
        self.largest.fetch_max(changes as u64, Ordering::Relaxed);
        self.batches.add(took);
    }

    /// What was counted.
    #[must_use]
    pub fn read(&self) -> StoreMetrics {
        StoreMetrics {
            changes: self.changes.count(),
            batches: self.batches.count(),
            largest_batch: self.largest.load(Ordering::Relaxed),
            change_us_p50: self.changes.percentile(50),
            change_us_p95: self.changes.percentile(95),
            change_us_p99: self.changes.percentile(99),
            batch_us_p50: self.batches.percentile(50),
            batch_us_p99: self.batches.percentile(99),
        }
    }
}

/// A histogram of durations.
#[derive(Debug)]
struct Durations([AtomicU64; CLASSES]);

impl Default for Durations {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Durations {
    fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(class) = self.0.get(class_of(micros)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|class| class.load(Ordering::Relaxed)).sum()
    }

    /// The upper bound of the bucket that contains the percentile.
    fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut seen = 0;
        for (class, count) in self.0.iter().enumerate() {
            seen += count.load(Ordering::Relaxed);
            if seen >= wanted && seen > 0 {
                return end_of(class);
            }
        }
        0
    }
}

/// The two bits below the highest one select the quarter of the power of two.
fn class_of(micros: u64) -> usize {
    let micros = micros.max(4);
    let doubling = micros.ilog2();
    let quarter = (micros >> (doubling - 2)) & 3;
    let class = u64::from(doubling) * 4 + quarter;
    usize::try_from(class).map_or(CLASSES - 1, |class| class.min(CLASSES - 1))
}

const fn end_of(class: usize) -> u64 {
    let (doubling, quarter) = (class / 4, class % 4);
    if doubling < 2 {
        return 4;
    }
    ((4 + quarter as u64 + 1) << (doubling - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_ends_where_the_next_one_begins() {
        for micros in [4, 5, 7, 8, 9, 100, 1_000, 1_023, 1_024, 65_535, 1 << 30] {
            let class = class_of(micros);
            assert!(end_of(class) >= micros, "{micros}");
            assert_eq!(class_of(end_of(class)), class, "{micros}");
            assert_eq!(class_of(end_of(class) + 1), class + 1, "{micros}");
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn percentiles_come_from_the_counts() {
        let counters = Counters::default();
        for _ in 0..99 {
            counters.change(Duration::from_micros(100));
        }
        counters.change(Duration::from_micros(5_000));
        counters.batch(7, Duration::from_micros(50));
        counters.batch(3, Duration::from_micros(50));
        let read = counters.read();
        assert_eq!((read.changes, read.batches, read.largest_batch), (100, 2, 7));
        assert_eq!((read.change_us_p50, read.change_us_p99), (111, 111));
        assert_eq!(Counters::default().read(), StoreMetrics::default());
    }
}
