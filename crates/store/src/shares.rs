//! Divides the limits of providers between the nodes of a fleet. Pure.
//!
//! Max-min fairness: nobody gets more than it wants while another one wants more than it gets, and what nobody wants is
//! divided evenly, so that a node that was idle can start calls at once.

use std::iter::repeat_n;

/// What a node wants of one provider's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The provider.
    pub provider: String,
    /// How many calls of the whole fleet may be in flight, as configured on this node.
    pub limit: u32,
    /// The node's calls in flight, whose permits it cannot give up.
    pub running: u32,
    /// Its calls in flight and those that wait.
    pub wanted: u32,
}

/// What a node holds of one provider's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Its incarnation.
    pub node: u64,
    /// What it wanted last.
    pub wanted: u32,
    /// How many of its calls may be in flight.
    pub permits: u32,
}

/// The permits that a node may hold from now on: its fair share, but never more than the others leave, since they shrink
/// first, and never less than its calls in flight. `turn` rotates who comes first when there are fewer permits than nodes.
#[must_use]
pub fn share(me: u64, demand: &Demand, others: &[Held], turn: u64) -> u32 {
    let mut nodes: Vec<_> = others.iter().map(|held| (held.node, held.wanted)).collect();
    nodes.push((me, demand.wanted));
    nodes.sort_unstable();
    let wanted: Vec<u32> = nodes.iter().map(|(_, wanted)| *wanted).collect();
    let fair = nodes.iter().zip(divide(demand.limit, &wanted, turn));
    let fair = fair.filter(|((node, _), _)| *node == me).map(|(_, share)| share);
    let taken = others
        .iter()
        .fold(0_u32, |sum, held| sum.saturating_add(held.permits));
    let free = demand.limit.saturating_sub(taken);
    fair.sum::<u32>().min(free).max(demand.running)
}

fn divide(limit: u32, wanted: &[u32], turn: u64) -> Vec<u32> {
    let mut nodes: Vec<(u32, u32)> = wanted.iter().map(|wanted| (*wanted, 0)).collect();
    let mut left = limit;
    loop {
        let mut hungry: Vec<_> = nodes
            .iter_mut()
            .filter(|(wanted, share)| share < wanted)
            .collect();
        if hungry.is_empty() || left == 0 {
            break;
        }
        let first = usize::try_from(turn).unwrap_or(0) % hungry.len();
        hungry.rotate_left(first);
        let parts = evenly(left, hungry.len());
        for ((wanted, share), part) in hungry.into_iter().zip(parts) {
            let more = part.min(*wanted - *share);
            *share += more;
            left -= more;
        }
    }
    let rest = evenly(left, nodes.len());
    nodes
        .iter()
        .zip(rest)
        .map(|((_, share), more)| share + more)
        .collect()
}

/// Parts of an amount that differ by at most one, the larger ones first.
fn evenly(amount: u32, parts: usize) -> impl Iterator<Item = u32> {
    let count = u32::try_from(parts).unwrap_or(u32::MAX).max(1);
    let larger = (amount % count) as usize;
    repeat_n(amount / count + 1, larger).chain(repeat_n(amount / count, parts - larger.min(parts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_limit_is_divided_by_demand_and_the_rest_evenly() {
        assert_eq!(divide(60, &[0, 0, 0], 0), [20, 20, 20]);
        assert_eq!(divide(60, &[100, 10, 100], 0), [25, 10, 25]);
        assert_eq!(divide(60, &[20, 0, 0], 0), [34, 13, 13]);
        assert_eq!(divide(64, &[5], 0), [64]);
        assert_eq!(divide(7, &[100, 100], 1), [3, 4]);
    }

    #[test]
    fn nodes_take_turns_when_there_are_fewer_permits_than_nodes() {
        let winners = (0..4).map(|turn| divide(1, &[3, 0, 3], turn));
        assert_eq!(
            winners.collect::<Vec<_>>(),
            [[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]]
        );
    }

    fn world() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
        let node = (0_u32..40, 0_u32..40);
        (1_u32..50, proptest::collection::vec(node, 1..6))
    }

    proptest! {
        /// Nodes ask in any order, with any demand; a call ends only when its node says so.
        #[test]
        fn the_nodes_never_hold_more_than_the_limit(
            (limit, nodes) in world(),
            steps in proptest::collection::vec((0_usize..6, 0_u32..60, 0_u64..9), 1..80),
        ) {
            let mut held: Vec<Held> = (0..).zip(&nodes).map(|(node, _)| Held { node, wanted: 0, permits: 0 }).collect();
            for (node, wanted, turn) in steps {
                let node = node % nodes.len();
                // As many calls as its permits allow.
                let running = held[node].permits.min(wanted);
                let demand = Demand { provider: "p".to_owned(), limit, running, wanted };
                let mut others = held.clone();
                let mine = others.remove(node);
                let permits = share(mine.node, &demand, &others, turn);
                prop_assert!(permits >= running);
                held[node] = Held { permits, wanted, ..mine };
                prop_assert!(held.iter().map(|held| held.permits).sum::<u32>() <= limit);
            }
            // Without further changes, everybody gets its fair share within two rounds.
            let wanted: Vec<u32> = held.iter().map(|held| held.wanted).collect();
            for _ in 0..2 {
                for node in 0..held.len() {
                    let demand = Demand { provider: "p".to_owned(), limit, running: 0, wanted: wanted[node] };
                    let mut others = held.clone();
                    let mine = others.remove(node);
                    held[node].permits = share(mine.node, &demand, &others, 0);
                }
            }
            prop_assert_eq!(held.iter().map(|held| held.permits).collect::<Vec<_>>(), divide(limit, &wanted, 0));
        }
    }
}
