//! Commands and their routing.

use super::peers::Trick;
use super::world::{World, creation, input, rename};
use agentd_actor_kit::{Done, Routed, SupervisorMsg};
use agentd_protocol::{FaultClass, LoopLimits, Principal};
use agentd_store::{IdempotencyKey, SessionLog as _};
use agentd_turn::{Command, Reply};

#[tokio::test(start_paused = true)]
async fn an_unknown_session_is_not_found_and_costs_nothing() {
    let world = World::new().await;
    let fault = world
        .ask(world.clock.stamp().session(), rename("x"))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::NotFound);
    assert_eq!(world.stats().await.hot, 0);
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_is_refused_leaves_nothing_behind() {
    let mut world = World::new().await;
    let session = world.clock.stamp().session();
    let fault = world
        .ask(session, creation(LoopLimits::default(), Some("")))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Invalid);
    world.until_cold(session).await;
    assert_eq!(world.strings.log.count().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_created_once() {
    let world = World::new().await;
    let session = world.create().await;
    let fault = world
        .ask(session, creation(LoopLimits::default(), None))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Conflict);
}

#[tokio::test(start_paused = true)]
async fn commands_wait_while_a_session_is_loaded_but_not_without_bound() {
    let mut world = World::new().await;
    let session = world.create_with(LoopLimits::default(), None).await;
    world.until_cold(session).await;
    let answers: Vec<_> = (0..65)
        .map(|n| world.post(session, rename(&n.to_string())))
        .collect();
    let mut classes = Vec::new();
    for answer in answers {
        classes.push(answer.await.unwrap().err().map(|fault| fault.class));
    }
    assert!(classes[..64].iter().all(Option::is_none), "{classes:?}");
    assert_eq!(classes[64], Some(FaultClass::Busy));
}

#[tokio::test(start_paused = true)]
async fn i1_a_key_is_kept_with_the_answer_that_its_command_got() {
    let mut world = World::new().await;
    let session = world.create_with(LoopLimits::default(), None).await;
    let key = |hash| IdempotencyKey {
        principal: Principal::user("ana"),
        key: "k1".into(),
        method: "input.send".into(),
        body_hash: [hash; 32],
        answer: String::new(),
    };
    let send = |hash| {
        let (done, answer) = Done::channel();
        let command = Box::new(Command::Send(input("go")));
        let routed = Routed {
            session,
            command,
            by: Principal::user("ana"),
            key: Some(key(hash)),
            done,
        };
        world.supervisor.cast(SupervisorMsg::Route(routed)).unwrap();
        answer
    };
    let first = send(1).await.unwrap().unwrap();
    let Reply::Sent { input, seq } = first else {
        panic!("{first:?}")
    };
    let stored = world
        .strings
        .log
        .key(&Principal::user("ana"), "k1")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        stored.answer,
        serde_json::json!({ "input": input, "seq": seq }).to_string()
    );
    // The same command again, past the first key check: it gets the first answer, and the log has one input.
    assert_eq!(send(1).await.unwrap(), Ok(Reply::Sent { input, seq }));
    let again = send(2).await.unwrap().unwrap_err();
    assert_eq!(
        (again.class, again.code.as_str()),
        (FaultClass::Conflict, "key_reused")
    );
    let inputs = world
        .kinds(session)
        .await
        .into_iter()
        .filter(|kind| *kind == "input.accepted")
        .count();
    assert_eq!(inputs, 1);
    world.model().await;
}

#[tokio::test(start_paused = true)]
async fn i6_with_a_full_store_a_creation_is_refused_and_leaves_nothing_behind() {
    let mut world = World::new().await;
    for _ in 0..9 {
        world.trick(Trick::Answer(agentd_store::Outcome::Full));
    }
    // Its turn begins before its first event is durable.
    let session = world.clock.stamp().session();
    let fault = world
        .ask(session, creation(LoopLimits::default(), Some("do it")))
        .await
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Storage, "disk_full")
    );
    world.strings.tricks.lock().unwrap().clear();
    world.until_cold(session).await;
    assert_eq!(world.strings.log.count().await.unwrap(), 0);
    world.create().await;
}

#[tokio::test(start_paused = true)]
async fn with_a_full_store_commands_are_refused_and_nothing_is_lost() {
    let mut world = World::new().await;
    let session = world.create_with(LoopLimits::default(), None).await;
    for _ in 0..3 {
        world.trick(Trick::Answer(agentd_store::Outcome::Full));
    }
    let first = world.post(session, rename("first"));
    while world.strings.tricks.lock().unwrap().len() == 3 {
        tokio::task::yield_now().await;
    }
    let fault = world.ask(session, rename("second")).await.unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Storage, "disk_full")
    );
    // Only this command waits for space: it gets an error, and is not executed later.
    let fault = first.await.unwrap().unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Storage, "disk_full")
    );
    world.strings.tricks.lock().unwrap().clear();
    let mut third = world.ask(session, rename("third")).await;
    while third
        .as_ref()
        .is_err_and(|fault| fault.class == FaultClass::Unavailable)
    {
        third = world.ask(session, rename("third")).await;
    }
    third.unwrap();
    world.until(session, "session.updated").await;
    let kinds = world.kinds(session).await;
    let updates = kinds.into_iter().filter(|kind| *kind == "session.updated");
    assert_eq!(updates.count(), 1);
}
