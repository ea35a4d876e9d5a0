//! Random runs: the folded log equals the live state after every step, and the session continues from every prefix.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use proptest::prelude::*;
use serde_json::json;

fn limits() -> impl Strategy<Value = LoopLimits> {
    (-1..5_i32, 0..3_u8, any::<[bool; 5]>(), 1..4_u32).prop_map(|(max_turns, on_limit, flags, parallel)| {
        let [stop, headless, timeout, unattended, stutter] = flags;
        LoopLimits {
            max_turns,
            on_limit: [OnLimit::Ask, OnLimit::Stop, OnLimit::Summarize][usize::from(on_limit)],
            on_deny: if stop { OnDeny::Stop } else { OnDeny::Continue },
            headless,
            ask_timeout_ms: timeout.then_some(70_000),
            unattended_ms: unattended.then_some(0),
            stutter_guard: stutter,
            max_parallel_tools: parallel,
            ..LoopLimits::default()
        }
    })
}

/// One random event, chosen by a number; an impossible one does nothing.
fn happen(world: &mut World, dice: u32) {
    let pick = (dice / 32) as usize;
    match dice % 32 {
        0..=5 if !world.shrinks.is_empty() => any_shrunk(world, pick),
        0..=5 => model(world, pick),
        6..=10 if !world.judging.is_empty() => {
            use VerdictKind::{Allow, Ask, Deny};
            let kinds = [Allow, Allow, Ask, Deny];
            match pick % 5 {
                4 => world.refuse(),
                other => world.judge(kinds[other]),
            };
        }
        11..=14 if !world.running.is_empty() => {
            let status = [ToolStatus::Ok, ToolStatus::Error, ToolStatus::Timeout][pick % 3];
            world.end_tool(ToolOutcome::text(status, "it ended"));
        }
        15..=17 if !world.timers.is_empty() => {
            let key = *world.timers.keys().nth(pick % world.timers.len()).unwrap();
            world.fire(key);
        }
        18 => {
            if let Some(approval) = world.counting.pop() {
                world.deciders(approval, u32::from(pick % 2 == 1));
            }
        }
        19..=22 => send(world, pick),
        23..=25 if !world.agent.durable().approvals.is_empty() => {
            let scope = [Scope::Once, Scope::Session, Scope::Always][pick % 3];
            let _ = world.decide([Decision::Allow, Decision::Deny][pick % 2], scope);
        }
        26 => drop(world.cancel()),
        27 => drop(world.command(Command::Pause { reason: "x".into() })),
        28 | 29 => drop(world.command(Command::Resume {
            moved: None,
            reason: "x".into(),
        })),
        30 => {
            world.restart();
        }
        31 => {
            if pick.is_multiple_of(8) {
                drop(world.command(Command::Close {
                    reason: "x".into(),
                    force: true,
                }));
            } else {
                world.input(Input::Drain);
                world.restart();
            }
        }
        _ if world.tree.is_some() || !world.agent.durable().children.is_empty() => family(world, pick),
        _ if world.reworking.is_some() => {
            world.reworked(!pick.is_multiple_of(3));
        }
        _ => {
            let to = (pick as u64 % world.agent.durable().head).max(1);
            drop(world.rework(pick.is_multiple_of(2), (!pick.is_multiple_of(4)).then_some(to)));
        }
    }
}

/// The tree's spending is looked up, or a child ends.
fn family(world: &mut World, pick: usize) {
    if let Some(number) = world.tree {
        world.look_up(number, Spent::default(), Budget::default());
        return;
    }
    let children = &world.agent.durable().children;
    let child = *children.keys().nth(pick % children.len()).unwrap();
    let reasons = [EndReason::Completed, EndReason::Cancelled, EndReason::Budget];
    world.end_child(child, reasons[pick % 3]).unwrap();
    assert!(
        world.end_child(child, EndReason::Completed).is_err(),
        "heard once"
    );
}

