//! Divides the limits of providers between the nodes of a fleet. Pure.
//!
//! The same rules hold over the fleet as in the queue of one node: interactive calls go before background calls, which
//! still get a part, and groups share by weight, whatever the nodes of their sessions. Each step is max-min fair: nobody
//! gets more than it wants while another one wants more than it gets. What nobody wants is divided evenly, so that a node
//! that was idle can start calls at once.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// While both lanes want calls, background calls get one permit in this many.
pub const BACKGROUND_EVERY: u32 = 16;
/// A node states its largest groups, and the sum of the others.
const MOST_GROUPS: usize = 64;
/// The name of that sum.
const OTHERS: &str = "*";
/// Permits are divided in parts of this size.
const PARTS: u64 = 1 << 20;

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
    pub wants: Vec<Want>,
}

/// The calls of one group in one lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Want {
    /// Whether nobody waits for them.
    pub background: bool,
    /// The group.
    pub group: String,
    /// Its weight in thousandths.
    pub weight: u32,
    /// Calls in flight and those that wait.
    pub calls: u32,
}

/// What a node holds of one provider's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its incarnation.
    pub node: u64,
    /// What it wanted last.
    pub wants: Vec<Want>,
    /// How many permits no other node may have.
    pub permits: u32,
}

/// The share of a node in one provider's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// A call may start while fewer than this many are in flight.
    pub permits: u32,
    /// What the node [holds](Held::permits) until it shares again: its calls in flight may be more than its permits.
    pub held: u32,
    /// The wants of the node, with the weights that count between its own groups.
    pub weights: Vec<Want>,
}

/// The calls of all groups.
#[must_use]
pub fn calls(wants: &[Want]) -> u32 {
    wants
        .iter()
        .fold(0, |sum: u32, want| sum.saturating_add(want.calls))
}

/// The largest groups, and the sum of the others.
#[must_use]
pub fn largest(mut wants: Vec<Want>) -> Vec<Want> {
    wants.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.cmp(b)));
    for want in wants.split_off(wants.len().min(MOST_GROUPS)) {
        let sum = |other: &&mut Want| other.group == OTHERS && other.background == want.background;
        match wants.iter_mut().skip(MOST_GROUPS).find(sum) {
            Some(sum) => {
                sum.calls = sum.calls.saturating_add(want.calls);
                sum.weight = sum.weight.saturating_add(want.weight);
            }
            None => wants.push(Want {
                group: OTHERS.to_owned(),
                ..want
            }),
        }
    }
    wants
}

/// The share of a node from now on: what is fair, but never more than the others leave, since they shrink first. A node with
/// more calls in flight holds their permits until they end, and starts no others. `turn` rotates who gets more when permits cannot be divided evenly.
#[must_use]
pub fn share(me: u64, demand: &Demand, others: &[Held], turn: u64) -> Share {
    let mut nodes: Vec<(u64, &[Want])> = others.iter().map(|held| (held.node, &*held.wants)).collect();
    nodes.push((me, &demand.wants));
    nodes.sort_unstable();
    let own = nodes.partition_point(|(node, _)| *node < me);
    let wants: Vec<&[Want]> = nodes.into_iter().map(|(_, wants)| wants).collect();
    let dues = dues(demand.limit, &wants);
    let fair = permits(demand.limit, &wants, &dues, turn);
    let taken = others
        .iter()
        .fold(0_u32, |sum, held| sum.saturating_add(held.permits));
    let free = demand.limit.saturating_sub(taken);
    let permits = fair[own].min(free);
    Share {
        permits,
        held: permits.max(demand.running),
        weights: weights(&demand.wants, &dues[own]),
    }
}

/// For each node, what each of its groups may use of the limit, in parts of a permit: more than it wants if its group
/// wants less than it may.
fn dues(limit: u32, nodes: &[&[Want]]) -> Vec<Vec<u64>> {
    let amounts = lanes(limit, nodes);
    let mut groups: BTreeMap<(bool, &str), Vec<(usize, usize)>> = BTreeMap::new();
    for (node, wants) in nodes.iter().enumerate() {
        for (index, want) in wants.iter().enumerate() {
            let members = groups.entry((want.background, &want.group)).or_default();
            members.push((node, index));
        }
    }
    let want = |(node, index): &(usize, usize)| &nodes[*node][*index];
    let mut dues: Vec<Vec<u64>> = nodes.iter().map(|wants| vec![0; wants.len()]).collect();
    for background in [false, true] {
        let lane = groups.iter().filter(|((lane, _), _)| *lane == background);
        let lane: Vec<&Vec<(usize, usize)>> = lane.map(|(_, members)| members).collect();
        let parties = lane.iter().map(|members| {
            let calls = members.iter().map(|member| parts(want(member).calls)).sum();
            let weight = members.iter().map(|member| want(member).weight).max();
            (calls, u64::from(weight.unwrap_or(1)))
        });
        let parties: Vec<(u64, u64)> = parties.collect();
        for (members, due) in lane.iter().zip(level(amounts[usize::from(background)], &parties)) {
            let parties: Vec<(u64, u64)> = members
                .iter()
                .map(|member| (parts(want(member).calls), 1))
                .collect();
            for ((node, index), due) in members.iter().zip(level(due, &parties)) {
                dues[*node][*index] = due;
            }
        }
    }
    dues
}

