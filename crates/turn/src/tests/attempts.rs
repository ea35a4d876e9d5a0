//! Model calls: retries, back-off, giving up, stale attempts, every end reason that a model causes.

use super::world::*;
use crate::*;
use FailureClass::*;
use agentd_protocol::*;

#[test]
fn a_failing_model_is_tried_again_after_1_2_4_8_and_16_seconds() {
    let mut world = World::running(LoopLimits::default());
    for (n, plain) in (0_u32..).zip([1_000, 2_000, 4_000, 8_000, 16_000]) {
        world.fail([Transient, Overloaded, RateLimited][n as usize % 3]);
        assert_eq!(world.kinds(), ["model.failed"]);
        assert!(
            (plain * 3 / 4..=plain * 5 / 4).contains(&world.backoff_ms()),
            "{}",
            world.backoff_ms()
        );
        assert_eq!(world.state(), RunState::BackingOff);
        world.fire(TimerKey::Backoff);
        assert_eq!(world.kinds(), ["model.started"]);
        assert_eq!(world.models[0].1, n + 2, "the same call, the next attempt");
    }
    world.fail(Transient);
    assert_eq!(world.kinds(), ["model.failed", "turn.finished"]);
    assert_eq!(
        (world.reason(), world.state()),
        (EndReason::ModelError, RunState::Failed)
    );
    assert_eq!(world.ended().steps, 1, "attempts are no steps");
    assert!(world.timers.is_empty());
}

#[test]
fn the_back_off_has_a_cap() {
    let mut world = World::idle(LoopLimits::default());
    let config = Config {
        max_retries: 50,
        ..(*config()).clone()
    };
    world.agent = Agent {
        config: config.into(),
        ..world.agent.clone()
    };
    world.send("go");
    for _ in 0..40 {
        world.fail(Overloaded);
        assert!(world.backoff_ms() <= 30_000);
        world.fire(TimerKey::Backoff);
    }
}

#[test]
fn the_servers_wish_wins_when_it_is_longer() {
    let mut world = World::running(LoopLimits::default());
    world.fail_with(RateLimited, Some(29_000));
    assert!((29_000..=31_900).contains(&world.backoff_ms()));
    assert_eq!(world.state(), RunState::BackingOff);
    assert!(!world.agent.at_rest());
    world.fire(TimerKey::Backoff);
    world.fail_with(RateLimited, Some(1));
    assert!(
        world.backoff_ms() >= 1_500,
        "a shorter wish does not shorten ours"
    );
    assert_eq!(world.remedies(), [None, None]);
}

#[test]
fn our_own_bug_is_tried_again_once() {
    let mut world = World::running(LoopLimits::default());
    world.fail(Internal);
    world.fire(TimerKey::Backoff);
    world.fail(Cancelled);
    assert_eq!(
        (world.reason(), world.ended().error.unwrap().class.as_str()),
        (EndReason::ModelError, "internal")
    );
}

#[test]
fn what_a_retry_does_not_help_ends_the_turn_at_once() {
    for (class, reason, word) in [
        (InvalidRequest, EndReason::ModelError, "invalid_request"),
        (ContentFilter, EndReason::Refused, "content_filter"),
    ] {
        let mut world = World::running(LoopLimits::default());
        world.fail(class);
        assert_eq!(world.kinds(), ["model.failed", "turn.finished"]);
        let error = world.ended().error.unwrap();
        assert_eq!((world.reason(), error.class.as_str()), (reason, word));
        assert!(error.message.starts_with("it failed ("), "{}", error.message);
        assert_eq!(world.summary().last_error, Some(error));
        assert_eq!(world.state(), RunState::Failed);
    }
}

#[test]
fn a_model_that_cannot_be_used_ends_the_turn_with_the_fix_and_loses_nothing() {
    let mut world = World::idle(LoopLimits::default());
    world.models_work = false;
    let first = world.send("do it");
    assert_eq!(world.kinds(), ["input.accepted", "turn.started", "turn.finished"]);
    assert_eq!(world.reason(), EndReason::InitializationFailed);
    assert_eq!(world.ended().error.unwrap().message, "no key: set KEY");
    assert!(world.agent.at_rest());
    world.models_work = true;
    let second = world.send("the key is there now");
    assert_eq!(world.joined(), [vec![first, second]]);
}

