//! Tests that a failed singleton restarts alone.

use super::script::{MODEL, NARROW, READ, TALK};
use super::world::{How, LONG, PERMITS, World, attempts, kinds, last_text, until_state};
use crate::children::Child;
use agentd_actor_kit::{Ask, Done, JudgeRequest, Lane, ModelMsg, ToolMsg};
use agentd_protocol::{
    EffectClass, Event, EventBody, RunState, SessionId, ToolStatus, VerdictKind, WaitReason,
};

/// Brings down a singleton while the model talks in one session. Afterwards only that singleton is a new incarnation,
/// the session's log shows no trace of the failure, and new sessions work.
async fn it_costs_only_itself(child: &Child) {
    for how in [How::Kill, How::Panic] {
        let world = World::new().await;
        let before = world.ids();
        let undisturbed = world.create(READ).await;
        let undisturbed = kinds(&world.finished(undisturbed).await);
        let session = world.create(READ).await;
        world.until(session, "model.started").await;
        world.bring_down(child, how);
        world.restarted(1).await;
        assert_eq!(world.replaced(&before), std::slice::from_ref(child), "{how:?}");
        let events = world.finished(session).await;
        assert_eq!(kinds(&events), undisturbed, "{how:?}");
        assert!(last_text(&events).contains("forty-two"), "{how:?}");
        world.assert_it_works().await;
    }
}

#[tokio::test(start_paused = true)]
async fn i6_the_feed_fails_alone() {
    it_costs_only_itself(&Child::Feed).await;
}

#[tokio::test(start_paused = true)]
async fn i6_the_tool_executor_fails_alone() {
    it_costs_only_itself(&Child::ToolExecutor).await;
}

#[tokio::test(start_paused = true)]
async fn i6_the_indexer_fails_alone() {
    it_costs_only_itself(&Child::Indexer).await;
}

#[tokio::test(start_paused = true)]
async fn i6_the_permission_gate_fails_alone() {
    it_costs_only_itself(&Child::PermissionGate).await;
}

#[tokio::test(start_paused = true)]
async fn i6_a_model_client_fails_alone_and_its_open_calls_continue() {
    it_costs_only_itself(&Child::ModelClient(MODEL.to_owned())).await;
}

#[tokio::test(start_paused = true)]
async fn viewers_of_a_failed_feed_are_notified_and_can_follow_again() {
    let world = World::new().await;
    let session = world.create(TALK).await;
    let mut frames = world.follow(session).await;
    world.bring_down(&Child::Feed, How::Kill);
    let ended = async { while frames.recv().await.is_some() {} };
    tokio::time::timeout(LONG, ended)
        .await
        .expect("the queue stays open");
    world.restarted(1).await;
    let mut frames = world.follow(session).await;
    until_state(&mut frames, RunState::Idle).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_permit_gets_it_from_the_next_model_client() {
    let world = World::new().await;
    let ask = Ask {
        session: SessionId::NIL,
        model: "narrow".to_owned(),
        credential: None,
        group: String::new(),
        lane: Lane::Interactive,
        input_tokens: 0,
        output_tokens: 0,
        insists: false,
    };
    let acquire = |done| ModelMsg::Acquire { ask, done };
    let _permit = world.handles.models[NARROW].call(LONG, acquire).await.unwrap();
    let session = world.new_id();
    let mut frames = world.follow(session).await;
    world.create_as(session, NARROW, TALK).await;
    until_state(&mut frames, RunState::Waiting(WaitReason::Permit)).await;
    world.bring_down(&Child::ModelClient(NARROW.to_owned()), How::Kill);
    let events = world.finished(session).await;
    assert_eq!(attempts(&events), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_that_waits_for_a_permit_gets_it_from_the_next_executor() {
    let world = World::new().await;
    let mut permits = Vec::new();
    for _ in 0..PERMITS {
        let acquire = |done| ToolMsg::Acquire {
            session: SessionId::NIL,
            class: EffectClass::Read,
            workdir: "/".into(),
            done,
        };
        permits.push(world.handles.tools.call(LONG, acquire).await.unwrap());
    }
    let session = world.new_id();
    let mut frames = world.follow(session).await;
    world.create_as(session, MODEL, READ).await;
    until_state(&mut frames, RunState::Waiting(WaitReason::Permit)).await;
    world.bring_down(&Child::ToolExecutor, How::Kill);
    let events = world.finished(session).await;
    assert!(last_text(&events).contains("forty-two"));
}

#[tokio::test(start_paused = true)]
async fn i7_while_the_gate_is_down_nothing_is_allowed() {
    let world = World::new().await;
    // The next gate does not get the rules that users added, so it does not start.
    world.log.stall(Some(SessionId::NIL));
    world.bring_down(&Child::PermissionGate, How::Kill);
    let session = world.create(READ).await;
    let events = world.finished(session).await;
    assert_eq!(verdicts(&events), [(VerdictKind::Deny, "gate:error".to_owned())]);
    assert_eq!(results(&events), [ToolStatus::Denied]);
    world.log.stall(None);
    world.restarted(1).await;
    world.assert_it_works().await;
}

#[tokio::test(start_paused = true)]
async fn i7_a_question_lost_with_the_gate_stays_unanswered() {
    let world = World::new().await;
    let request = Box::new(JudgeRequest {
        session: SessionId::NIL,
        tool: "Read".into(),
        subject: agentd_policy::Subject::Nothing,
        effect: EffectClass::Read,
        mode: agentd_protocol::PermissionMode::Yolo,
        workdir: "/".into(),
        rules: Vec::new(),
        here: agentd_policy::Here::default(),
        grants: Vec::new(),
        always: Vec::new(),
    });
    let (done, judgement) = Done::channel();
    let gate = world.handles.gate.clone();
    gate.cast(agentd_actor_kit::GateMsg::Judge { request, done });
    world.bring_down(&Child::PermissionGate, How::Kill);
    assert!(judgement.await.is_err());
}

fn verdicts(events: &[Event]) -> Vec<(VerdictKind, String)> {
    let verdict = |event: &Event| match &event.body {
        EventBody::VerdictGiven(given) => Some((given.verdict.kind, given.verdict.rule.clone())),
        _ => None,
    };
    events.iter().filter_map(verdict).collect()
}

fn results(events: &[Event]) -> Vec<ToolStatus> {
    let status = |event: &Event| match &event.body {
        EventBody::ToolFinished(finished) => Some(finished.outcome.status),
        _ => None,
    };
    events.iter().filter_map(status).collect()
}
