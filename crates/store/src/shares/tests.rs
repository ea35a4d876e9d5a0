use super::*;
use proptest::prelude::*;

fn want(background: bool, group: &str, weight: u32, calls: u32) -> Want {
    Want {
        background,
        group: group.to_owned(),
        weight,
        calls,
    }
}

/// Interactive calls of one group.
fn team(group: &str, calls: u32) -> Vec<Want> {
    vec![want(false, group, 1_000, calls)]
}

fn divide(limit: u32, nodes: &[Vec<Want>], turn: u64) -> Vec<u32> {
    let nodes: Vec<&[Want]> = nodes.iter().map(Vec::as_slice).collect();
    permits(limit, &nodes, &dues(limit, &nodes), turn)
}

fn demand(limit: u32, running: u32, wants: &[Want]) -> Demand {
    Demand {
        provider: "p".to_owned(),
        limit,
        running,
        permits: running,
        wants: wants.to_vec(),
    }
}

#[test]
fn a_limit_is_divided_by_demand_and_the_rest_evenly() {
    let check = |limit, wanted: &[u32], expected: &[u32]| {
        let nodes: Vec<_> = wanted.iter().map(|calls| team("a", *calls)).collect();
        assert_eq!(divide(limit, &nodes, 1), expected, "{wanted:?}");
    };
    check(60, &[0, 0, 0], &[20, 20, 20]);
    check(60, &[100, 10, 100], &[25, 10, 25]);
    check(60, &[21, 0, 0], &[34, 13, 13]);
    check(64, &[5], &[64]);
    assert_eq!(divide(64, &[vec![], vec![]], 0), [32, 32]);
}

#[test]
fn nodes_take_turns_when_permits_cannot_be_divided_evenly() {
    let nodes = [team("a", 3), team("a", 0), team("a", 9)];
    let mut won = [0; 3];
    for turn in 0..1_000 {
        for (sum, permits) in won.iter_mut().zip(divide(1, &nodes, turn)) {
            *sum += permits;
        }
    }
    assert_eq!(won.iter().sum::<u32>(), 1_000);
    assert_eq!(won[1], 0);
    assert!((495..=505).contains(&won[0]), "{won:?}");
}

#[test]
fn groups_share_by_weight_whatever_their_nodes() {
    // A has ten times the sessions of B; they are on other nodes.
    let nodes = [team("a", 500), team("a", 500), team("b", 100)];
    assert_eq!(divide(60, &nodes, 1), [15, 15, 30]);
    let heavy = [team("a", 500), vec![want(false, "b", 3_000, 500)]];
    assert_eq!(divide(60, &heavy, 1), [15, 45]);
    // Both on the first node, one of them on the second, too.
    let (first, second) = ([team("a", 100), team("b", 100)].concat(), team("b", 100));
    let mine = share(1, &demand(60, 0, &first), &[held(2, &second, 0)], 1);
    assert_eq!(mine.permits, 45);
    // A busy node starts no calls until it has what is fair.
    let busy = share(1, &demand(60, 60, &first), &[held(2, &second, 0)], 1);
    assert_eq!((busy.permits, busy.held), (45, 60));
    let weights: Vec<u32> = mine.weights.iter().map(|want| want.weight).collect();
    assert_eq!(weights, [1_333, 667], "half of b's calls are on the other node");
}

#[test]
fn a_group_that_wants_less_than_it_may_keeps_its_weight() {
    let wants = [team("a", 2), team("b", 100)].concat();
    let alone = share(1, &demand(60, 0, &wants), &[], 1);
    assert_eq!(alone.weights, wants);
    // The other node wants nothing.
    assert_eq!(
        share(1, &demand(60, 0, &wants), &[held(2, &[], 0)], 1).weights,
        wants
    );
}

#[test]
fn interactive_calls_go_first_on_all_nodes_and_background_calls_get_a_part() {
    let background = vec![want(true, "a", 1_000, 100)];
    assert_eq!(divide(32, &[team("a", 100), background.clone()], 1), [30, 2]);
    assert_eq!(divide(32, &[team("a", 12), background.clone()], 1), [12, 20]);
    assert_eq!(divide(32, &[team("a", 31), background.clone()], 1), [30, 2]);
    let both = [team("b", 100), background.clone()].concat();
    assert_eq!(divide(32, &[team("a", 100), both], 1), [15, 17]);
    // Of a small limit, it is one permit at times.
    let small = (0..1_600).map(|turn| divide(4, &[team("a", 9), background.clone()], turn)[1]);
    assert!((390..=410).contains(&small.sum::<u32>()));
}

#[test]
fn a_node_with_both_lanes_serves_the_background_of_the_fleet() {
    let background = want(true, "a", 1_000, 100);
    let wants = [team("b", 100), vec![background]].concat();
    let mine = share(1, &demand(32, 0, &wants), &[held(2, &team("a", 100), 0)], 1);
    assert_eq!(
        (mine.permits, mine.background_every),
        (17, 8),
        "2 of its 17 permits"
    );
    let alone = share(1, &demand(32, 0, &wants), &[], 1);
    assert_eq!(alone.background_every, BACKGROUND_EVERY);
    let few = [team("b", 12), vec![want(true, "a", 1_000, 100)]].concat();
    let first = share(1, &demand(32, 0, &few), &[], 1);
    assert_eq!(
        first.background_every, BACKGROUND_EVERY,
        "interactive calls get all"
    );
    let none = share(1, &demand(32, 0, &team("a", 9)), &[], 1);
    assert_eq!(none.background_every, BACKGROUND_EVERY);
}

