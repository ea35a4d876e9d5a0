//! Lifecycle hooks.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use std::sync::Arc;

fn hearing(events: &[HookEvent]) -> World {
    world_of(created(LoopLimits::default()), events)
}

fn world_of(created: SessionCreated, events: &[HookEvent]) -> World {
    let config = Config {
        hooks: events.to_vec(),
        ..(*config()).clone()
    };
    World::configured(created, Arc::new(config))
}

fn said(event: HookEvent) -> HookFinished {
    HookFinished {
        tool_call: None,
        prompt: None,
        hook: "h".into(),
        event,
        status: HookStatus::Ok,
        decision: None,
        reason: None,
        input: None,
        context: None,
        output: None,
        replaced: None,
        duration_ms: 1,
    }
}

fn denial(event: HookEvent, why: &str) -> HookFinished {
    HookFinished {
        status: HookStatus::Blocked,
        decision: Some(VerdictKind::Deny),
        reason: Some(why.into()),
        ..said(event)
    }
}

/// Answers the oldest request for this event.
fn hear(world: &mut World, event: HookEvent, change: impl FnOnce(HookFinished) -> HookFinished) {
    let number = world
        .asked
        .iter()
        .find_map(|(number, topic)| (topic.event() == event).then_some(*number))
        .expect("hooks are asked");
    world.asked.remove(&number);
    let records = vec![change(said(event))];
    world.reply_to(number, Answer::Hooks(records));
}

fn asked(world: &World) -> Vec<HookEvent> {
    world.asked.values().map(LifecycleEvent::event).collect()
}