/// What the interactive and the background lane may use of a limit.
fn lanes(limit: u32, nodes: &[&[Want]]) -> [u64; 2] {
    let of = |background| {
        let lane = nodes.iter().flat_map(|wants| wants.iter());
        let lane = lane.filter(|want| want.background == background);
        lane.map(|want| parts(want.calls)).sum::<u64>()
    };
    let (interactive, background, limit) = (of(false), of(true), parts(limit));
    let used = interactive.min(limit - background.min(limit / u64::from(BACKGROUND_EVERY)));
    let left = limit - used;
    [limit - background.min(left), left]
}

/// What each party may use of an amount by its weight, if those that want less leave the rest to the others.
fn level(amount: u64, parties: &[(u64, u64)]) -> Vec<u64> {
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let mut order: Vec<&(u64, u64)> = parties.iter().collect();
    order.sort_by(|(a, of_a), (b, of_b)| product(*a, *of_b).cmp(&product(*b, *of_a)));
    let (mut left, mut weights) = (amount, parties.iter().map(|(_, weight)| weight).sum::<u64>());
    for (wanted, weight) in order {
        if *weight == weights || product(*wanted, weights) > product(left, *weight) {
            break;
        }
        left -= wanted;
        weights -= weight;
    }
    let due = |weight: u64| product(left, weight) / u128::from(weights.max(1));
    let dues = parties.iter().map(|(_, weight)| due(*weight));
    dues.map(|due| u64::try_from(due).unwrap_or(u64::MAX)).collect()
}

/// The permits of each node: what its groups want and may use, and an even part of the rest. Rounded so that the sum is the
/// limit and each node is within one permit of its exact part.
fn permits(limit: u32, nodes: &[&[Want]], dues: &[Vec<u64>], turn: u64) -> Vec<u32> {
    let used = nodes.iter().zip(dues).map(|(wants, dues)| {
        let used = wants
            .iter()
            .zip(dues)
            .map(|(want, due)| parts(want.calls).min(*due));
        used.sum::<u64>()
    });
    let used: Vec<u64> = used.collect();
    let count = u64::try_from(nodes.len()).unwrap_or(1).max(1);
    let rest = parts(limit).saturating_sub(used.iter().sum());
    // Multiples of the golden ratio are spread evenly between 0 and 1.
    let offset = (turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44).clamp(count, PARTS - 1);
    let whole = |sum: u64| {
        u32::try_from((sum + offset) / PARTS)
            .unwrap_or(u32::MAX)
            .min(limit)
    };
    let (mut sum, mut given) = (0, 0);
    let mut permits = Vec::with_capacity(nodes.len());
    for (number, used) in (1..).zip(used) {
        sum += used;
        let all = if number == count {
            parts(limit)
        } else {
            sum + rest * number / count
        };
        permits.push(whole(all).saturating_sub(given));
        given = whole(all);
    }
    permits
}

/// The weights between the groups of one node, such that their sum in each lane stays: groups that the node does not state
/// keep their weight.
fn weights(wants: &[Want], dues: &[u64]) -> Vec<Want> {
    let sum = |background: bool| {
        let lane = wants.iter().zip(dues);
        lane.filter(|(want, _)| want.background == background)
            .fold((0, 0), |(weights, sum), (want, due)| {
                (weights + u128::from(want.weight), sum + u128::from(*due))
            })
    };
    let sums = [sum(false), sum(true)];
    let weighed = wants.iter().zip(dues).map(|(want, due)| {
        let (weights, sum) = sums[usize::from(want.background)];
        let weight = (u128::from(*due) * weights).checked_div(sum);
        let weight = weight.map_or(want.weight, |weight| u32::try_from(weight).unwrap_or(u32::MAX));
        Want {
            weight: weight.max(1),
            ..want.clone()
        }
    });
    weighed.collect()
}

const fn parts(calls: u32) -> u64 {
    calls as u64 * PARTS
}

#[cfg(test)]
mod tests;