#[test]
fn the_sums_of_small_groups_are_not_one_group() {
    let small = vec![want(false, OTHERS, 5_000, 50)];
    assert_eq!(
        divide(60, &[small.clone(), small.clone(), team("a", 50)], 1),
        [27, 28, 5]
    );
    let mine = share(1, &demand(60, 0, &[small, team("a", 50)].concat()), &[], 1);
    assert_eq!(mine.weights.len(), 1);
}

#[test]
fn a_node_states_its_largest_groups_and_the_sum_of_the_others() {
    let small: Vec<Want> = (0..100)
        .map(|number| want(number % 2 == 0, &format!("{number:03}"), 500, 1))
        .collect();
    let large = team("large", 7);
    let stated = largest([small, large.clone()].concat());
    assert_eq!(stated[0], large[0]);
    assert_eq!(stated[MOST_GROUPS..], [want(true, OTHERS, 18_500, 37)]);
    assert_eq!(calls(&stated), 107);
}

fn held(node: u64, wants: &[Want], permits: u32) -> Held {
    Held {
        node,
        wants: wants.to_vec(),
        permits,
    }
}

fn wants() -> impl Strategy<Value = Vec<Want>> {
    let group = prop_oneof!["a", "b", "c"];
    let parts = (any::<bool>(), group, 1_u32..5_000, 0_u32..60);
    let want = parts.prop_map(|(background, group, weight, calls)| want(background, &group, weight, calls));
    proptest::collection::vec(want, 0..5).prop_map(|mut wants| {
        wants.sort();
        wants.dedup_by_key(|want| (want.background, want.group.clone()));
        wants
    })
}

proptest! {
    /// Nodes ask in any order, with any demand; a call ends only when its node says so.
    #[test]
    fn the_nodes_never_hold_more_than_the_limit(
        limit in 1_u32..50,
        count in 1_usize..6,
        steps in proptest::collection::vec((0_usize..6, wants(), 0_u64..9, any::<bool>(), any::<bool>()), 1..80),
    ) {
        let mut nodes: Vec<Held> = (0..).take(count).map(|node| held(node, &[], 0)).collect();
        let (mut running, mut permits) = (vec![0; count], vec![0; count]);
        for (node, wants, turn, learns, ends) in steps {
            let node = node % count;
            let mut others = nodes.clone();
            let mine = others.remove(node);
            let (running, permits) = (&mut running[node], &mut permits[node]);
            let demand = Demand { permits: *permits, ..demand(limit, *running, &wants) };
            let share = share(mine.node, &demand, &others, turn);
            prop_assert!(share.weights.iter().all(|want| want.weight > 0));
            nodes[node] = Held { permits: share.held, wants, ..mine };
            // Calls start until the node learns of its share, if it does.
            *running = (*running).max(*permits);
            if learns {
                *permits = share.permits;
                *running = if ends { (*permits).min(*running) } else { *running };
            }
            prop_assert!(*running <= nodes[node].permits);
            prop_assert!(nodes.iter().map(|held| held.permits).sum::<u32>() <= limit);
        }
        // Without further changes, everybody gets its fair share within two rounds.
        for node in [0..count, 0..count].into_iter().flatten() {
            let mut others = nodes.clone();
            let mine = others.remove(node);
            nodes[node].permits = share(mine.node, &demand(limit, 0, &mine.wants), &others, 0).held;
        }
        let wants: Vec<Vec<Want>> = nodes.iter().map(|held| held.wants.clone()).collect();
        let permits: Vec<u32> = nodes.iter().map(|held| held.permits).collect();
        prop_assert_eq!(&permits, &divide(limit, &wants, 0));
        prop_assert_eq!(permits.iter().sum::<u32>(), limit);
    }

    /// A group with fewer permits than it wants has at least as much by weight as any other group of its lane.
    #[test]
    fn no_group_gets_more_by_weight_than_one_that_wants_more(
        limit in 1_u32..50,
        nodes in proptest::collection::vec(wants(), 1..6),
    ) {
        let nodes: Vec<&[Want]> = nodes.iter().map(Vec::as_slice).collect();
        let dues = dues(limit, &nodes);
        let mut groups: BTreeMap<(bool, &str), (u64, u64, u32)> = BTreeMap::new();
        let each = nodes.iter().enumerate().flat_map(|(node, wants)| wants.iter().map(move |want| (node, want)));
        for (node, want) in each {
            let due = due(&dues, node, want);
            let (wanted, used, weight) = groups.entry((want.background, &want.group)).or_default();
            *wanted += parts(want.calls);
            *used += parts(want.calls).min(due);
            *weight = want.weight.max(*weight);
        }
        let by_weight = |used: u64, weight: u32| used / u64::from(weight);
        for ((lane, group), (wanted, used, weight)) in &groups {
            for ((other_lane, other), (_, theirs, other_weight)) in &groups {
                let hungry = *used + 100 < *wanted;
                if lane == other_lane && group != other && hungry {
                    prop_assert!(by_weight(*theirs, *other_weight) <= by_weight(*used + 100, *weight) + 100, "{group}, {other}");
                }
            }
        }
    }
}
