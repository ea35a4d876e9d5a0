//! Inputs: steer, queue, collect, interrupt, cancel, pause, close. No accepted input is lost.

use super::world::*;
use crate::*;
use Delivery::*;
use agentd_protocol::*;

fn deliveries(world: &World) -> Vec<Delivery> {
    world
        .summary()
        .queue
        .iter()
        .map(|queued| queued.delivery)
        .collect()
}

#[test]
fn a_steer_joins_at_the_next_model_call() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash"]);
    world.judge(VerdictKind::Allow);
    let steer = world.send("the other file");
    assert_eq!(
        (world.kinds(), deliveries(&world)),
        (vec!["input.accepted"], vec![Steer])
    );
    assert!(world.step.events[0].turn.is_some());
    world.end_tool(ok());
    assert_eq!(world.joined().last(), Some(&vec![steer]));
    assert_eq!(deliveries(&world), []);
}

#[test]
fn a_steer_that_comes_with_the_last_words_keeps_the_turn_going() {
    let mut world = World::running(LoopLimits::default());
    let steer = world.send("one more thing");
    world.say("Done.");
    assert_eq!(world.kinds(), ["model.finished", "model.started"]);
    assert_eq!(world.joined().last(), Some(&vec![steer]));
}

#[test]
fn a_steer_joins_a_retried_attempt() {
    let mut world = World::running(LoopLimits::default());
    world.fail(FailureClass::Transient);
    let steer = world.send("by the way");
    world.fire(TimerKey::Backoff);
    assert_eq!(world.joined().last(), Some(&vec![steer]));
}

#[test]
fn an_explicit_steer_needs_a_turn() {
    let mut world = World::idle(LoopLimits::default());
    assert_eq!(
        world.deliver("x", Some(Steer)).unwrap_err().class,
        FaultClass::Conflict
    );
    world.deliver("x", Some(Start)).unwrap();
    world.deliver("y", Some(Steer)).unwrap();
    world.deliver("z", Some(Start)).unwrap();
    assert_eq!(
        deliveries(&world),
        [Steer, Steer],
        "a start steers while a turn runs"
    );
}

#[test]
fn queued_inputs_start_one_turn_each() {
    let mut world = World::running(LoopLimits::default());
    let (one, two) = (
        world.deliver("1", Some(Queue)).unwrap(),
        world.deliver("2", Some(Queue)).unwrap(),
    );
    world.say("Done.");
    assert_eq!(
        world.kinds(),
        ["model.finished", "turn.finished", "turn.started", "model.started"]
    );
    assert_eq!(world.joined().last(), Some(&vec![one]));
    world.say("Done.");
    assert_eq!(world.joined().last(), Some(&vec![two]));
    world.say("Done.");
    assert_eq!(world.state(), RunState::Idle);
}

#[test]
fn collected_inputs_start_one_turn_together_and_the_order_stays() {
    for (waiting, turns) in [
        (&[Collect, Collect, Collect][..], &[3][..]),
        (&[Collect], &[1]),
        (&[Queue, Collect, Collect], &[1, 2]),
        (&[Collect, Collect, Queue, Collect], &[2, 1, 1]),
        (&[Queue, Queue], &[1, 1]),
    ] {
        let mut world = World::running(LoopLimits::default());
        let deliver = |(at, how): (usize, &Delivery)| world.deliver(&at.to_string(), Some(*how)).unwrap();
        let inputs: Vec<InputId> = waiting.iter().enumerate().map(deliver).collect();
        assert_eq!(deliveries(&world), waiting);
        let mut rest = inputs.as_slice();
        for &count in turns {
            world.say("Done.");
            let (next, later) = rest.split_at(count);
            assert_eq!(
                world.joined().last().map(Vec::as_slice),
                Some(next),
                "{waiting:?}"
            );
            rest = later;
        }
        world.say("Done.");
        assert_eq!((rest.len(), world.state()), (0, RunState::Idle), "{waiting:?}");
        world.check_log();
    }
}

#[test]
fn a_collected_input_without_a_turn_starts_one_and_a_cancelled_one_stays_out() {
    let mut world = World::idle(LoopLimits::default());
    world.deliver("go", Some(Collect)).unwrap();
    assert_eq!(world.kinds(), ["input.accepted", "turn.started", "model.started"]);
    let [one, two, three] = ["1", "2", "3"].map(|text| world.deliver(text, Some(Collect)).unwrap());
    world.command(Command::CancelInput(two)).unwrap();
    world.say("Done.");
    assert_eq!(world.joined().last(), Some(&vec![one, three]));
}

