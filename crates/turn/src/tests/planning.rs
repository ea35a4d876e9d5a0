//! Plan mode and its end, notes about mode and date, the intent gate, explicit plans.

use super::world::*;
use crate::*;
use agentd_protocol::*;

const DAY_MS: u64 = 86_400_000;

fn in_plan_mode() -> World {
    let mut world = World::with(SessionCreated {
        mode: PermissionMode::Plan,
        ..created(LoopLimits::default())
    });
    world.send("make it better");
    world
}

/// The gate allows the next call, which has this content.
fn allow(world: &mut World, request: LoopRequest) {
    let (tool_call, name) = world.judging.remove(0);
    let verdict = Verdict {
        kind: VerdictKind::Allow,
        rule: "mode:plan".into(),
        reason: "it only talks".into(),
    };
    let plan = CallPlan {
        effect: EffectClass::None,
        loop_request: Some(request),
        ..world.plan(&name)
    };
    let judged = Judged::Verdict { verdict, plan };
    world.judged(tool_call, judged);
}

fn shows_a_plan(world: &mut World) {
    world.call(&["ExitPlanMode"]);
    allow(world, LoopRequest::LeavePlanMode("# Summary".into()));
}

fn mode(world: &World) -> PermissionMode {
    world.agent.durable().settings.as_ref().unwrap().mode
}

fn set_mode(world: &mut World, mode: PermissionMode) {
    world
        .command(Command::Update {
            expect: None,
            title: None,
            model: None,
            mode: Some(mode),
            labels: None,
            budget: None,
        })
        .unwrap();
}

fn notes(world: &World) -> Vec<NoteKind> {
    world.notes().into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn an_approved_plan_ends_plan_mode() {
    let mut world = in_plan_mode();
    shows_a_plan(&mut world);
    let open = world.summary().open_approvals.remove(0);
    assert_eq!(
        (open.kind, open.detail.as_str()),
        (ApprovalKind::Plan, "# Summary")
    );
    assert_eq!(world.state(), RunState::Waiting(WaitReason::Approval));
    world.decide(Decision::Allow, Scope::Once).unwrap();
    assert_eq!(
        world.kinds(),
        [
            "approval.decided",
            "mode.changed",
            "tool.finished",
            "model.started"
        ]
    );
    assert_eq!(mode(&world), PermissionMode::Default);
    let (status, text) = world.results().remove(0);
    assert!(
        status == ToolStatus::Ok && text.contains("the mode is default now"),
        "{text}"
    );
    world.say("done");
    world.send("more");
    assert_eq!(
        notes(&world),
        [NoteKind::PlanReminder],
        "the result of the call said that it is over"
    );
}

#[test]
fn a_refused_plan_keeps_the_mode_and_never_stops_the_turn() {
    let mut world = World::with(SessionCreated {
        mode: PermissionMode::Plan,
        ..created(LoopLimits {
            on_deny: OnDeny::Stop,
            ..LoopLimits::default()
        })
    });
    world.send("make it better");
    shows_a_plan(&mut world);
    let approval = world.approval();
    world
        .command(Command::Decide {
            approval,
            decision: Decision::Deny,
            scope: Scope::Once,
            answer: None,
            message: Some("smaller steps".into()),
            basis: Some(Basis::Policy),
        })
        .unwrap();
    assert_eq!(mode(&world), PermissionMode::Plan);
    let (status, text) = world.results().remove(0);
    assert!(
        status == ToolStatus::Denied && text.contains("smaller steps"),
        "{text}"
    );
    assert_eq!(world.models.len(), 1, "the model goes on");
}

#[test]
fn the_mode_before_plan_mode_comes_back_and_a_crash_changes_nothing() {
    let mut world = World::idle(LoopLimits::default());
    set_mode(&mut world, PermissionMode::AcceptEdits);
    set_mode(&mut world, PermissionMode::Plan);
    world.send("make it better");
    shows_a_plan(&mut world);
    world.crash();
    world.restart();
    world.decide(Decision::Allow, Scope::Once).unwrap();
    assert_eq!(mode(&world), PermissionMode::AcceptEdits);
}

#[test]
fn outside_plan_mode_there_is_nothing_to_leave() {
    let mut world = World::running(LoopLimits::default());
    shows_a_plan(&mut world);
    assert_eq!(world.results()[0].0, ToolStatus::Error);
    assert!(world.summary().open_approvals.is_empty());
}

#[test]
fn each_input_in_plan_mode_has_its_reminder_and_the_end_of_the_mode_is_told_once() {
    let mut world = in_plan_mode();
    world.say("what kind of better?");
    world.send("faster");
    assert_eq!(notes(&world), [NoteKind::PlanReminder; 2]);
    world.say("here is the plan");
    set_mode(&mut world, PermissionMode::Default);
    for _ in 0..2 {
        world.send("do it");
        world.say("done");
    }
    assert_eq!(
        notes(&world),
        [
            NoteKind::PlanReminder,
            NoteKind::PlanReminder,
            NoteKind::ContextNotice
        ]
    );
    assert!(world.notes()[2].1.contains("Plan mode is over"));
}

#[test]
fn a_new_day_is_told_once_with_the_first_input_on_it() {
    let mut world = World::running(LoopLimits::default());
    world.say("done");
    world.now += DAY_MS;
    for _ in 0..2 {
        world.send("more");
        world.say("done");
    }
    let told = world.notes();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0], (NoteKind::ContextNotice, "Today is 1970-01-02.".into()));
}

