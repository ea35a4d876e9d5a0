use super::*;
use agentd_store::Want;

fn session(number: u64) -> SessionId {
    SessionId::from_parts(number, [0; 10])
}

fn ask(number: u64, group: &str, lane: Lane) -> Ask {
    Ask {
        session: session(number),
        model: "m".to_owned(),
        credential: None,
        group: group.to_owned(),
        lane,
        input_tokens: 0,
        output_tokens: 0,
        insists: false,
    }
}

fn queue(weights: &[(&str, f64)]) -> Queue<u64> {
    let weights = weights
        .iter()
        .map(|(name, weight)| ((*name).to_owned(), *weight))
        .collect();
    Queue::new(&weights, 100_000)
}

fn add(queue: &mut Queue<u64>, number: u64, group: &str, lane: Lane) {
    let ask = ask(number, group, lane);
    queue.line_up(Waiter { ask, place: number }).unwrap();
}

fn take(queue: &mut Queue<u64>) -> Option<Waiter<u64>> {
    let pick = queue.pick(&BTreeSet::new())?;
    queue.take(&pick)
}

/// Serves this many calls, each queued again immediately, and counts them by group.
fn serve(queue: &mut Queue<u64>, calls: u32) -> BTreeMap<String, u32> {
    let mut served = BTreeMap::new();
    for _ in 0..calls {
        let waiter = take(queue).unwrap();
        *served.entry(waiter.ask.group.clone()).or_default() += 1;
        queue.line_up(waiter).unwrap();
    }
    served
}