#[test]
fn an_interrupt_replaces_the_running_turn() {
    let mut world = World::running(LoopLimits::default());
    let queued = world.deliver("later", Some(Queue)).unwrap();
    let steer = world.send("also");
    let interrupt = world.deliver("stop that, do this", Some(Interrupt)).unwrap();
    assert_eq!(
        world.kinds(),
        [
            "input.accepted",
            "model.failed",
            "turn.finished",
            "turn.started",
            "model.started"
        ]
    );
    assert_eq!(world.reason(), EndReason::Cancelled);
    assert_eq!(world.joined().last(), Some(&vec![steer, interrupt]));
    world.say("Done.");
    assert_eq!(world.joined().last(), Some(&vec![queued]));
    world.check_log();
}

#[test]
fn an_interrupt_without_a_turn_starts_one() {
    let mut world = World::idle(LoopLimits::default());
    world.deliver("go", Some(Interrupt)).unwrap();
    assert_eq!(world.kinds(), ["input.accepted", "turn.started", "model.started"]);
}

#[test]
fn an_input_can_be_taken_back_until_it_joins() {
    let mut world = World::running(LoopLimits::default());
    let joined = world.joined()[0][0];
    let steer = world.send("no, wait");
    world.command(Command::CancelInput(steer)).unwrap();
    assert_eq!(world.kinds(), ["input.cancelled"]);
    for late in [steer, joined] {
        assert_eq!(
            world.command(Command::CancelInput(late)).unwrap_err().class,
            FaultClass::Conflict
        );
    }
    assert_eq!(
        world
            .command(Command::CancelInput(InputId::NIL))
            .unwrap_err()
            .class,
        FaultClass::NotFound
    );
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn an_empty_input_and_one_too_many_are_refused() {
    let mut world = World::running(LoopLimits::default());
    assert_eq!(world.deliver(" \n", None).unwrap_err().class, FaultClass::Invalid);
    for _ in 0..16 {
        world.send("more");
    }
    assert_eq!(
        world.deliver("too much", None).unwrap_err().class,
        FaultClass::Busy
    );
    assert_eq!(world.step.events, []);
}

#[test]
fn a_cancelled_turns_steers_start_the_next_turn() {
    let mut world = World::running(LoopLimits::default());
    let steer = world.send("this instead");
    world.cancel().unwrap();
    assert_eq!(
        world.kinds(),
        ["model.failed", "turn.finished", "turn.started", "model.started"]
    );
    assert_eq!(world.joined().last(), Some(&vec![steer]));
    world.cancel().unwrap();
    assert_eq!(world.state(), RunState::Idle);
    assert_eq!(world.cancel().unwrap_err().class, FaultClass::Conflict);
}

#[test]
fn cancelling_another_turn_than_the_running_one_is_a_conflict() {
    let mut world = World::running(LoopLimits::default());
    let command = Command::CancelTurn {
        expect: Some(TurnId::NIL),
        reason: None,
        jobs: false,
    };
    assert_eq!(world.command(command).unwrap_err().code, "other_turn");
    let expect = world.summary().turn;
    world
        .command(Command::CancelTurn {
            expect,
            reason: Some("enough".into()),
            jobs: false,
        })
        .unwrap();
    assert_eq!(world.step.events.last().unwrap().by, ana());
}

#[test]
fn a_paused_session_finishes_what_runs_takes_input_and_goes_on_when_resumed() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash"]);
    world.judge(VerdictKind::Allow);
    world
        .command(Command::Pause {
            reason: "lunch".into(),
        })
        .unwrap();
    assert_eq!(world.state(), RunState::RunningTool);
    world.end_tool(ok());
    assert_eq!(
        (world.kinds(), world.state()),
        (vec!["tool.finished"], RunState::Paused)
    );
    assert!(world.agent.at_rest() && !world.summary().resumable);
    let steer = world.send("and this");
    assert_eq!(world.kinds(), ["input.accepted"]);
    world.restart();
    assert_eq!(
        world.kinds(),
        Vec::<&str>::new(),
        "a restart does not resume what a person paused"
    );
    world
        .command(Command::Resume {
            moved: None,
            reason: "back".into(),
        })
        .unwrap();
    assert_eq!(world.kinds(), ["session.resumed", "model.started"]);
    assert_eq!(world.joined().last(), Some(&vec![steer]));
}

#[test]
fn a_back_off_waits_while_the_session_is_paused() {
    let mut world = World::running(LoopLimits::default());
    world.fail(FailureClass::Transient);
    world.command(Command::Pause { reason: "x".into() }).unwrap();
    assert!(world.timers.is_empty() && world.agent.at_rest());
    assert_eq!(world.summary().wake_at, None);
    world.now += 60_000;
    world
        .command(Command::Resume {
            moved: None,
            reason: "x".into(),
        })
        .unwrap();
    assert_eq!(world.kinds(), ["session.resumed", "model.started"]);
}