/// A failure, chosen by a number.
pub(super) fn any_failure(dice: usize) -> ModelFailure {
    let (class, dice) = (TABLE[dice % TABLE.len()].class, dice / TABLE.len());
    let advice = match dice % 8 {
        0 => Some(Advice::Think(vec![ThinkingLevel::Low, ThinkingLevel::High])),
        1 => Some(Advice::Think(Vec::new())),
        2 => Some(Advice::Without(RequestPart::Temperature)),
        3 => Some(Advice::Window {
            tokens: 5,
            sent: Some(9),
        }),
        _ => None,
    };
    let dice = dice / 8;
    let wishes = [
        None,
        Some(0),
        Some(1),
        Some(20_000),
        Some(50_000),
        Some(90_000_000),
    ];
    ModelFailure {
        retry_after_ms: wishes[dice % 6],
        refused: dice % 4 == 0,
        other_credential: [None, Some("b".into()), Some("c".into())][dice % 3].clone(),
        credential: [None, Some("b".into())][dice % 2].clone(),
        advice,
        ..failure(class)
    }
}

/// The answer to a request for a shorter conversation, chosen by a number.
pub(super) fn any_shrunk(world: &mut World, dice: usize) {
    if dice.is_multiple_of(3) {
        world.shrunk(Shrunk::Nothing);
    } else {
        world.shrink();
    }
}

/// Three credentials, and two models to fall back to.
pub(super) fn rich(world: &mut World) {
    let credentials: Vec<String> = ["a", "b", "c"].map(String::from).into();
    for (name, provider) in [("sonnet", "p"), ("haiku", "p"), ("gpt", "q")] {
        let facts = ModelFacts {
            provider: provider.into(),
            credentials: credentials.clone(),
            fallbacks: vec!["haiku".into(), "gpt".into()],
            thinking: Some(ThinkingLevel::High),
            min_cache_tokens: Some(10),
            ..plain(name)
        };
        world.facts.insert(name.into(), facts);
    }
}

fn send(world: &mut World, pick: usize) {
    if let Some(waiting) = world.agent.durable().inbox.first().filter(|_| pick % 5 == 4) {
        let input = waiting.queued.input;
        return drop(world.command(Command::CancelInput(input)));
    }
    let deliveries = [
        None,
        Some(Delivery::Steer),
        Some(Delivery::Queue),
        Some(Delivery::Interrupt),
    ];
    drop(world.deliver("words", deliveries[pick % 4]));
}

fn model(world: &mut World, pick: usize) {
    if world.models.is_empty() {
        return;
    }
    let stops = [
        StopReason::EndTurn,
        StopReason::PauseTurn,
        StopReason::MaxTokens,
        StopReason::Other,
    ];
    let names = ["Read", "Bash", "Grep", "Write", "Task"];
    let call = |n: usize| tool_use(names[(pick + n) % 5], json!({"n": pick % 3}));
    match pick % 9 {
        0 => {
            world.text("half of it");
        }
        1 => {
            world.text(&"the ".repeat(101));
        }
        2 => {
            let dice = pick / 9;
            world.fail_as(any_failure(dice));
        }
        3 => {
            world.answer(vec![Block::text("Let me check:")], StopReason::EndTurn);
        }
        4 => {
            world.answer(vec![Block::text("Here."), call(0)], stops[(pick / 9) % 4]);
        }
        n @ 5..=7 => {
            world.answer((4..n).map(call).collect(), StopReason::ToolUse);
        }
        _ => {
            world.say("Done.");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i3_folding_equals_living_and_every_prefix_goes_on(
        limits in limits(),
        steps in 0..3_u64,
        idempotent: bool,
        dice in prop::collection::vec(0..32_u32 * 9 * 10 * 8 * 12, 1..60),
    ) {
        let budget = Budget { steps: steps * 7, ..Budget::default() };
        let mut world = World::with(SessionCreated { budget, ..created(limits) });
        world.idempotent = idempotent;
        rich(&mut world);
        world.send("begin");
        for dice in dice {
            happen(&mut world, dice);
        }
        for events in 1..=world.log.len() {
            let mut again = world.clone();
            again.crash_at(events);
            again.input(Input::Recover);
            again.command(Command::Resume { moved: None, reason: "go on".into() }).ok();
            again.calm();
            prop_assert!(again.agent.durable().turn.is_none());
            prop_assert!(again.agent.at_rest());
            again.check_log();
        }
    }
}
