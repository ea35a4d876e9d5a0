//! The to-do list and questions: handled by the loop, never by a tool.

use super::world::*;
use crate::*;
use agentd_protocol::*;

fn items(statuses: &[TodoStatus]) -> Vec<TodoItem> {
    let item = |status: &TodoStatus| TodoItem {
        content: "a thing".into(),
        status: *status,
    };
    statuses.iter().map(item).collect()
}

fn question() -> LoopRequest {
    LoopRequest::Ask {
        question: "Which colour?".into(),
        choices: vec![Choice {
            id: "1".into(),
            label: "the red one".into(),
        }],
    }
}

/// The gate allows the next call, which has this content.
fn allow(world: &mut World, request: LoopRequest) {
    let (tool_call, name) = world.judging.remove(0);
    let verdict = Verdict {
        kind: VerdictKind::Allow,
        rule: "mode:default".into(),
        reason: "so it is".into(),
    };
    let plan = CallPlan {
        effect: EffectClass::None,
        loop_request: Some(request),
        ..world.plan(&name)
    };
    world.judged(tool_call, Judged::Verdict { verdict, plan });
}

fn asking(limits: LoopLimits) -> World {
    let mut world = World::running(limits);
    world.call(&["AskUser"]);
    allow(&mut world, question());
    world
}

fn answer(world: &mut World, decision: Decision, words: Option<&str>) -> Result<Reply, Fault> {
    let approval = world.approval();
    world.command(Command::Decide {
        approval,
        decision,
        scope: Scope::Once,
        answer: words.map(str::to_owned),
        message: None,
        basis: Some(Basis::Policy),
    })
}

#[test]
fn a_list_is_kept_without_any_run_and_the_next_call_follows_at_once() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["TodoWrite", "Bash"]);
    let list = items(&[TodoStatus::Completed, TodoStatus::Pending]);
    let (todo, _) = world.judging[0].clone();
    allow(&mut world, LoopRequest::Todo(list.clone()));
    world.judge(VerdictKind::Allow);
    assert_eq!(
        world.kinds(),
        [
            "model.finished",
            "tool.proposed",
            "tool.proposed",
            "verdict.given",
            "verdict.given",
            "todo.updated",
            "tool.finished",
            "tool.started"
        ]
    );
    assert_eq!(
        (world.summary().todo, world.running.contains(&todo)),
        (list, false)
    );
    assert_eq!(
        world.results(),
        [(
            ToolStatus::Ok,
            "The list is kept: 1 done, 0 in progress, 1 to do.".into()
        )]
    );
}

#[test]
fn the_answer_to_a_question_goes_back_to_the_model() {
    for (words, read) in [("1", "the red one"), ("none of them", "none of them")] {
        let mut world = asking(LoopLimits::default());
        assert_eq!(world.state(), RunState::Waiting(WaitReason::Question));
        let open = world.summary().open_approvals.remove(0);
        assert_eq!(
            (open.kind, open.tool.as_deref(), open.detail.as_str()),
            (ApprovalKind::Question, Some("AskUser"), "Which colour?")
        );
        assert!(answer(&mut world, Decision::Allow, None).is_err());
        answer(&mut world, Decision::Answer, Some(words)).unwrap();
        assert_eq!(world.results(), [(ToolStatus::Ok, read.into())]);
        assert_eq!(
            world.kinds(),
            ["approval.decided", "tool.finished", "model.started"]
        );
        assert_eq!(world.running, []);
    }
}

#[test]
fn with_nobody_there_a_question_is_unanswered_at_once() {
    let mut world = asking(LoopLimits {
        unattended_ms: Some(0),
        on_deny: OnDeny::Stop,
        ..LoopLimits::default()
    });
    let approval = world.approval();
    world.fire(TimerKey::Unattended(approval));
    world.deciders(approval, 0);
    assert_eq!(world.statuses(), [ToolStatus::Denied]);
    assert!(world.results()[0].1.contains("nobody is attached who may decide"));
    // The question was refused, not a permission: the turn continues.
    assert_eq!(
        world.agent.durable().turn.as_ref().map(|turn| turn.denied),
        Some(false)
    );
}

#[test]
fn a_question_survives_a_restart_and_a_cancelled_one_is_withdrawn() {
    let mut world = asking(LoopLimits::default());
    world.crash();
    world.restart();
    assert_eq!(world.state(), RunState::Waiting(WaitReason::Question));
    answer(&mut world, Decision::Answer, Some("blue")).unwrap();
    assert_eq!(world.results(), [(ToolStatus::Ok, "blue".into())]);

    let mut world = asking(LoopLimits::default());
    world.cancel().unwrap();
    assert_eq!(world.statuses(), [ToolStatus::Interrupted]);
    assert_eq!(world.summary().open_approvals, []);
}

#[test]
fn a_denied_list_changes_nothing() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["TodoWrite"]);
    world.judge(VerdictKind::Deny);
    assert_eq!(world.statuses(), [ToolStatus::Denied]);
    assert_eq!(world.summary().todo, []);
}

#[test]
fn i3_a_crash_between_any_two_events_loses_no_answer() {
    let mut whole = asking(LoopLimits::default());
    answer(&mut whole, Decision::Answer, Some("blue")).unwrap();
    for events in 1..=whole.log.len() {
        let mut world = asking(LoopLimits::default());
        answer(&mut world, Decision::Answer, Some("blue")).unwrap();
        world.crash_at(events);
        world.restart();
        while !world.judging.is_empty() {
            allow(&mut world, question());
        }
        if !world.agent.durable().approvals.is_empty() {
            answer(&mut world, Decision::Answer, Some("blue")).unwrap();
        }
        if events >= 5 {
            assert_eq!(
                world.results().last(),
                Some(&(ToolStatus::Ok, "blue".into())),
                "{events}"
            );
        }
    }
}
