//! Work on files and history: one at a time, between turns, repeated after a crash.

use super::world::*;
use crate::*;
use agentd_protocol::*;

fn rested() -> World {
    let mut world = World::running(LoopLimits::default());
    world.say("Done.");
    world
}

#[test]
fn i4_files_are_put_back_after_the_intent_and_the_model_is_told() {
    let mut world = rested();
    assert_eq!(
        world.rework(true, None),
        Ok(Reply::Done {
            seq: world.agent.durable().head
        })
    );
    assert_eq!(world.kinds(), ["history.started"]);
    assert!(!world.agent.at_rest());
    assert_eq!(world.state(), RunState::RunningTool);
    world.send("go on");
    assert!(world.models.is_empty(), "no turn starts meanwhile");
    world.reworked(true);
    assert_eq!(
        world.kinds(),
        ["undo.applied", "note.injected", "turn.started", "model.started"]
    );
    let (kind, text) = world.notes().pop().unwrap();
    assert_eq!(kind, NoteKind::HistoryNotice);
    assert!(text.contains("undid changes of these files: a."), "{text}");
}

#[test]
fn what_cannot_be_put_back_leaves_everything_as_it_is() {
    let mut world = rested();
    world.rework(true, Some(2)).unwrap();
    world.reworked(false);
    assert_eq!(world.kinds(), ["history.failed"]);
    assert_eq!(world.state(), RunState::Idle);
    assert_eq!(world.notes(), []);
}

#[test]
fn nobody_goes_back_in_a_running_turn_or_with_inputs_that_wait_or_twice() {
    let mut world = World::running(LoopLimits::default());
    let code = |reply: Result<Reply, Fault>| reply.unwrap_err().code;
    assert_eq!(code(world.rework(true, None)), "turn_running");
    world.say("Done.");
    let stale = Rework {
        head: 1,
        work: HistoryStarted::default(),
    };
    assert_eq!(
        code(world.command(Command::Rework(Box::new(stale)))),
        "session_moved_on"
    );
    world.command(Command::Pause { reason: "x".into() }).unwrap();
    world.send("later");
    assert_eq!(code(world.rework(false, Some(2))), "inputs_wait");
    world.rework(true, None).unwrap();
    assert_eq!(code(world.rework(true, None)), "history_busy");
    let close = Command::Close {
        reason: "x".into(),
        force: true,
    };
    assert_eq!(code(world.command(close)), "history_busy");
}

#[test]
fn i4_work_that_a_crash_cut_off_is_done_again() {
    let mut world = rested();
    world.rework(true, Some(2)).unwrap();
    let head = world.agent.durable().head;
    assert!(world.summary().resumable);
    world.restart();
    assert_eq!(world.kinds(), ["session.recovered"]);
    assert_eq!(world.reworking.as_ref().map(|work| work.seq), Some(head));
    world.reworked(true);
    assert_eq!(
        world.kinds(),
        ["undo.applied", "session.rewound", "note.injected"]
    );
    assert_eq!(world.agent.durable().history, None);
}

#[test]
fn the_plan_is_as_it_was_then_and_a_log_that_does_not_say_it_leaves_none() {
    let step = PlanStep {
        title: "read".into(),
        check: "it is read".into(),
        status: PlanStatus::Pending,
        evidence: None,
    };
    let then = PlanThen {
        steps: vec![step],
        replans: 1,
    };
    for plan in [then, PlanThen::default()] {
        let mut world = rested();
        let head = world.agent.durable().head;
        let work = HistoryStarted {
            rewind_to: Some(2),
            plan: plan.clone(),
            ..HistoryStarted::default()
        };
        world
            .command(Command::Rework(Box::new(Rework { head, work })))
            .unwrap();
        world.reworked(true);
        let stands = &world.agent.durable().plan;
        assert_eq!((&stands.steps, stands.replans), (&plan.steps, plan.replans));
    }
}

#[test]
fn files_are_not_put_back_while_sub_agents_may_still_change_them() {
    let mut world = super::delegating::parent(8);
    super::delegating::delegate(&mut world, &["Task"]);
    let child = world.children[0].1;
    world.cancel().unwrap();
    let refused = world.rework(true, None).unwrap_err();
    assert_eq!(refused.code, "subagents_running");
    world.end_child(child, EndReason::Cancelled).unwrap();
    assert!(world.rework(true, None).is_ok());
}