fn shares(parts: &[(&str, u32)]) -> BTreeMap<String, u32> {
    parts
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

#[test]
fn teams_share_by_weight_however_many_sessions_they_have() {
    let mut queue = queue(&[("one", 1.0), ("three", 3.0)]);
    for number in 0..900 {
        add(&mut queue, number, "one", Lane::Interactive);
    }
    for number in 900..1_000 {
        add(&mut queue, number, "three", Lane::Interactive);
    }
    assert_eq!(
        serve(&mut queue, 4_000),
        shares(&[("one", 1_000), ("three", 3_000)])
    );
}

#[test]
fn a_paused_teams_share_goes_to_the_others_and_is_not_saved_up() {
    let mut queue = queue(&[("a", 1.0), ("b", 1.0), ("c", 2.0)]);
    for (number, group) in [(1, "a"), (2, "b"), (3, "c")] {
        add(&mut queue, number, group, Lane::Interactive);
    }
    assert_eq!(
        serve(&mut queue, 400),
        shares(&[("a", 100), ("b", 100), ("c", 200)])
    );
    // The third group stops asking.
    while take(&mut queue).is_some() {}
    add(&mut queue, 1, "a", Lane::Interactive);
    add(&mut queue, 2, "b", Lane::Interactive);
    let two = serve(&mut queue, 1_000);
    assert!(two.values().all(|count| (499..=501).contains(count)), "{two:?}");
    // It returns and gets its half, not more.
    add(&mut queue, 3, "c", Lane::Interactive);
    let back = serve(&mut queue, 40);
    assert!((19..=21).contains(&back["c"]), "{back:?}");
}

#[test]
fn a_team_that_comes_back_for_each_call_gets_no_advantage() {
    let mut queue = queue(&[]);
    for number in 0..100 {
        add(&mut queue, number, "many", Lane::Interactive);
    }
    add(&mut queue, 1_000, "one", Lane::Interactive);
    let mut of_one = 0;
    for _ in 0..1_000 {
        let waiter = take(&mut queue).unwrap();
        of_one += u32::from(waiter.ask.group == "one");
        // It leaves the queue with every call and returns immediately.
        queue.line_up(waiter).unwrap();
    }
    assert_eq!(of_one, 500);
}

#[test]
fn sessions_of_a_team_take_turns() {
    let mut queue = queue(&[]);
    for _ in 0..3 {
        add(&mut queue, 1, "", Lane::Interactive);
    }
    add(&mut queue, 2, "", Lane::Interactive);
    add(&mut queue, 3, "", Lane::Interactive);
    let order: Vec<u64> = std::iter::from_fn(|| take(&mut queue))
        .map(|waiter| waiter.place)
        .collect();
    assert_eq!(order, [1, 2, 3, 1, 1]);
    assert_eq!(
        (queue.len(), queue.models().count(), queue.homes.len()),
        (0, 0, 0)
    );
}

#[test]
fn i6_background_calls_go_after_interactive_ones_but_never_starve() {
    let mut queue = queue(&[]);
    for number in 0..64 {
        add(&mut queue, number, "", Lane::Background);
    }
    for number in 100..200 {
        add(&mut queue, number, "", Lane::Interactive);
    }
    let lanes: Vec<Lane> = (0..64).map(|_| take(&mut queue).unwrap().ask.lane).collect();
    let expected: Vec<Lane> = (1..=64)
        .map(|call| {
            if call % 16 == 0 {
                Lane::Background
            } else {
                Lane::Interactive
            }
        })
        .collect();
    assert_eq!(lanes, expected);
}

#[test]
fn a_model_that_is_held_up_does_not_hold_up_another() {
    let mut queue = queue(&[]);
    add(&mut queue, 1, "a", Lane::Interactive);
    let mut other = ask(2, "b", Lane::Interactive);
    other.model = "other".to_owned();
    queue.line_up(Waiter { ask: other, place: 2 }).unwrap();
    let held = BTreeSet::from([Arc::from("m")]);
    let pick = queue.pick(&held).unwrap();
    assert_eq!(queue.take(&pick).map(|waiter| waiter.place), Some(2));
    assert_eq!(queue.pick(&held), None);
    assert_eq!(take(&mut queue).map(|waiter| waiter.place), Some(1));
}

#[test]
fn a_team_that_was_held_up_does_not_catch_up() {
    let mut queue = queue(&[]);
    add(&mut queue, 1, "held", Lane::Interactive);
    let mut other = ask(2, "free", Lane::Interactive);
    other.model = "other".to_owned();
    queue.line_up(Waiter { ask: other, place: 2 }).unwrap();
    let held = BTreeSet::from([Arc::from("m")]);
    for _ in 0..100 {
        let pick = queue.pick(&held).unwrap();
        let waiter = queue.take(&pick).unwrap();
        queue.line_up(waiter).unwrap();
    }
    let after = serve(&mut queue, 20);
    assert!((9..=11).contains(&after["held"]), "{after:?}");
}

#[test]
fn the_line_has_an_end() {
    let mut queue = Queue::new(&BTreeMap::new(), 2);
    add(&mut queue, 1, "", Lane::Interactive);
    add(&mut queue, 2, "", Lane::Background);
    let ask = ask(3, "", Lane::Interactive);
    assert_eq!(queue.line_up(Waiter { ask, place: 3 }).unwrap_err().place, 3);
}

#[test]
fn everybody_can_be_sent_away() {
    let mut queue = queue(&[]);
    for number in 0..10 {
        let lane = if number % 2 == 0 {
            Lane::Interactive
        } else {
            Lane::Background
        };
        add(&mut queue, number, ["a", "b"][(number % 3 % 2) as usize], lane);
    }
    let mut gone: Vec<u64> = std::iter::from_fn(|| queue.take_any("m"))
        .map(|waiter| waiter.place)
        .collect();
    gone.sort_unstable();
    assert_eq!(gone, (0..10).collect::<Vec<_>>());
    assert!(queue.take_any("m").is_none());
    assert_eq!((queue.len(), queue.homes.len()), (0, 0));
}

#[test]
fn a_position_is_about_how_many_go_before() {
    let mut queue = queue(&[("three", 3.0)]);
    for number in 0..100 {
        add(&mut queue, number, "one", Lane::Interactive);
        add(&mut queue, 1_000 + number, "three", Lane::Interactive);
    }
    for number in 2_000..2_010 {
        add(&mut queue, number, "one", Lane::Background);
    }
    let told: BTreeMap<u64, usize> = [0, 5, 20, 99, 1_000, 1_020, 1_099, 2_000, 2_009]
        .into_iter()
        .map(|number| (number, queue.position(session(number)).unwrap().0))
        .collect();
    let mut order = Vec::new();
    while let Some(waiter) = take(&mut queue) {
        order.push(waiter.place);
    }
    for (number, told) in told {
        let real = order.iter().position(|place| *place == number).unwrap() + 1;
        assert!(
            told.abs_diff(real) <= 16,
            "session {number}: told {told}, was {real}"
        );
    }
    assert!(queue.position(session(1)).is_none());
}

#[test]
fn the_weights_of_a_fleet_replace_those_of_the_node() {
    let mut queue = queue(&[("a", 1.0), ("b", 3.0)]);
    for (number, group) in [(1, "a"), (2, "b"), (3, "c")] {
        add(&mut queue, number, group, Lane::Interactive);
        add(&mut queue, number + 10, group, Lane::Background);
    }
    assert_eq!([queue.weight("b"), queue.weight("c")], [3_000, 1_000]);
    let weigh = |queue: &mut Queue<u64>, weights: &[(&str, u32)]| {
        let wants = weights.iter().map(|(group, weight)| Want {
            background: false,
            group: (*group).to_owned(),
            weight: *weight,
            calls: 1,
        });
        queue.weigh(&Share {
            permits: 1,
            held: 1,
            background_every: 4,
            weights: wants.collect(),
        });
    };
    weigh(&mut queue, &[("a", 3_000), ("b", 1_000)]);
    let served = serve(&mut queue, 2_000);
    // 1,500 interactive calls as the fleet says, and 500 background calls with the configured weights.
    assert_eq!(
        served,
        shares(&[("a", 900 + 100), ("b", 300 + 300), ("c", 300 + 100)])
    );
    weigh(&mut queue, &[]);
    let served = serve(&mut queue, 2_000);
    assert!((1_198..=1_202).contains(&served["b"]), "{served:?}");
}
