//! Parked sessions: waiting for a rate limit, a quota, a credential.

use super::world::*;
use crate::*;
use FailureClass::*;
use agentd_protocol::*;

const MINUTE: u64 = 60_000;
const DAY: u64 = 86_400_000;

fn resume(world: &mut World) {
    world
        .command(Command::Resume {
            moved: None,
            reason: "x".into(),
        })
        .unwrap();
}

#[test]
fn a_long_wish_parks_the_session_and_it_wakes_by_itself() {
    let mut world = World::running(LoopLimits::default());
    world.fail_with(RateLimited, Some(90_000));
    assert_eq!(world.kinds(), ["model.failed"]);
    assert_eq!(world.remedies(), [Some(Remedy::Park)]);
    assert!(
        (90_000..=99_000).contains(&world.backoff_ms()),
        "a little later, not in a herd"
    );
    let until = Timestamp(world.now + world.backoff_ms());
    let status = world.agent.status(Timestamp(world.now));
    assert_eq!(
        (status.state, status.until, status.attempt),
        (RunState::Waiting(WaitReason::RateLimit), Some(until), Some(2))
    );
    assert_eq!(
        status.reason,
        format!("tried again at {until}, or by `resume`: the provider asks to wait: it failed")
    );
    assert!(world.agent.at_rest());
    assert_eq!(world.summary().wake_at, Some(until));
    let steer = world.send("and hurry");
    assert_eq!(world.kinds(), ["input.accepted"], "an input does not wake it");
    world.fire(TimerKey::Backoff);
    assert_eq!(world.kinds(), ["model.started"]);
    assert_eq!(world.joined().last(), Some(&vec![steer]), "it joins at the retry");
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn a_restart_while_parked_changes_nothing() {
    let mut world = World::running(LoopLimits::default());
    world.fail_with(RateLimited, Some(500_000));
    let before = (world.state(), world.summary().wake_at);
    world.restart();
    assert_eq!(world.step.events, []);
    assert_eq!((world.state(), world.summary().wake_at), before);
    assert!(world.agent.at_rest());
    world.fire(TimerKey::Backoff);
    assert_eq!(world.kinds(), ["model.started"]);
}

#[test]
fn a_person_can_resume_a_parked_session_and_cancel_it() {
    let mut world = World::running(LoopLimits::default());
    world.fail(QuotaExhausted);
    assert_eq!(world.state(), RunState::Waiting(WaitReason::Quota));
    let mut cancelled = world.clone();
    cancelled.cancel().unwrap();
    assert_eq!(
        (cancelled.kinds(), cancelled.timers.len()),
        (vec!["turn.finished"], 0)
    );
    resume(&mut world);
    assert_eq!(world.kinds(), ["session.resumed", "model.started"]);
    assert!(world.timers.is_empty());
    world.say("Done.");
    resume(&mut world);
    assert_eq!(world.step.events, [], "nothing is parked any more");
}

#[test]
fn only_a_person_insists_on_an_attempt_whatever_the_provider_was_found_to_be() {
    let mut world = World::running(LoopLimits::default());
    let mut insisted = vec![world.start().insists];
    world.fail(QuotaExhausted);
    world.fire(TimerKey::Backoff);
    insisted.push(world.start().insists);
    world.fail(QuotaExhausted);
    resume(&mut world);
    insisted.push(world.start().insists);
    world.fail(Overloaded);
    world.fire(TimerKey::Backoff);
    insisted.push(world.start().insists);
    assert_eq!(insisted, [false, false, true, false]);
}

#[test]
fn a_paused_session_that_is_parked_is_resumed_in_two_steps() {
    let mut world = World::running(LoopLimits::default());
    world.fail(QuotaExhausted);
    world.command(Command::Pause { reason: "x".into() }).unwrap();
    assert_eq!(world.state(), RunState::Paused);
    resume(&mut world);
    assert_eq!(world.kinds(), ["session.resumed"]);
    assert_eq!(world.state(), RunState::Waiting(WaitReason::Quota));
    resume(&mut world);
    assert_eq!(world.kinds(), ["session.resumed", "model.started"]);
}

#[test]
fn waits_of_our_own_grow_from_ten_minutes_to_an_hour_and_end_after_a_day() {
    let mut world = World::running(LoopLimits::default());
    let begin = world.now;
    for minutes in [10, 20, 40, 60, 60] {
        world.fail(Auth);
        let plain = minutes * MINUTE;
        assert!(
            (plain..=plain + 10_000).contains(&world.backoff_ms()),
            "{}",
            world.backoff_ms()
        );
        assert_eq!(world.state(), RunState::Waiting(WaitReason::Credentials));
        world.fire(TimerKey::Backoff);
    }
    while world.agent.durable().turn.is_some() {
        world.fail(Auth);
        if world.agent.durable().turn.is_some() {
            world.fire(TimerKey::Backoff);
        }
    }
    assert!((DAY - 61 * MINUTE..=DAY).contains(&(world.now - begin)));
    let error = world.ended().error.unwrap();
    assert_eq!(
        (world.reason(), error.class.as_str()),
        (EndReason::ModelError, "auth")
    );
    assert_eq!(world.summary().usage.total(), 0);
    assert!(
        world.agent.durable().spent_ms(Timestamp(world.now)) < MINUTE,
        "rest is no work"
    );
}

#[test]
fn a_provider_that_is_down_is_not_taken_for_a_rate_limit() {
    for class in [Overloaded, Transient] {
        let mut world = World::running(LoopLimits::default());
        world.fail_with(class, Some(90_000));
        assert_eq!(world.state(), RunState::Waiting(WaitReason::Provider));
    }
}

#[test]
fn a_wish_that_is_longer_than_our_patience_ends_the_call() {
    for (wish, parks) in [(DAY - 10_000, true), (DAY + 1, false)] {
        let mut world = World::running(LoopLimits::default());
        world.fail_with(RateLimited, Some(wish));
        assert_eq!(world.agent.durable().parked(), parks);
    }
}

#[test]
fn a_refused_place_is_waited_for_and_is_no_retry() {
    let mut world = World::running(LoopLimits::default());
    for _ in 0..20 {
        world.fail_as(ModelFailure {
            retry_after_ms: Some(2_000),
            refused: true,
            ..failure(RateLimited)
        });
        assert_eq!(world.state(), RunState::Waiting(WaitReason::RateLimit));
        world.fire(TimerKey::Backoff);
    }
    world.fail(RateLimited);
    assert_eq!(world.state(), RunState::BackingOff);
    assert!(world.backoff_ms() <= 1_250, "the first real failure");
}

#[test]
fn another_model_chosen_while_parked_is_used_at_the_retry() {
    let mut world = World::running(LoopLimits::default());
    world.fail(QuotaExhausted);
    world
        .command(Command::Update {
            expect: None,
            title: None,
            model: Some("haiku".into()),
            mode: None,
            labels: None,
            budget: None,
        })
        .unwrap();
    resume(&mut world);
    assert_eq!(world.start().model, "haiku");
}