#[test]
fn a_session_is_created_and_runs_in_one_step() {
    let mut world = World::idle(LoopLimits::default());
    world.agent = Agent::new(SessionId::NIL, config());
    world.crash_at(0);
    world.log.clear();
    let created = Box::new(created(LoopLimits::default()));
    let reply = world.command(Command::Create {
        created,
        first: Some(says("go")),
    });
    assert_eq!(
        world.kinds(),
        [
            "session.created",
            "input.accepted",
            "turn.started",
            "model.started"
        ]
    );
    let Ok(Reply::Created {
        input: Some(input),
        seq: 4,
    }) = reply
    else {
        panic!("{reply:?}")
    };
    assert_eq!(world.joined(), [vec![input]]);
    let by: Vec<&str> = world
        .step
        .events
        .iter()
        .map(|event| event.by.0.as_str())
        .collect();
    assert_eq!(by, ["user:ana", "user:ana", "agentd", "agentd"]);
    let EventBody::ModelStarted(started) = &world.step.events[3].body else {
        panic!()
    };
    assert_eq!(
        (started.step, started.max_steps, started.model.as_str()),
        (1, 100, "sonnet-5")
    );
    // The conversation so far, and the input that joins.
    assert_eq!(started.input_tokens_estimate, 7 + 1);
}

#[test]
fn words_of_a_stale_attempt_are_ignored() {
    let mut world = World::running(LoopLimits::default());
    let (call, attempt) = world.models[0];
    world.fail(Transient);
    world.fire(TimerKey::Backoff);
    for input in [
        Input::ModelText {
            call,
            attempt,
            text: "a".repeat(900),
        },
        Input::ModelAnswered {
            call,
            attempt,
            answer: answer_of(vec![Block::text("old")], StopReason::EndTurn),
        },
        Input::ModelFailed {
            call,
            attempt,
            failure: failure(Auth),
        },
    ] {
        world.input(input);
        assert_eq!(world.step, Step::default());
    }
    world.say("new");
    assert_eq!(world.ended().text, "new");
}

#[test]
fn a_cancelled_stream_keeps_its_partial_text() {
    let mut world = World::running(LoopLimits::default());
    world.text("Half a ");
    world.text("sentence");
    world.cancel().unwrap();
    assert_eq!(world.kinds(), ["model.failed", "turn.finished"]);
    let EventBody::ModelFailed(failed) = &world.step.events[0].body else {
        panic!()
    };
    assert_eq!(
        (failed.class, failed.partial.as_deref()),
        (Cancelled, Some("Half a sentence"))
    );
    assert_eq!(
        (world.reason(), world.ended().text.as_str()),
        (EndReason::Cancelled, "Half a sentence")
    );
    assert!(world.models.is_empty(), "the worker was killed");
    assert_eq!(
        (world.state(), world.summary().last_error),
        (RunState::Idle, None)
    );
}

#[test]
fn a_paused_turn_of_the_provider_goes_on() {
    let mut world = World::running(LoopLimits::default());
    world.answer(vec![Block::text("…")], StopReason::PauseTurn);
    assert_eq!(world.kinds(), ["model.finished", "model.started"]);
}

#[test]
fn an_unknown_stop_reason_is_the_end_with_a_warning() {
    let mut world = World::running(LoopLimits::default());
    world.answer(vec![Block::text("Done.")], StopReason::Other);
    assert_eq!(
        world.kinds(),
        ["model.finished", "warning.raised", "turn.finished"]
    );
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn a_server_whose_name_does_not_exist_is_given_up_sooner() {
    let failures = |advice: Option<Advice>| {
        let mut world = World::running(LoopLimits::default());
        for count in 1.. {
            world.fail_as(ModelFailure {
                advice: advice.clone(),
                ..failure(FailureClass::Transient)
            });
            if world.agent.durable().turn.is_none() {
                return count;
            }
            world.fire(TimerKey::Backoff);
        }
        0
    };
    assert_eq!((failures(Some(Advice::NoSuchHost)), failures(None)), (2, 6));
}