fn planning(intent_gate: bool) -> LoopLimits {
    LoopLimits {
        planning: Planning {
            enabled: true,
            intent_gate,
            ..Planning::default()
        },
        ..LoopLimits::default()
    }
}

fn steps(titles: &[&str]) -> LoopRequest {
    LoopRequest::Plan(PlanRequest::Steps {
        steps: titles
            .iter()
            .map(|title| ((*title).to_owned(), "run it".to_owned()))
            .collect(),
        reason: None,
    })
}

#[test]
fn the_gate_gives_a_plan_to_work_and_none_to_talk() {
    for (text, label, plans) in [
        ("fix the parser", Intent::CodingTask, true),
        ("hello", Intent::GeneralChat, false),
        ("what can you do?", Intent::CapabilityQuery, false),
    ] {
        let mut world = World::idle(planning(true));
        world.send(text);
        let classified = world.log.iter().find_map(|event| match &event.body {
            EventBody::IntentClassified(classified) => Some((classified.label, classified.planning)),
            _ => None,
        });
        assert_eq!(classified, Some((label, plans)), "{text}");
        assert_eq!(notes(&world).contains(&NoteKind::PlanReminder), plans, "{text}");
    }
    let mut off = World::idle(LoopLimits::default());
    off.send("fix the parser");
    assert!(!off.kinds().contains(&"intent.classified") && off.notes().is_empty());
}

#[test]
fn notes_name_only_tools_that_the_session_has() {
    let with = |tools: &[&str], mode, limits| {
        let mut world = World::with(SessionCreated {
            mode,
            tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            ..created(limits)
        });
        world.send("fix the parser");
        world.notes()
    };
    let plan_mode = |tools: &[&str]| {
        with(tools, PermissionMode::Plan, LoopLimits::default())
            .remove(0)
            .1
    };
    assert!(plan_mode(&["Read", "ExitPlanMode"]).contains("then call ExitPlanMode with the plan (summary"));
    let without = plan_mode(&["Read"]);
    assert!(!without.contains("ExitPlanMode"), "{without}");
    assert!(
        without.contains("then answer with the plan (summary"),
        "{without}"
    );
    for gate in [false, true] {
        assert_eq!(with(&["Plan"], PermissionMode::Default, planning(gate)).len(), 1);
        assert_eq!(with(&["Read"], PermissionMode::Default, planning(gate)), []);
    }
}

#[test]
fn a_plan_is_done_step_by_step_and_open_steps_are_named_once_before_the_end() {
    let mut world = World::running(planning(false));
    world.call(&["Plan"]);
    allow(&mut world, steps(&["write it", "test it"]));
    assert!(world.kinds().contains(&"plan.updated"), "{:?}", world.kinds());
    assert!(world.results()[0].1.contains("Next is step 1: write it"));
    world.call(&["Plan"]);
    let done = PlanRequest::Done {
        step: 1,
        evidence: "it is there".into(),
    };
    allow(&mut world, LoopRequest::Plan(done));
    world.say("finished");
    let (kind, text) = world.notes().pop().unwrap();
    assert!(
        kind == NoteKind::PlanReminder && text.contains("Steps 2 of your plan"),
        "{text}"
    );
    world.say("step 2 cannot be done: no compiler");
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn i3_a_plan_that_is_not_possible_is_an_error_and_changes_nothing() {
    let mut limits = planning(false);
    limits.planning.max_steps = 1;
    let mut world = World::running(limits);
    world.call(&["Plan"]);
    allow(&mut world, steps(&["a", "b"]));
    assert_eq!(world.results()[0].0, ToolStatus::Error);
    assert!(world.agent.durable().plan.steps.is_empty());
    world.check_log();
}