#[test]
fn inputs_of_a_paused_idle_session_start_one_turn_together() {
    let mut world = World::idle(LoopLimits::default());
    world.command(Command::Pause { reason: "x".into() }).unwrap();
    let (one, two) = (world.send("1"), world.send("2"));
    assert_eq!(world.state(), RunState::Paused);
    world
        .command(Command::Resume {
            moved: None,
            reason: "x".into(),
        })
        .unwrap();
    assert_eq!(world.joined().last(), Some(&vec![one, two]));
}

#[test]
fn closing_gives_waiting_inputs_back_and_needs_force_while_a_turn_runs() {
    let mut world = World::running(LoopLimits::default());
    world.deliver("later", Some(Queue)).unwrap();
    let close = |force| Command::Close {
        reason: "done".into(),
        force,
    };
    assert_eq!(
        world.command(close(false)).unwrap_err().class,
        FaultClass::Conflict
    );
    world.command(close(true)).unwrap();
    assert_eq!(
        world.kinds(),
        [
            "model.failed",
            "turn.finished",
            "input.cancelled",
            "session.closed"
        ]
    );
    assert_eq!(world.state(), RunState::Closed);
    for command in [
        close(true),
        Command::Send(says("hello?")),
        Command::Resume {
            moved: None,
            reason: String::new(),
        },
    ] {
        assert_eq!(world.command(command).unwrap_err().code, "session_closed");
    }
    world.check_log();
}

#[test]
fn the_model_of_an_input_is_the_turns_and_an_update_is_the_sessions() {
    let mut world = World::idle(LoopLimits::default());
    world
        .command(Command::Send(NewInput {
            model: Some("opus".into()),
            ..says("hard")
        }))
        .unwrap();
    assert!(matches!(&world.step.effects[0], Effect::StartModel { model, .. } if model == "opus"));
    world.say("Done.");
    let update = |model: &str| Command::Update {
        expect: None,
        title: Some("new".into()),
        model: Some(model.into()),
        mode: Some(PermissionMode::Plan),
        labels: None,
        budget: None,
    };
    world.command(update("haiku")).unwrap();
    let summary = world.summary();
    assert_eq!(
        (summary.name.as_str(), summary.model.as_str(), summary.mode),
        ("new", "haiku", PermissionMode::Plan)
    );
    world.send("easy");
    assert!(matches!(&world.step.effects[0], Effect::StartModel { model, .. } if model == "haiku"));
    world.models_work = false;
    assert_eq!(world.command(update("nope")).unwrap_err().code, "unusable_model");
    let nothing = Command::Update {
        expect: None,
        title: None,
        model: None,
        mode: None,
        labels: None,
        budget: None,
    };
    assert_eq!(world.command(nothing).unwrap_err().code, "nothing_to_change");
}

#[test]
fn of_two_updates_that_expect_the_same_settings_only_the_first_is_carried_out() {
    let mut world = World::idle(LoopLimits::default());
    let shown = ShownSettings::from(&world.summary());
    let update = |title: &str, expect: &ShownSettings| Command::Update {
        expect: Some(Box::new(expect.clone())),
        title: Some(title.into()),
        model: None,
        mode: None,
        labels: None,
        budget: None,
    };
    // Events that change no setting do not matter.
    world.send("hello");
    world.say("Hello.");
    world.command(update("one", &shown)).unwrap();
    let refused = world.command(update("two", &shown)).unwrap_err();
    assert_eq!(
        (refused.code.as_str(), world.summary().name.as_str()),
        ("settings_changed", "one")
    );
    let now = ShownSettings::from(&world.summary());
    world.command(update("two", &now)).unwrap();
    assert_eq!(world.summary().name, "two");
}

#[test]
fn a_session_is_created_once_and_before_anything_else() {
    let mut world = World::idle(LoopLimits::default());
    let again = Command::Create {
        created: Box::new(created(LoopLimits::default())),
        first: None,
    };
    assert_eq!(world.command(again).unwrap_err().class, FaultClass::Conflict);
    world.crash_at(0);
    assert_eq!(
        world.command(Command::Send(says("x"))).unwrap_err().class,
        FaultClass::NotFound
    );
    let empty = Command::Create {
        created: Box::new(created(LoopLimits::default())),
        first: Some(says("")),
    };
    assert_eq!(world.command(empty).unwrap_err().class, FaultClass::Invalid);
    assert_eq!(world.step.events, []);
}
