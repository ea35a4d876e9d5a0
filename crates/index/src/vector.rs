//! Vectors: their storage format, and nearest-neighbor search. Pure.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The maximum number of dimensions.
pub(crate) const MAX_DIMENSIONS: usize = 8_192;

/// A vector normalized to length one, as bytes; `None` if its length is zero or it has too many dimensions.
pub(crate) fn to_bytes(vector: &[f32]) -> Option<Vec<u8>> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let good = length.is_finite() && length > 0.0 && vector.len() <= MAX_DIMENSIONS;
    good.then(|| vector.iter().flat_map(|x| (x / length).to_le_bytes()).collect())
}

/// The similarity of two stored vectors, from -1 to 1; `None` if their dimensions differ.
pub(crate) fn likeness(one: &[u8], other: &[u8]) -> Option<f32> {
    if one.len() != other.len() || one.is_empty() {
        return None;
    }
    let numbers = |bytes: &[u8]| bytes.try_into().map(f32::from_le_bytes).unwrap_or_default();
    let pairs = one.chunks_exact(4).zip(other.chunks_exact(4));
    Some(pairs.map(|(a, b)| numbers(a) * numbers(b)).sum())
}

/// Keeps the best of many candidates.
#[derive(Debug)]
pub(crate) struct Best {
    most: usize,
    /// The worst on top.
    heap: BinaryHeap<Ranked>,
}

#[derive(Debug, PartialEq)]
struct Ranked(f32, i64);

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Best {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            heap: BinaryHeap::with_capacity(most + 1),
        }
    }

    pub(crate) fn add(&mut self, id: i64, likeness: f32) {
        self.heap.push(Ranked(likeness, id));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    /// The best first.
    pub(crate) fn ids(self) -> Vec<i64> {
        let sorted = self.heap.into_sorted_vec();
        sorted.into_iter().map(|ranked| ranked.1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarity_depends_on_the_angle_only() {
        let bytes = |vector: &[f32]| to_bytes(vector).unwrap();
        let near = |a: Option<f32>, b: f32| (a.unwrap() - b).abs() < 1e-5;
        assert!(near(likeness(&bytes(&[3.0, 0.0]), &bytes(&[0.5, 0.0])), 1.0));
        assert!(near(likeness(&bytes(&[1.0, 0.0]), &bytes(&[0.0, 2.0])), 0.0));
        assert!(near(likeness(&bytes(&[1.0, 0.0]), &bytes(&[-1.0, 0.0])), -1.0));
        assert_eq!(likeness(&bytes(&[1.0]), &bytes(&[1.0, 0.0])), None);
    }

    #[test]
    fn a_zero_vector_is_refused() {
        assert_eq!(to_bytes(&[0.0, 0.0]), None);
        assert_eq!(to_bytes(&[f32::NAN]), None);
        assert_eq!(to_bytes(&[f32::INFINITY]), None);
        assert_eq!(to_bytes(&vec![1.0; MAX_DIMENSIONS + 1]), None);
        assert!(to_bytes(&vec![1.0; MAX_DIMENSIONS]).is_some());
    }

    #[test]
    fn the_best_are_kept_in_order() {
        let mut best = Best::new(2);
        for (id, likeness) in [(1, 0.1), (2, 0.9), (3, 0.5), (4, 0.4), (5, 0.5)] {
            best.add(id, likeness);
        }
        assert_eq!(best.ids(), [2, 3]);
    }
}
