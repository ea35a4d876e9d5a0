//! Divides the limits of providers between the nodes of a fleet. Pure.
//!
//! The same rules hold over the fleet as in the queue of one node: interactive calls go before background calls, which
//! still get a part, and groups share by weight, whatever the nodes of their sessions. Each step is max-min fair: no
//! node gets more than it wants while another one gets less than it wants. The rest is divided evenly, so that a node that
//! was idle can start calls at once.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// While both lanes want calls, background calls get one permit in this many.
pub const BACKGROUND_EVERY: u32 = 16;
/// A node states its largest groups, and the sum of the others.
const MOST_GROUPS: usize = 64;
/// The name of that sum; no label has a control character.
const OTHERS: &str = "\0";
/// Permits are divided in parts of this size.
const PARTS: u64 = 1 << 20;

/// The demand of a node for the permits of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The provider.
    pub provider: String,
    /// How many calls of the whole fleet may be in flight, as configured on this node.
    pub limit: u32,
    /// The node's calls in flight, whose permits it cannot give up.
    pub running: u32,
    /// The permits that it has now, and may use before it learns of its new share.
    pub permits: u32,
    /// Its calls in flight and those that wait.
    pub wants: Vec<Want>,
}

/// The calls of one group in one lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Want {
    /// Whether they are background calls.
    pub background: bool,
    /// The group.
    pub group: String,
    /// Its weight in thousandths.
    pub weight: u32,
    /// Calls in flight and those that wait.
    pub calls: u32,
}

/// The permits that a node holds of one provider.
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
    /// The permits that the node [holds](Held::permits) until it shares again: more than its share while more calls run.
    pub held: u32,
    /// While both lanes of the node want calls, background calls get one permit in this many.
    pub background_every: u32,
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
/// more calls in flight holds their permits until they end, and starts no others. `turn` rotates who gets more when
/// permits cannot be divided evenly.
#[must_use]
pub fn share(me: u64, demand: &Demand, others: &[Held], turn: u64) -> Share {
    let mut nodes: Vec<(u64, &[Want])> = others.iter().map(|held| (held.node, &*held.wants)).collect();
    nodes.push((me, &demand.wants));
    nodes.sort_unstable();
    let own = nodes.partition_point(|(node, _)| *node < me);
    let wants: Vec<&[Want]> = nodes.into_iter().map(|(_, wants)| wants).collect();
    let dues = dues(demand.limit, &wants);
    let fair = permits(demand.limit, &wants, &dues, turn);
    let fair = fair.get(own).copied().unwrap_or(0);
    let taken = others
        .iter()
        .fold(0_u32, |sum, held| sum.saturating_add(held.permits));
    let permits = fair.min(demand.limit.saturating_sub(taken));
    let own: Vec<(&Want, u64)> = demand
        .wants
        .iter()
        .map(|want| (want, due(&dues, own, want)))
        .collect();
    Share {
        permits,
        held: permits.max(demand.running).max(demand.permits),
        background_every: background_every(&own),
        weights: weights(&own),
    }
}

/// The parts of the limit that the groups of each node may use, by node, lane and group. A part is larger than what a node wants
/// if its group wants less than it may.
type Dues<'a> = BTreeMap<(usize, bool, &'a str), u64>;

fn due(dues: &Dues<'_>, node: usize, want: &Want) -> u64 {
    let due = dues.get(&(node, want.background, want.group.as_str()));
    due.copied().unwrap_or(0)
}

/// A lane and a group. The sum of small groups is of different ones on each node.
type GroupKey<'a> = (bool, &'a str, Option<usize>);
/// The nodes of a group, and what each wants.
type Members<'a> = Vec<(usize, &'a Want)>;

fn dues<'a>(limit: u32, nodes: &[&'a [Want]]) -> Dues<'a> {
    let mut groups: BTreeMap<GroupKey<'_>, Members<'a>> = BTreeMap::new();
    for (node, wants) in nodes.iter().enumerate() {
        for want in *wants {
            let apart = (want.group == OTHERS).then_some(node);
            let members = groups.entry((want.background, &want.group, apart));
            members.or_default().push((node, want));
        }
    }
    let mut dues = Dues::new();
    for (background, amount) in [false, true].into_iter().zip(lanes(limit, nodes)) {
        let lane = groups.iter().filter(|((lane, ..), _)| *lane == background);
        let lane: Vec<&Members<'_>> = lane.map(|(_, members)| members).collect();
        let parties = lane.iter().map(|members| {
            let calls = members.iter().map(|(_, want)| parts(want.calls)).sum();
            let weight = members.iter().map(|(_, want)| want.weight).max();
            (calls, u64::from(weight.unwrap_or(1).max(1)))
        });
        let parties: Vec<(u64, u64)> = parties.collect();
        for (members, amount) in lane.iter().zip(level(amount, &parties)) {
            let parties = members.iter().map(|(_, want)| (parts(want.calls), 1));
            let parties: Vec<(u64, u64)> = parties.collect();
            for ((node, want), due) in members.iter().zip(level(amount, &parties)) {
                dues.insert((*node, background, want.group.as_str()), due);
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
fn permits(limit: u32, nodes: &[&[Want]], dues: &Dues<'_>, turn: u64) -> Vec<u32> {
    let used = nodes.iter().enumerate().map(|(node, wants)| {
        let used = wants
            .iter()
            .map(|want| parts(want.calls).min(due(dues, node, want)));
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

/// How the lanes of one node share its permits. While interactive calls get all that they want, background calls need no more
/// than the usual part: they have the rest anyway.
fn background_every(own: &[(&Want, u64)]) -> u32 {
    let used = |background| {
        let lane = own.iter().filter(|(want, _)| want.background == background);
        lane.map(|(want, due)| parts(want.calls).min(*due)).sum::<u64>()
    };
    let waits = |(want, due): &(&Want, u64)| !want.background && parts(want.calls) > *due;
    if !own.iter().any(waits) {
        return BACKGROUND_EVERY;
    }
    let (interactive, background) = (used(false), used(true));
    let every = (interactive + background).checked_div(background);
    every.map_or(BACKGROUND_EVERY, |every| {
        u32::try_from(every).unwrap_or(u32::MAX).max(2)
    })
}

/// The weights between the groups of one node, such that their sum in each lane stays: groups that the node does not state
/// keep their weight.
fn weights(own: &[(&Want, u64)]) -> Vec<Want> {
    let sums = |background: bool| {
        let lane = own.iter().filter(|(want, _)| want.background == background);
        lane.fold((0, 0), |(weights, sum), (want, due)| {
            (weights + u128::from(want.weight), sum + u128::from(*due))
        })
    };
    let (interactive, background) = (sums(false), sums(true));
    let named = own.iter().filter(|(want, _)| want.group != OTHERS);
    let weighed = named.map(|(want, due)| {
        let (weights, sum) = if want.background { background } else { interactive };
        let weight = (u128::from(*due) * weights + sum / 2).checked_div(sum);
        let weight = weight.map_or(want.weight, |weight| u32::try_from(weight).unwrap_or(u32::MAX));
        Want {
            weight: weight.max(1),
            ..(*want).clone()
        }
    });
    weighed.collect()
}

const fn parts(calls: u32) -> u64 {
    calls as u64 * PARTS
}

#[cfg(test)]
mod tests;