#[test]
fn nobody_is_asked_who_did_not_want_to_hear() {
    let mut world = hearing(&[]);
    world.send("do it");
    world.say("Done.");
    assert!(asked(&world).is_empty());
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn an_input_joins_when_hooks_let_it_in_and_what_they_add_comes_with_it() {
    let mut world = hearing(&[HookEvent::UserPromptSubmit]);
    let input = world.send("do it");
    assert_eq!(world.kinds(), ["input.accepted"]);
    assert_eq!(world.state(), RunState::Starting);
    assert!(!world.agent.at_rest());
    hear(&mut world, HookEvent::UserPromptSubmit, |said| HookFinished {
        context: Some("it is Friday".into()),
        prompt: Some(input),
        ..said
    });
    assert_eq!(
        world.kinds(),
        ["hook.finished", "turn.started", "note.injected", "model.started"]
    );
    assert_eq!(
        world.notes(),
        [(NoteKind::HookContext, "[hook h] it is Friday".to_owned())]
    );
    world.say("Done.");
    world.check_log();
}

#[test]
fn an_input_that_hooks_block_is_cancelled_with_the_reason_and_starts_nothing() {
    let mut world = hearing(&[HookEvent::UserPromptSubmit]);
    let input = world.send("do it");
    hear(&mut world, HookEvent::UserPromptSubmit, |said| {
        denial(said.event, "no secrets")
    });
    assert_eq!(world.kinds(), ["hook.finished", "input.cancelled"]);
    let EventBody::InputCancelled(cancelled) = &world.step.events[1].body else {
        panic!()
    };
    let reason = Some("hook h: no secrets".to_owned());
    assert_eq!(*cancelled, InputCancelled { input, reason });
    assert_eq!(world.state(), RunState::Idle);
    world.check_log();
}

#[test]
fn a_steer_joins_only_when_hooks_let_it_in_and_the_turn_does_not_wait_for_it() {
    let mut world = hearing(&[HookEvent::UserPromptSubmit]);
    world.send("do it");
    hear(&mut world, HookEvent::UserPromptSubmit, |said| said);
    let steer = world.send("and that");
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
    hear(&mut world, HookEvent::UserPromptSubmit, |said| said);
    assert_eq!(world.joined().last(), Some(&vec![steer]));
    world.say("Done, too.");
    world.check_log();
}

#[test]
fn after_a_restart_hooks_are_asked_again_about_what_has_not_joined() {
    let mut world = hearing(&[HookEvent::UserPromptSubmit, HookEvent::SessionStart]);
    world.send("do it");
    assert_eq!(
        asked(&world),
        [HookEvent::SessionStart, HookEvent::UserPromptSubmit]
    );
    hear(&mut world, HookEvent::SessionStart, |said| said);
    world.restart();
    assert_eq!(
        asked(&world),
        [HookEvent::UserPromptSubmit],
        "one answer was durable"
    );
    hear(&mut world, HookEvent::UserPromptSubmit, |said| said);
    world.restart();
    assert!(asked(&world).is_empty(), "it has joined");
    world.say("Done.");
    world.check_log();
}

#[test]
fn the_first_turn_waits_for_what_hooks_of_the_beginning_add() {
    let mut world = hearing(&[HookEvent::SessionStart]);
    world.send("do it");
    assert!(world.models.is_empty());
    hear(&mut world, HookEvent::SessionStart, |said| HookFinished {
        context: Some("welcome".into()),
        ..said
    });
    assert_eq!(
        world.kinds(),
        ["hook.finished", "note.injected", "turn.started", "model.started"]
    );
    world.say("Done.");
    world.send("again");
    assert!(asked(&world).is_empty());
}

#[test]
fn a_hook_of_the_end_has_the_turn_go_on_so_often_and_no_more() {
    let mut world = hearing(&[HookEvent::Stop]);
    world.send("do it");
    for round in 0..3 {
        world.say("Done.");
        let Some(LifecycleEvent::Stop { rounds, .. }) = world.asked.values().next() else {
            panic!("no hook is asked in round {round}")
        };
        assert_eq!(*rounds, round);
        assert_eq!(world.state(), RunState::Starting);
        hear(&mut world, HookEvent::Stop, |said| {
            denial(said.event, "the tests fail")
        });
    }
    assert_eq!(world.ended().reason, EndReason::Completed);
    assert_eq!(world.ended().steps, 3);
    let note = "The turn does not end yet. hook h: the tests fail".to_owned();
    assert_eq!(world.notes(), vec![(NoteKind::HookContext, note); 2]);
    world.check_log();
}

#[test]
fn after_a_restart_hooks_of_the_end_are_asked_again_and_what_they_wanted_stays() {
    let mut world = hearing(&[HookEvent::Stop]);
    world.send("do it");
    world.say("Done.");
    world.restart();
    assert_eq!(asked(&world), [HookEvent::Stop]);
    world
        .command(Command::Pause {
            reason: "lunch".into(),
        })
        .unwrap();
    hear(&mut world, HookEvent::Stop, |said| denial(said.event, "not yet"));
    assert!(world.models.is_empty(), "it is paused");
    world.restart();
    world
        .command(Command::Resume {
            moved: None,
            reason: "back".into(),
        })
        .unwrap();
    assert_eq!(world.models.len(), 1, "another model call");
    world.check_log();
}

#[test]
fn a_steer_makes_the_question_of_the_end_moot() {
    let mut world = hearing(&[HookEvent::Stop]);
    world.send("do it");
    world.say("Done.");
    let number = *world.asked.keys().next().unwrap();
    world.send("one more thing");
    assert!(asked(&world).is_empty(), "they are dropped");
    assert_eq!(world.models.len(), 1);
    let records = vec![denial(HookEvent::Stop, "stale")];
    assert!(world.reply_to(number, Answer::Hooks(records)).events.is_empty());
    world.say("Done.");
    hear(&mut world, HookEvent::Stop, |said| said);
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn the_end_of_a_child_is_told_as_one() {
    let parent = SessionCreated {
        parent: Some(SessionId::NIL),
        ..created(LoopLimits::default())
    };
    let mut world = world_of(parent, &[HookEvent::Stop, HookEvent::SubagentStop]);
    world.send("do it");
    world.say("Done.");
    assert_eq!(asked(&world), [HookEvent::SubagentStop]);
    hear(&mut world, HookEvent::SubagentStop, |said| said);
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn a_cancelled_turn_waits_for_no_hook() {
    let mut world = hearing(&[HookEvent::Stop]);
    world.send("do it");
    world.say("Done.");
    world.cancel().unwrap();
    assert!(asked(&world).is_empty());
    assert_eq!(world.reason(), EndReason::Cancelled);
    world.check_log();
}

#[test]
fn people_are_notified_of_questions_ends_and_failures_and_nothing_waits_for_it() {
    let mut world = hearing(&[HookEvent::Notification]);
    world.send("do it");
    world.call(&["Bash"]);
    world.judge(VerdictKind::Ask);
    world.decide(Decision::Deny, Scope::Once).unwrap();
    world.say("Well.");
    world.send("again");
    world.fail(FailureClass::InvalidRequest);
    let notices: Vec<_> = world
        .asked
        .values()
        .map(|topic| match topic {
            LifecycleEvent::Notification { notice, .. } => *notice,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(notices, [Notice::Approval, Notice::Idle, Notice::Failed]);
    hear(&mut world, HookEvent::Notification, |said| said);
    assert_eq!(world.kinds(), ["hook.finished"]);
    world.restart();
    assert!(asked(&world).is_empty(), "what is told once is not told twice");
}

#[test]
fn i6_notifications_that_nobody_takes_are_dropped_beyond_a_bound() {
    let mut world = hearing(&[HookEvent::Notification]);
    for _ in 0..17 {
        world.send("do it");
        world.say("Done.");
    }
    assert_eq!(world.asked.len(), 16);
    assert_eq!(
        world
            .warnings()
            .iter()
            .map(|(code, _)| code.as_str())
            .collect::<Vec<_>>(),
        ["notification_dropped"]
    );
}

#[test]
fn hooks_hear_of_the_close_and_the_session_rests_after_them() {
    let mut world = hearing(&[HookEvent::SessionEnd, HookEvent::Stop]);
    world.send("do it");
    world.say("Done.");
    let close = Command::Close {
        reason: "enough".into(),
        force: true,
    };
    world.command(close).unwrap();
    assert_eq!(asked(&world), [HookEvent::SessionEnd]);
    assert!(!world.agent.at_rest());
    hear(&mut world, HookEvent::SessionEnd, |said| said);
    assert!(world.agent.at_rest());
    world.check_log();
}

#[test]
fn a_compaction_that_hooks_allow_is_made_and_one_that_they_veto_is_not() {
    for veto in [false, true] {
        let mut world = hearing(&[HookEvent::Compaction]);
        world.send("do it");
        world.tokens = 90_000;
        world.fail(FailureClass::ContextOverflow);
        assert_eq!(asked(&world), [HookEvent::Compaction]);
        assert!(world.shrinks.is_empty());
        assert_eq!(world.state(), RunState::Compacting);
        hear(&mut world, HookEvent::Compaction, |said| {
            if veto { denial(said.event, "keep it") } else { said }
        });
        let how: Vec<_> = world.shrinks.iter().map(|(_, how, _)| *how).collect();
        let expected = if veto {
            Shrink::TruncateResults
        } else {
            Shrink::Compact
        };
        assert_eq!(how, [expected]);
        world.shrink();
        world.say("Done.");
        assert_eq!(world.reason(), EndReason::Completed);
        assert_eq!(world.warnings().len(), usize::from(veto));
    }
}

#[test]
fn i7_when_hooks_of_inputs_or_compactions_are_lost_what_they_may_prevent_is_prevented() {
    let mut world = hearing(&[HookEvent::UserPromptSubmit]);
    world.send("do it");
    // What the shell reports when the worker has crashed.
    hear(&mut world, HookEvent::UserPromptSubmit, |said| HookFinished {
        status: HookStatus::Failed,
        decision: Some(VerdictKind::Deny),
        ..said
    });
    assert_eq!(world.kinds(), ["hook.finished", "input.cancelled"]);
}

#[test]
fn a_compaction_that_hooks_are_asked_about_does_not_hold_the_drain_up() {
    let mut world = hearing(&[HookEvent::Compaction]);
    world.send("do it");
    world.tokens = 90_000;
    world.fail(FailureClass::ContextOverflow);
    world.input(Input::Drain);
    assert!(asked(&world).is_empty() && world.agent.at_rest());
    world.restart();
    hear(&mut world, HookEvent::Compaction, |said| said);
    assert_eq!(world.shrinks.len(), 1);
}

#[test]
fn a_draining_daemon_asks_nothing_and_the_next_one_does() {
    let mut world = hearing(&[HookEvent::Stop, HookEvent::UserPromptSubmit]);
    world.send("do it");
    world.input(Input::Drain);
    assert!(asked(&world).is_empty() && world.agent.at_rest());
    world.restart();
    hear(&mut world, HookEvent::UserPromptSubmit, |said| said);
    world.input(Input::Drain);
    world.say("Done.");
    assert!(asked(&world).is_empty() && world.agent.at_rest());
    world.restart();
    hear(&mut world, HookEvent::Stop, |said| said);
    assert_eq!(world.reason(), EndReason::Completed);
    world.check_log();
}
